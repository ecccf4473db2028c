"""Extraction: the procedures that one document teaches, in the form of a memory.

    begin → success (of a transcript) → extract (for each part) → check → verify (for each procedure)

Most documents are read in one call. A long one is read by section: its parts end before headings
and overlap, are read in parallel, and what two of them hold alike is merged by `check`, which needs
no model. `verify=True` asks of each procedure that is left whether it can be followed without the
document. A transcript of a run that did not reach its goal is left out: `success` asks a model
where neither feedback nor an error says so.
"""

import asyncio
import operator
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal, NotRequired

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Overwrite, Send
from typing_extensions import TypedDict, Unpack

from stepcraft.building.begin import NodeInTurn, run_keys
from stepcraft.building.check import checked
from stepcraft.building.drafted import Drafted, Rejected
from stepcraft.building.judge import success, verify
from stepcraft.building.parts import HeadingAt, Part, parts_of
from stepcraft.building.read_part import PartRead, extract
from stepcraft.building.settings import ExtractContext
from stepcraft.errors import BadInput
from stepcraft.llm.resources import BuilderOptions, GraphOptions, Resources, compiled
from stepcraft.llm.usage import RunState, Usage, add_usage, add_warnings
from stepcraft.nodes.begin import checked_text
from stepcraft.progress import counted, emit, quoted
from stepcraft.schema import described
from stepcraft.secrets import excerpt
from stepcraft.sources.corpus.content import Heading, markdown_headings
from stepcraft.text.addressed import addressed, for_people
from stepcraft.text.clean import clean

__all__ = ["ExtractContext", "ExtractInput", "ExtractOutput", "build_extract", "extract_builder"]

MAX_CHARACTERS = 2_000_000
"""Length limit of a document."""

MODEL_NODES = ("success", "extract", "verify")


@described
class ExtractInput(TypedDict):
    """A document."""

    title: str
    """Its title; "" if it has none."""
    text: str
    """Its text, with headings as in Markdown."""
    source: str
    """Where it comes from, such as a path or a URL."""
    kind: NotRequired[Literal["document", "transcript"]]
    """Whether it is written for readers, or the record of what an agent did; "document" by default."""
    headings: NotRequired[list[HeadingAt]]
    """Its headings in order, where the text does not mark them as Markdown does."""
    succeeded: NotRequired[bool | None]
    """Of a transcript: whether the agent reached its goal; absent where a model is to say it."""
    outcome: NotRequired[str]
    """What `succeeded` rests on: the reason why a transcript is left out."""


def _newer(left: list[Drafted], right: list[Drafted]) -> list[Drafted]:
    """Put each procedure in the place of that with its heading and output; a reducer."""
    return list({(each["heading"], each["output"]): each for each in [*left, *right]}.values())


@described
class ExtractOutput(TypedDict):
    """The procedures of the document."""

    procedures: Annotated[list[Drafted], _newer]
    """The procedures, in the order of the document."""
    rejected: list[Rejected]
    """What is no procedure, or was not kept, and why."""
    unread: int
    """Parts of the document that no model has read; the warnings say why."""
    warnings: Annotated[list[str], add_warnings]
    """Failed steps, reached limits, and whatever else a reader of the procedures should know."""
    usage: Annotated[Usage, add_usage]
    """Model calls and tokens, in total and by node."""


class State(ExtractOutput, RunState):
    """The state of an extraction."""

    title: str
    text: str
    """The document as its readers see it: without comments and what is addressed to a model."""
    source: str
    kind: str
    headings: list[HeadingAt]
    succeeded: bool | None
    """Whether a transcript's agent reached its goal; None until a model has said it."""
    outcome: str
    parts: list[Part]
    """The parts that are read in one call each."""
    written: Annotated[list[PartRead], operator.add]
    """What the model wrote of each part."""


def check_length(text: str) -> None:
    """Refuse a document that is too long.

    Raises:
        BadInput: It is.
    """
    if len(text) > MAX_CHARACTERS:
        raise BadInput(
            f"the document has {len(text):,} characters; at most {MAX_CHARACTERS:,} are taken, "
            "so split it"
        )


def headings_in(text: str, headings: Sequence[Heading] = ()) -> list[HeadingAt]:
    """Return these headings, or else those that a text marks as Markdown does."""
    return [
        HeadingAt(start=each.start, stop=each.stop, level=each.level, text=each.text)
        for each in headings or markdown_headings(text)
    ]


