"""Runs a graph for the command line: progress while it works, then the answer."""

import os
import time
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from rich.console import Console
from rich.text import Text

from stepcraft.errors import BadInput
from stepcraft.graphs.aag import AagContext, build_aag
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


def watched(goal: str, resources: str, context: AagContext, progress: Console) -> dict[str, Any]:
    """The result of a run, whose steps are shown while they are done."""
    began = time.monotonic()
    config: Any = {
        "metadata": dict(Build("aag", AagContext).labels(context)),
        "callbacks": _bounded_tracing(),
    }
    result: dict[str, Any] = {}
    given: Any = {"question": clean(goal), "resources": clean(resources)}
    steps: Iterator[Any] = build_aag().stream(
        given, config, context=context, stream_mode=["tasks", "updates", "values"]
    )
    with progress.status("begin") as status:
        for mode, data in steps:
            if mode == "values":
                result = data
            elif mode == "tasks" and "input" in data:
                status.update(f"{data['name']} …")
            elif mode == "updates":
                for node, update in data.items():
                    _report(progress, time.monotonic() - began, node, update or {})
    return result


def show_result(result: dict[str, Any], out: Console, err: Console) -> None:
    """The numbered steps and the procedures used on one console, the warnings on the other."""
    out.print(Text(result["answer"]))
    if result["evidence"]:
        out.print(Text("\nProcedures used:"))
    for used in result["evidence"]:
        source = f"  ({used['source']})" if used["source"] else ""
        out.print(Text(f"  {used['score']:.2f}  {used['title']}{source}"))
    for warning in result["warnings"]:
        err.print(Text(f"warning: {warning}", style="yellow"))


def _report(progress: Console, seconds: float, node: str, update: dict[str, Any]) -> None:
    line = f"{seconds:6.1f} s  {node:<9} {_news(node, update)}"
    progress.print(Text(line.rstrip()), highlight=False)


def _news(node: str, update: dict[str, Any]) -> str:
    if node == "retrieve":
        return f"{len(update.get('evidence', []))} procedures"
    if node == "to_query":
        return f"{len(update.get('queries', []))} questions"
    if node == "answer":
        return "".join(asked["question"] for asked in update.get("questions", []))
    if node == "critic":
        return f"{len(update.get('edits', []))} edits" if update.get("edits") else "content"
    return f"{len(update['steps'])} steps" if update.get("steps") else ""


def _bounded_tracing() -> list[Any]:
    """A tracer that gives up soon when LangSmith is out of reach, so that the command ends when its work is done."""
    if os.environ.get("LANGSMITH_TRACING", "").lower() != "true":
        return []
    from langchain_core.tracers import LangChainTracer
    from langsmith import Client
    from urllib3.util import Retry

    return [LangChainTracer(client=Client(timeout_ms=(1000, 2000), retry_config=Retry(total=0)))]
