"""Runs a graph for the command line: progress while it works, then the answer."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from importlib import import_module
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from rich.console import Console
from rich.text import Text

from stepcraft.cli.tracing import tracing
from stepcraft.errors import BadInput
from stepcraft.evidence import Evidence
from stepcraft.graphs.aag import AagContext, Output, build_aag
from stepcraft.nodes._build import Build
from stepcraft.text import clean

GRAPHS = {"aag": "stepcraft.graphs.aag"}


def drawn(name: str, *, xray: bool) -> str:
    """A graph as Mermaid text.

    Raises:
        BadInput: there is no graph of this name.
    """
    if name not in GRAPHS:
        raise BadInput(f"there is no graph {name!r}; there is {', '.join(GRAPHS)}")
    graph = import_module(GRAPHS[name]).graph
    return str(graph.get_graph(xray=xray).draw_mermaid())


def watched(goal: str, resources: str, context: AagContext, err: Console) -> dict[str, Any]:
    """The result of a run, whose steps are shown while they are done.

    It runs on an event loop, where Ctrl-C ends a model's call at once; a thread would be waited for.
    """
    given = {"question": clean(goal), "resources": clean(resources)}
    with tracing(err) as callbacks:
        config: RunnableConfig = {
            "metadata": dict(Build("aag", AagContext).labels(context)),
            "callbacks": [*callbacks],
        }
        return asyncio.run(_watched(given, config, context, err))


async def _watched(given: Any, config: RunnableConfig, context: AagContext, err: Console) -> dict[str, Any]:  # noqa: ANN401 - a graph's input
    result: dict[str, Any] = {}
    steps: AsyncIterator[Any] = build_aag().astream(
        given, config, context=context, stream_mode=["tasks", "updates", "values"]
    )
    with _Progress(err) as progress:
        async for mode, data in steps:
            if mode == "values":
                result = data
            elif mode == "tasks":
                progress.runs(data["name"], 1 if "input" in data else -1)
            else:
                for node, update in data.items():
                    progress.done(node, update or {})
    return {name: result[name] for name in Output.__annotations__}


class _Progress:
    """A line for each step that is done and, on a terminal, what is being done now."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.began = time.monotonic()
        self.running: Counter[str] = Counter()
        self.status = console.status("…")

    def __enter__(self) -> Self:
        self.status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.status.stop()

    def runs(self, node: str, more: int) -> None:
        """One more or one fewer of this node is running."""
        self.running[node] += more
        now = [
            name if count == 1 else f"{name} ×{count}" for name, count in self.running.items() if count > 0
        ]
        self.status.update(" · ".join(now))

    def done(self, node: str, update: dict[str, Any]) -> None:
        """This node is done, and this is what it gave."""
        line = f"{time.monotonic() - self.began:6.1f} s  {node:<8}  {_news(node, update)}".rstrip()
        self.console.print(Text(line), soft_wrap=True, highlight=False)


def _news(node: str, update: dict[str, Any]) -> str:
    if node == "answer":
        return "".join(" ".join(clean(asked["question"]).split()) for asked in update.get("questions", []))
    if node == "critic" and update.get("critiques"):
        return _count(update["edits"], "edit") if update["edits"] else "content"
    counted = {"retrieve": ("evidence", "procedure"), "to_query": ("queries", "question")}
    field, what = counted.get(node, ("steps", "step"))
    return _count(update[field], what) if update.get(field) else ""


def _count(things: Sequence[object], what: str) -> str:
    return f"{len(things)} {what}{'' if len(things) == 1 else 's'}"


def show_result(result: dict[str, Any], out: Console, err: Console) -> None:
    """The numbered steps and the procedures used on one console, the warnings on the other."""
    lines = [result["answer"]]
    if result["evidence"]:
        lines += ["", "Procedures used:", *map(_used, result["evidence"])]
    out.print(Text("\n".join(lines)), soft_wrap=True)
    for warning in result["warnings"]:
        err.print(Text(f"warning: {warning}", style="yellow"), soft_wrap=True)


def _used(passage: Evidence) -> str:
    source = f"  ({passage['source']})" if passage["source"] else ""
    return f"  {passage['score']:.2f}  {passage['title']}{source}"
