"""Run a graph for a command: check the input, show progress, print the answer and write the page."""

import asyncio
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command
from langsmith import uuid7
from rich.console import Console

from stepcraft.cli.options import Output, check_writable
from stepcraft.cli.output import print_json, say, write
from stepcraft.cli.result import progress_lines, show_result, show_revisions
from stepcraft.cli.review import ask_for_review, review_checkpointer
from stepcraft.cli.tracing import tracing
from stepcraft.contexts.base import Context
from stepcraft.errors import BadInput, NoAnswer
from stepcraft.graphs.compile import Graph, resources_of
from stepcraft.graphs.registry import context_of, get_graph, inputs_of, outputs_of
from stepcraft.nodes.begin import KEYLESS
from stepcraft.policy import Policy
from stepcraft.records import records
from stepcraft.report import StepTime, page
from stepcraft.secrets import redacted
from stepcraft.text.clean import clean

INTERRUPT = "__interrupt__"
"""What LangGraph streams as the update of a node that asks a person."""


def answer(
    graph: str,
    question: str,
    fields: Mapping[str, Any],
    output: Output,
    *,
    sources: list[str] | None = None,
    memory: str | None = None,
    inputs: Mapping[str, str | None] | None = None,
    passages: Path | None = None,
    show_changes: bool = False,
) -> dict[str, Any]:
    """Run a graph, print its result and return it.

    `fields` go into the context, together with `sources` and `memory`, whose fields differ from graph to graph.
    `inputs` and the file of `passages` go into the input beside the question. The result is printed on stdout,
    progress and warnings on stderr. Of a traced run the JSON and the page have the id of its trace.

    Raises:
        BadInput: the graph does not take what was named, or a file cannot be read or written.
    """
    as_json, html, quiet = output
    err, out = Console(stderr=True, quiet=quiet), Console(highlight=False)
    context = context_of(graph)(**{**_search_fields(graph, sources, memory), **fields})
    given = {"question": question, **_inputs(graph, inputs or {}, passages, sources)}
    if html and graph == "chat":
        raise BadInput(
            "the chat has no page of its own; name the method that answers: stepcraft run rat … --html"
        )
    if html:
        check_writable(html)
    cleaned = {name: clean(part) if isinstance(part, str) else part for name, part in given.items()}
    checkpointer = review_checkpointer(context)
    compiled = get_graph(graph, allow=Policy.of(None).trusting_runs(), checkpointer=checkpointer)
    progress = _Progress(graph, err)
    with tracing(err) as callbacks:
        labels, run_id = dict(resources_of(compiled).labels(context)), uuid7()
        config: RunnableConfig = {"metadata": labels, "callbacks": [*callbacks], "run_id": run_id}
        if checkpointer:
            config["configurable"] = {"thread_id": str(run_id)}
        result = _run(graph, compiled, cleaned, config, context, progress)
    trace_id = str(run_id) if callbacks else ""
    shown = redacted(result)  # masked before texts are cut to what fits into a line
    if as_json:
        print_json({**result, "trace_id": trace_id} if trace_id else result)
    else:
        show_result(graph, shown, out, err)
    if show_changes:
        show_revisions(shown, err if as_json else out)
    if html:
        try:
            shown_given = {**vars(context), **given}
            html.write_text(
                page(graph, shown_given, result, progress.steps, trace_id=trace_id), encoding="utf-8"
            )
        except OSError as error:
            raise BadInput(f"{html} cannot be written: {error.strerror}") from error
    return result


def _run(
    graph: str,
    compiled: Graph,
    given: Mapping[str, Any],
    config: RunnableConfig,
    context: Context,
    progress: "_Progress",
) -> dict[str, Any]:
    """Run a graph, and ask the user for the reviews that it pauses for; return its output."""
    # On an event loop Ctrl-C cancels a model call at once; a thread would have to be waited for.
    result, asked = asyncio.run(_stream(graph, compiled, given, config, context, progress))
    while asked is not None:
        try:
            response: Command[Any] = Command(resume=ask_for_review(asked, Console(stderr=True)))
        except KeyboardInterrupt:
            say("the steps were not approved, and this run cannot be resumed", err=True)
            raise
        config = {**config, "run_id": uuid7()}
        result, asked = asyncio.run(_stream(graph, compiled, response, config, context, progress))
    return result


