"""Runs a graph for the command line: progress while it works, then what it gave."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from rich.console import Console
from rich.text import Text

from stepcraft.cli.news import news
from stepcraft.cli.tracing import tracing
from stepcraft.contexts.base import Context
from stepcraft.graphs.registry import get_graph, outputs_of, resources_of
from stepcraft.report import StepTime
from stepcraft.text.clean import clean


def drawn(name: str, *, xray: bool) -> str:
    """A graph as Mermaid text.

    Raises:
        BadInput: there is no graph of this name.
    """
    return str(get_graph(name).get_graph(xray=xray).draw_mermaid())


def watched(
    method: str, given: Mapping[str, Any], context: Context, err: Console
) -> tuple[dict[str, Any], list[StepTime]]:
    """The result of a run, whose steps are shown while they are done, and when each was done.

    It runs on an event loop, where Ctrl-C ends a model's call at once; a thread would be waited for.
    """
    cleaned = {name: clean(part) if isinstance(part, str) else part for name, part in given.items()}
    with tracing(err) as callbacks:
        labels = dict(resources_of(method).labels(context))
        config: RunnableConfig = {"metadata": labels, "callbacks": [*callbacks]}
        return asyncio.run(_watched(method, cleaned, config, context, err))


async def _watched(
    method: str, given: Mapping[str, Any], config: RunnableConfig, context: Context, err: Console
) -> tuple[dict[str, Any], list[StepTime]]:
    result: dict[str, Any] = {}
    parts: AsyncIterator[Any] = get_graph(method).astream(
        given, config, context=context, stream_mode=["tasks", "updates", "values"], subgraphs=True
    )
    with _Progress(method, err) as progress:
        async for inside, mode, data in parts:
            if mode == "tasks":
                progress.task(inside, data)
            elif inside:
                continue
            elif mode == "values":
                result = data
            else:
                for node, update in data.items():
                    progress.done(node, update or {})
    return {name: result[name] for name in outputs_of(method)}, progress.times


class _Progress:
    """A line for each step that is done and, on a terminal, what is being done now."""

    def __init__(self, method: str, console: Console) -> None:
        self.method = method
        self.console = console
        self.began = time.monotonic()
        self.running: dict[str, StepTime] = {}
        self.times: list[StepTime] = []
        self.status = console.status("…")

    def __enter__(self) -> Self:
        self.status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.status.stop()

    def task(self, inside: Sequence[str], data: Mapping[str, Any]) -> None:
        """A node begins or ends; the time of one with nodes inside is theirs."""
        now = time.monotonic() - self.began
        for outer in inside:
            self.running.pop(outer.partition(":")[2], None)
        if "input" in data:
            self.running[data["id"]] = StepTime(data["name"], now, now)
        elif data["id"] in self.running:
            self.times.append(replace(self.running.pop(data["id"]), ended=now))
        counts = Counter(step.node for step in self.running.values())
        self.status.update(
            " · ".join(node if count == 1 else f"{node} ×{count}" for node, count in counts.items())
        )

    def done(self, node: str, update: dict[str, Any]) -> None:
        """This node is done, and this is what it gave."""
        for line in news(self.method, node, update):
            text = f"{time.monotonic() - self.began:6.1f} s  {node:<8}  {line}".rstrip()
            self.console.print(Text(text), soft_wrap=True, highlight=False)