def _begin(state: dict[str, Any], resources: Resources[ExtractContext]) -> dict[str, Any]:
    """Check the document, leave out what is addressed to a model, and split it.

    Raises:
        BadInput: A part of the input, a setting or a name cannot be used.
    """
    keys, settings = run_keys(resources, MODEL_NODES), resources.settings()
    text, kind, succeeded = (
        state.get("text"),
        state.get("kind") or "document",
        state.get("succeeded"),
    )
    if not isinstance(text, str):
        raise BadInput(f"text must be a text, not {type(text).__name__}: {excerpt(text)}")
    check_length(text)
    if kind not in ("document", "transcript"):
        raise BadInput(f"kind={excerpt(kind)} cannot be used; it is document or transcript")
    if not (succeeded is None or isinstance(succeeded, bool)):
        raise BadInput(f"succeeded must be true, false or absent, not {excerpt(succeeded)}")
    if (headings := state.get("headings")) is None:
        text = clean(text)
        headings = headings_in(text)
    _check_headings(headings, len(text))
    headings = [heading for heading in headings if not addressed(heading["text"])]
    title = checked_text("title", state.get("title") or "")
    text, orders = for_people(text)
    if sentence := addressed(title):
        title, orders = "", [sentence, *orders]
    reason = ""
    if not text.strip():
        reason = "the document is empty"
    elif kind == "transcript" and succeeded is False:
        reason = checked_text("outcome", state.get("outcome") or "it failed")
    left_out = "a part of the document was left out, because it is addressed to a model"
    return {
        **keys,
        "title": title,
        "text": text,
        "source": checked_text("source", state.get("source") or ""),
        "kind": kind,
        "succeeded": succeeded if kind == "transcript" else True,
        "headings": headings,
        "parts": parts_of(text, headings, settings.max_characters, settings.overlap),
        "written": Overwrite([]),
        "procedures": Overwrite([]),
        "rejected": [Rejected(output=title, reason=reason, sentence="")] if reason else [],
        "unread": 0,
        "warnings": Overwrite(
            [*keys["warnings"].value, *(f"{left_out}: {quoted(order)}" for order in orders)]
        ),
    }


def _check_headings(headings: object, length: int) -> None:
    """Refuse headings that are not in order and within the text.

    Raises:
        BadInput: They are not.
    """
    last = 0
    for heading in headings if isinstance(headings, list) else [headings]:
        if not isinstance(heading, Mapping) or not HeadingAt.__required_keys__ <= heading.keys():
            raise BadInput(
                f"headings must be a list of start, stop, level and text, not {excerpt(heading)}"
            )
        if not last <= heading["start"] <= heading["stop"] <= length:
            raise BadInput(
                f"the heading {excerpt(heading['text'])} is not at its place in the text; give "
                "offsets of it, in order"
            )
        last = heading["start"]


def _check(state: State, resources: Resources[ExtractContext]) -> dict[str, Any]:
    """Check the procedures of all parts, and merge them."""
    parts = sorted(state["written"], key=lambda part: part["part"])
    # A page that is one task has it under its title.
    title = HeadingAt(start=0, stop=0, level=0, text=state["title"])
    procedures, rejected = checked(
        parts,
        f"{state['title']}\n{state['text']}",
        [title, *state["headings"]],
        state["source"],
        strict=resources.settings(state).strict,
        transcript=state["kind"] == "transcript",
    )
    kept, left_out = counted(len(procedures), "procedure"), counted(len(rejected), "task")
    emit(resources.graph, "check", f"Kept {kept}; rejected {left_out}.")
    unread = sum(part["unread"] for part in parts)
    return {"procedures": Overwrite(procedures), "rejected": rejected, "unread": unread}


def after_begin(state: State) -> str | Sequence[Send]:
    """Send every part to the model; of a run that nobody has judged it is asked first."""
    if state["rejected"] or state["unread"]:
        return END
    if state["succeeded"] is None:
        return "success"
    return _calls(state, "extract", "reading", state["parts"])


def after_check(state: State, resources: Resources[ExtractContext]) -> str | Sequence[Send]:
    """Send every procedure to a reader, with `verify=True`."""
    if not resources.settings(state).verify or not state["procedures"]:
        return END
    return _calls(state, "verify", "drafted", state["procedures"])


def _calls(state: State, node: str, key: str, values: Sequence[object]) -> list[Send]:
    """Send each value to a node, with what a call needs of the state beside the document."""
    shared = {name: state.get(name) for name in ("title", "kind", "run", "settings")}
    return [Send(node, {**shared, key: value}) for value in values]


def extract_builder(
    turns: asyncio.Semaphore | None = None, **options: Unpack[BuilderOptions]
) -> StateGraph[State, ExtractContext, ExtractInput, ExtractOutput]:
    """Return extraction as an uncompiled graph, whose nodes can be replaced, wrapped or added to."""
    resources = Resources.of("extract", ExtractContext, options)
    builder = StateGraph(
        State, ExtractContext, input_schema=ExtractInput, output_schema=ExtractOutput
    )
    builder.add_node("begin", resources.bind(_begin))
    builder.add_node("success", NodeInTurn(success, resources, turns))
    builder.add_node("extract", NodeInTurn(extract, resources, turns))
    builder.add_node("check", resources.bind(_check))
    builder.add_node("verify", NodeInTurn(verify, resources, turns))

    builder.add_edge(START, "begin")
    builder.add_conditional_edges("begin", after_begin, ["success", "extract", END])
    builder.add_conditional_edges("success", after_begin, ["extract", END])
    builder.add_edge("extract", "check")
    builder.add_conditional_edges("check", resources.bind(after_check), ["verify", END])
    builder.add_edge("verify", END)
    return builder


def build_extract(
    turns: asyncio.Semaphore | None = None, **options: Unpack[GraphOptions]
) -> CompiledStateGraph[State, ExtractContext, ExtractInput, ExtractOutput]:
    """Build and compile extraction. The options are those of the builder and of LangGraph's `compile`.

    Args:
        turns: Limits the model calls at the same time of all runs of the graphs that share it.
        **options: The models and settings, and what `compile` takes; nothing is searched.

    Raises:
        BadInput: An option is of another kind than it has to be.
    """
    return compiled(partial(extract_builder, turns), "extract", options)