async def _stream(
    graph: str,
    compiled: Graph,
    given: "Mapping[str, Any] | Command[Any]",
    config: RunnableConfig,
    context: Context,
    progress: "_Progress",
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Run a graph and show its steps; return its output, and what it asks before it goes on."""
    result: dict[str, Any] = {}
    asked: dict[str, Any] | None = None
    parts: AsyncIterator[Any] = compiled.astream(
        given, config, context=context, stream_mode=["tasks", "updates", "values"], subgraphs=True
    )
    with progress:
        async for namespace, mode, data in parts:
            if mode == "tasks":
                progress.task(namespace, data)
            elif mode == "values" and not namespace:
                result = data
            elif not namespace and INTERRUPT in data:
                asked = data[INTERRUPT][0].value
            elif not namespace:
                for node, update in data.items():
                    progress.finished(node, update or {})
    # The messages of the chat are the question and the answer once more.
    return {name: result[name] for name in outputs_of(graph) if name != "messages"}, asked


class _Progress:
    """A line on stderr for each finished step and, on a terminal, a spinner with the nodes that are running."""

    def __init__(self, graph: str, console: Console) -> None:
        self.steps: list[StepTime] = []
        self._graph = graph
        self._console = console
        self._began = time.monotonic()
        self._running: dict[str, StepTime] = {}
        self._status = console.status("…")

    def __enter__(self) -> Self:
        self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def task(self, namespace: Sequence[str], data: Mapping[str, Any]) -> None:
        """Take a "tasks" event. A node that is a subgraph is not timed itself: the nodes inside of it are."""
        now = time.monotonic() - self._began
        for outer in namespace:
            self._running.pop(outer.partition(":")[2], None)
        if "input" in data:
            self._running[data["id"]] = StepTime(data["name"], now, now)
        elif data["id"] in self._running:
            self.steps.append(replace(self._running.pop(data["id"]), ended=now))
        counts = Counter(step.node for step in self._running.values())
        self._status.update(
            " · ".join(node if count == 1 else f"{node} ×{count}" for node, count in counts.items())
        )

    def finished(self, node: str, update: Mapping[str, Any]) -> None:
        """Print what a node returned."""
        for line in progress_lines(self._graph, node, redacted(update)):
            text = f"{time.monotonic() - self._began:6.1f} s  {node:<8}  {line}".rstrip()
            write(self._console, text)


def _search_fields(graph: str, sources: list[str] | None, memory: str | None) -> dict[str, Any]:
    """The context fields for `--from` and `--memory`; raises BadInput if the graph has no such field."""
    known = context_of(graph).__dataclass_fields__
    fields: dict[str, Any] = {}
    for field, option, value in (("retriever", "--from", sources), ("memory", "--memory", memory)):
        if value and field not in known:
            raise BadInput(f"{graph} takes no {option}, for it searches nothing of that kind; leave it out")
        if value:
            fields[field] = value
    if sources and "answer_from" in known:
        fields["answer_from"] = "memory+source"
    return fields


def _inputs(
    graph: str, named: Mapping[str, str | None], passages: Path | None, sources: list[str] | None
) -> dict[str, Any]:
    """The keys of the graph's input that were named; raises BadInput if the graph does not take one."""
    given: dict[str, Any] = {name: value for name, value in named.items() if value}
    if passages:
        if sources:
            raise BadInput(
                f"--passages {passages} leaves nothing to search for; leave out --from or --passages"
            )
        given["passages"] = _read_passages(passages)
    taken = inputs_of(graph)
    for name in given:
        if name not in taken:
            option = "--using" if name == "resources" else f"--{name}"
            raise BadInput(f"{graph} takes no {option}; leave it out")
    return given


def _read_passages(file: Path) -> list[Any]:
    """The paragraphs of a .txt file, or the records of another; raises BadInput if one cannot be used."""
    suffix = file.suffix.lower()
    if suffix not in {".jsonl", ".json", ".csv", ".txt"}:
        raise BadInput(f"{file} is not a kind of file that is read; name a .jsonl, .json, .csv or .txt file")
    if suffix != ".txt":
        found: list[dict[str, Any]] = []
        for record in records(file):
            if record.values is None:
                raise BadInput(f"{file}:{record.line} cannot be read: {record.reason}")
            if not isinstance(record.values.get("text"), str):
                raise BadInput(f"{file}:{record.line} has no text; give each passage one under 'text'")
            found.append(record.values)
        return found
    try:
        text = file.read_text("utf-8-sig")
    except FileNotFoundError as error:
        raise BadInput(f"there is no file {file}; check the name") from error
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{file} is not in UTF-8; save it as UTF-8") from error
    return [part.strip() for part in re.split(r"\n[ \t]*\n", text) if part.strip()]


def check_strict(result: Mapping[str, Any], *, warnings: bool = False) -> None:
    """Enforce `--strict`: every thought was checked, every segment rests on evidence.

    With `warnings`, no warning was raised either, but for the one that no language model was asked.

    Raises:
        NoAnswer: a part of the work was not done.
    """
    raised = [warning for warning in result["warnings"] if warning != KEYLESS]
    if warnings and raised:
        raise NoAnswer(f"a part of the work was not done, and --strict asks for all of it: {raised[0]}")
    revisions, segments = result.get("revisions", []), result.get("segments", [])
    skipped = [revision["skipped"] for revision in revisions if revision["skipped"]]
    unsupported = [segment["plan"] or segment["text"] for segment in segments if segment["unsupported"]]
    for failed, all_, what in (
        (skipped, revisions, "thoughts could not be checked"),
        (unsupported, segments, "segments rest on no evidence"),
    ):
        if failed:
            raise NoAnswer(f"{len(failed)} of {len(all_)} {what}, and --strict asks for all: {failed[0]}")
