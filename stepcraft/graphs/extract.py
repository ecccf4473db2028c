"""Extraction: the procedures that one document teaches, in the form of a memory.

    begin → success (of a transcript) → extract (for each part) → check → verify (for each procedure)

Most documents are read in one call. A long one is read by section: its parts end before headings and overlap, are read in
parallel, and what two of them hold alike is merged by `check`, which needs no model. `verify=True` asks of each procedure
that is left whether it can be followed without the document. A transcript of a run that did not reach its goal is left out:
`success` asks a model, where neither feedback nor an error says so.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired, cast

from langchain_core.language_models import BaseChatModel
from langgraph.cache.base import BaseCache
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Overwrite, Send
from typing_extensions import TypedDict

from stepcraft.contexts.extract import ExtractContext
from stepcraft.errors import BadInput
from stepcraft.graphs.compile import (
    Builder,
    InlineNode,
    Persistence,
    add_inline_node,
    add_model_node,
    add_node,
    compile_graph,
    graph_resources,
)
from stepcraft.llm.budget import Budgeted, Usage, branches, calls_left
from stepcraft.nodes.begin import BeginNode, checked_option, checked_text
from stepcraft.nodes.extract.check import checked, describe
from stepcraft.nodes.extract.drafted import Drafted, Flagged, Rejected
from stepcraft.nodes.extract.extract import PartRead, extract
from stepcraft.nodes.extract.parts import HeadingAt, Part, parts_of
from stepcraft.nodes.extract.success import success
from stepcraft.nodes.extract.verify import verify
from stepcraft.progress import quoted
from stepcraft.retrieval.target import RetrievalTarget
from stepcraft.schema import described
from stepcraft.secrets import excerpt
from stepcraft.sources.corpus.content import markdown_headings
from stepcraft.text.addressed import addressed, for_people
from stepcraft.text.clean import clean

__all__ = [
    "Drafted",
    "ExtractContext",
    "Flagged",
    "HeadingAt",
    "Input",
    "Output",
    "Rejected",
    "State",
    "build_extract",
]

MAX_CHARACTERS = 2_000_000
"""Length limit of a document."""

MODEL_NODES = (success, extract, verify)


@described
class Input(TypedDict):
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


@described
class Output(TypedDict):
    """The procedures of the document."""

    procedures: list[Drafted]
    """The procedures, in the order of the document."""
    rejected: list[Rejected]
    """What is no procedure, or was not kept, and why."""
    unread: int
    """Parts of the document that no model has read, because a call failed or a limit was reached; the warnings say why."""
    warnings: list[str]
    """Failed steps, reached limits, and whatever else a reader of the procedures should know."""
    usage: Usage
    """Model calls and tokens, in total and by node."""


def merge_found(left: list[PartRead], right: list[PartRead]) -> list[PartRead]:
    """What all parts hold, in the order of the parts. A reducer."""
    by_number = {found["part"]: found for found in [*(left or []), *right]}
    return [by_number[number] for number in sorted(by_number)]


def merge_procedures(left: list[Drafted], right: list[Drafted]) -> list[Drafted]:
    """Both lists, with the newer procedure where both have one of the same output under the same heading. A reducer."""
    both = [*(left or []), *right]
    return list({(one["heading"], one["output"]): one for one in both}.values())


class State(Output, Budgeted):
    """The state of an extraction."""

    title: str
    text: str
    """The document as its readers see it: without comments and without what is addressed to a model."""
    source: str
    kind: str
    headings: list[HeadingAt]
    succeeded: bool | None
    """Whether it may hold procedures: of a transcript, whether the agent reached its goal; None until a model has said it."""
    outcome: str
    """What that rests on."""
    parts: list[Part]
    """The parts that are read in one call each."""
    found: Annotated[list[PartRead], merge_found]
    """What each part was found to hold."""
    procedures: Annotated[list[Drafted], merge_procedures]


def check_length(text: str) -> None:
    """Raise BadInput for a document that is too long."""
    if len(text) > MAX_CHARACTERS:
        raise BadInput(
            f"the document has {len(text):,} characters; at most {MAX_CHARACTERS:,} are taken, so split it"
        )


def _initial_state(given: Mapping[str, Any], context: ExtractContext) -> dict[str, Any]:
    text = given.get("text")
    if not isinstance(text, str):
        raise BadInput(f"text must be a text, not {type(text).__name__}: {excerpt(text)}")
    check_length(text)
    headings = given.get("headings")
    if headings is None:
        text = clean(text)
        headings = [
            HeadingAt(start=one.start, stop=one.stop, level=one.level, text=one.text)
            for one in markdown_headings(text)
        ]
    headings = [
        heading for heading in _checked_headings(headings, len(text)) if not addressed(heading["text"])
    ]
    title = checked_text("title", given.get("title") or "")
    seen, orders = for_people(text)
    kind = checked_option("kind", given.get("kind"), ("document", "transcript"))
    succeeded = given.get("succeeded")
    if not (succeeded is None or isinstance(succeeded, bool)):
        raise BadInput(f"succeeded must be true, false or absent, not {excerpt(succeeded)}")
    if sentence := addressed(title):
        title, orders = "", [sentence, *orders]
    return {
        "title": title,
        "text": seen,
        "source": checked_text("source", given.get("source") or ""),
        "kind": kind,
        "succeeded": succeeded if kind == "transcript" else True,
        "outcome": checked_text("outcome", given.get("outcome") or ""),
        "headings": headings,
        "parts": parts_of(seen, headings, context.max_characters, context.overlap),
        "found": Overwrite([]),
        "procedures": Overwrite([]),
        "rejected": [],
        "unread": 0,
        "warnings": [
            f"a part of the document was left out, because it is addressed to a model: {quoted(sentence)}"
            for sentence in orders
        ],
    }


def _checked_headings(headings: object, length: int) -> list[HeadingAt]:
    """The headings, if they are in order and within the text.

    Raises:
        BadInput: They are not.
    """
    last = 0
    for heading in cast("list[HeadingAt]", headings) if isinstance(headings, list) else [headings]:
        if not isinstance(heading, Mapping) or not {"start", "stop", "level", "text"} <= heading.keys():
            raise BadInput(f"headings must be a list of start, stop, level and text, not {excerpt(heading)}")
        if not last <= heading["start"] <= heading["stop"] <= length:
            raise BadInput(
                f"the heading {excerpt(heading['text'])} is not at its place in the text; give offsets of it, in order"
            )
        last = heading["start"]
    return cast("list[HeadingAt]", headings)


def check(state: State) -> dict[str, Any]:
    """The procedures of all parts, checked and merged."""
    procedures, rejected = checked(
        state["found"],
        f"{state['title']}\n{state['text']}",
        # A page that is one task has it under its title.
        [HeadingAt(start=0, stop=0, level=0, text=state["title"]), *state["headings"]],
        state["source"],
        strict=ExtractContext.current(state).strict,
        transcript=state["kind"] == "transcript",
    )
    if not state["parts"]:
        rejected = [Rejected(output=state["title"], reason="the document is empty", sentence="")]
    return {
        "procedures": Overwrite(procedures),
        "rejected": rejected,
        "unread": sum(found["unread"] for found in state["found"]),
    }


def after_begin(state: State) -> list[Send] | Literal["success", "check"]:
    """Every part to the model; an empty document has none, and of a run it is asked first whether it succeeded."""
    parts = state["parts"]
    if parts and not state["succeeded"]:
        return "success"
    if not parts:
        return "check"
    shares = branches(state, calls_left(state, ExtractContext.current(state)), len(parts))
    common = {"title": state["title"], "kind": state["kind"]}
    return [
        Send("extract", {**common, "reading": part, **share})
        for part, share in zip(parts, shares, strict=True)
    ]


def after_success(state: State) -> list[Send] | Literal["success", "check", "__end__"]:
    """Every part of a run that succeeded to the model."""
    return after_begin(state) if state["succeeded"] else "__end__"


def after_check(state: State) -> list[Send] | Literal["__end__"]:
    """Every procedure to its reader, with `verify=True`."""
    context, procedures = ExtractContext.current(state), state["procedures"]
    if not context.verify or not procedures:
        return "__end__"
    shares = branches(state, calls_left(state, context), len(procedures))
    return [Send("verify", {"drafted": one, **share}) for one, share in zip(procedures, shares, strict=True)]


def build_extract(
    *,
    model: BaseChatModel | str | None = None,
    node_models: Mapping[str, BaseChatModel | str] | None = None,
    cache: BaseCache[Any] | None = None,
) -> CompiledStateGraph[State, ExtractContext, Input, Output]:
    """Build and compile the extraction graph.

    Args:
        model: The model of all nodes, as an object or a name for `init_chat_model`.
        node_models: Another model for some nodes ("success", "extract", "verify").
        cache: Keeps the replies of model nodes, so that the same prompt is sent to the same model once.

    Raises:
        BadInput: A model is neither a chat model nor a name.
    """
    target = RetrievalTarget("nothing")
    resources = graph_resources(
        "extract", ExtractContext, target, model=model, node_models=node_models, allow=None
    )
    persistence = Persistence(cache=cache)
    builder: Builder = StateGraph(State, resources.context, input_schema=Input, output_schema=Output)
    begin = BeginNode(
        [node.node for node in MODEL_NODES],
        _initial_state,
        resources,
        searches=lambda _given, _context: False,
        asks=False,
    )
    add_node(builder, begin)
    for node in MODEL_NODES:
        add_model_node(builder, resources, node, persistence)
    add_inline_node(
        builder,
        resources,
        check,
        "Check the procedures without a model, and merge those of the parts.",
        describe,
    )
    builder.add_edge(START, "begin")
    builder.add_conditional_edges("begin", InlineNode(after_begin), ["success", "extract", "check"])
    builder.add_conditional_edges("success", InlineNode(after_success), ["extract", END])
    builder.add_edge("extract", "check")
    builder.add_conditional_edges("check", InlineNode(after_check), ["verify", END])
    builder.add_edge("verify", END)
    return compile_graph(builder, resources, persistence)
