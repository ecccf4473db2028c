"""Run a graph for a command: show its progress, print the answer and write the page."""

import asyncio
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from langsmith import uuid7
from langsmith.utils import tracing_is_enabled

from stepcraft.cli.options import RunOptions, builder_options, check_writable, search_fields
from stepcraft.cli.output import note, print_json, say, show_diff, show_warnings
from stepcraft.cli.review import ask_for_review, check_can_review
from stepcraft.errors import BadInput
from stepcraft.graphs.registry import get_graph, graph_info
from stepcraft.nodes.checks import final_checks
from stepcraft.nodes.review import evidence_lines
from stepcraft.nodes.state import Check
from stepcraft.progress import beginning, counted
from stepcraft.report import StepTime, page
from stepcraft.text.clean import clean


async def _stream(
    graph: Any,  # noqa: ANN401 - any graph
    inputs: object,
    config: RunnableConfig,
    steps: list[StepTime],
    *,
    start: float,
    quiet: bool,
) -> tuple[dict[str, Any], Any]:
    """Run a graph and print its progress; return its output and any request for a review.

    Step times are measured from `start`.
    """
    result, request = dict[str, Any](), None
    started = dict[str, float]()
    async for namespace, mode, data in graph.astream(
        inputs,
        config,
        stream_mode=["custom", "tasks", "updates", "values"],
        output_keys=graph.output_channels,
        subgraphs=True,
    ):
        now = time.monotonic() - start
        if mode == "custom":
            if not quiet and isinstance(data, Mapping) and data.get("type") == "progress":
                note(data["text"])
        elif mode == "tasks" and "input" in data:
            started[data["id"]] = now
        elif mode == "tasks":
            steps.append(StepTime(data["name"], started[data["id"]], now))
        elif mode == "values" and not namespace:
            result = {key: value for key, value in data.items() if key != "messages"}
        elif mode == "updates" and "__interrupt__" in data:
            request = data["__interrupt__"][0].value
    return result, request


def run_graph(
    name: str, question: str, options: RunOptions, inputs: Mapping[str, str], **settings: object
) -> None:
    """Run a graph and print its result: the answer on stdout, progress and warnings on stderr.

    Args:
        name: The name of the graph.
        question: The question, or the goal.
        options: The options of the command.
        inputs: The remaining input of the graph.
        settings: Settings that have their own options.

    Raises:
        BadInput: A setting or an input cannot be used.
    """
    fields = search_fields(options, **settings)
    arguments = builder_options(name, fields)
    context = arguments["settings"]
    pauses = getattr(context, "review", False) or getattr(context, "remember", False)
    if pauses:
        check_can_review(arguments)
    check_writable(options["html"])
    texts = {key: text for key, text in inputs.items() if text}
    for key in texts.keys() - graph_info(name).inputs:
        raise BadInput(f"{name} takes no {key}; leave it out")
    texts["question"] = clean(question)
    graph = get_graph(name, checkpointer=InMemorySaver() if pauses else None, **arguments)
    run_id, steps = uuid7(), list[StepTime]()
    stream = partial(_stream, graph, steps=steps, start=time.monotonic(), quiet=options["quiet"])
    config = RunnableConfig(configurable={"thread_id": str(run_id)})
    # On an event loop, Ctrl-C cancels a model call at once; in a thread, it would have to wait.
    result, request = asyncio.run(stream(texts, {**config, "run_id": run_id}))
    while request is not None:
        command: Command[Any] = Command(resume=ask_for_review(request))
        result, request = asyncio.run(stream(command, config))
    trace = {"trace_id": str(run_id)} if tracing_is_enabled() else {}
    if options["as_json"]:
        print_json({**result, **trace})
    else:
        _show(result)
    show_warnings(result["warnings"], quiet=options["quiet"])
    if options["show_checks"]:
        _show_checks(result, err=options["as_json"])
    if options["show_changes"]:
        _show_revisions(result.get("revisions"), err=options["as_json"])
    if file := options["html"]:
        file.write_text(page(name, texts, result, steps, **trace), encoding="utf-8")


def _show(result: Mapping[str, Any]) -> None:
    say(result["answer"].removesuffix("\n"))
    if result["evidence"]:
        say("\nEvidence:")
    for line in evidence_lines(result["evidence"]):
        say(f"  {line}")
    if result.get("remembered"):
        say(f"\nRemembered as {result['remembered']}.")


def _statement(check: Check) -> str:
    text = beginning(check["text"])
    return f'"{beginning(check["words"])}" in: {text}' if check["words"] else text


def _show_checks(result: Mapping[str, Any], *, err: bool) -> None:
    """Print the last verdict on each statement, by part; any but "supported" is in upper case."""
    numbers = {passage["id"]: f"[{n}]" for n, passage in enumerate(result["evidence"], 1)}
    checks, heading = final_checks(result), ""
    for check, has_changed in checks:
        place = f"Part {check['part']}" + f", round {check['round']}" * (check["round"] > 1)
        if place != heading:
            heading = place
            say(f"\n{heading}:", err=err)
        verdict = check["verdict"] if check["verdict"] == "supported" else check["verdict"].upper()
        listed = [numbers[id_] for id_ in check["evidence"] if id_ in numbers]
        uncited = len(check["evidence"]) - len(listed)
        notes = [
            *(["changed since"] if has_changed else []),
            *([f"{counted(uncited, 'passage')} not cited"] if uncited else []),
        ]
        words = [f"  {verdict:<12}", _statement(check), *listed, *map("({})".format, notes)]
        say(" ".join(words), err=err)
    if "checks" not in result:
        say("\nThis graph does not report verdicts.", err=err)
    elif not checks:
        say("\nNo statement has a verdict.", err=err)


def _show_revisions(revisions: list[Mapping[str, Any]] | None, *, err: bool) -> None:
    for number, revision in enumerate(revisions or [], 1):
        say(f"\nChange {number}, part {revision.get('part', '?')}:", err=err)
        show_diff(revision["before"], revision["after"], err=err)
    if revisions is None:
        say("\nThis graph does not report changes.", err=err)
    elif not revisions:
        say("\nNothing was changed.", err=err)
