"""Extract the procedures that a document teaches, in the form used by memories.

    begin → success (for a transcript) → extract (each part) → check

Most documents are read in one call. A long one is split before headings into overlapping parts,
which are read in parallel; `check` merges procedures found in two of them and needs no model. The
transcript of a run that did not reach its goal is left out; without feedback on the run, `success`
asks a model to judge.
"""

import operator
from collections.abc import Sequence
from typing import Annotated, Any, Literal, NotRequired

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Overwrite, Send
from pydantic import Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict, Unpack

from stepcraft.building.check import check
from stepcraft.building.drafted import Drafted, Rejected
from stepcraft.building.nodes import PartRead, extract, parts_of, success
from stepcraft.building.settings import ExtractContext
from stepcraft.errors import BadInput
from stepcraft.llm.calls import Inline
from stepcraft.llm.limits import RunLimits
from stepcraft.llm.resources import BuilderOptions, GraphOptions, Resources, compiled
from stepcraft.llm.usage import RunState, Usage, add_usage, add_warnings, no_usage
from stepcraft.nodes.begin import check_nodes, checked_models
from stepcraft.schema import described
from stepcraft.text.clean import clean

MODEL_NODES = ("success", "extract")


@described
class ExtractInput(TypedDict):
    """A document."""

    title: str
    """Its title, or "" if it has none."""
    text: Annotated[str, Field(max_length=2_000_000)]
    """Its text, with Markdown headings."""
    source: str
    """Its origin, such as a path or a URL."""
    kind: NotRequired[Literal["document", "transcript"]]
    """Whether it was written for readers (the default) or records what an agent did."""
    succeeded: NotRequired[bool | None]
    """For a transcript, whether the agent reached its goal; absent if a model should decide."""
    outcome: NotRequired[str]
    """The basis for `succeeded`, given as the reason if the transcript is left out."""


_INPUT = TypeAdapter(ExtractInput)


@described
class ExtractOutput(TypedDict):
    """The procedures found in the document."""

    procedures: list[Drafted]
    """The procedures, in document order."""
    rejected: list[Rejected]
    """Items that are not procedures or were not kept, with the reasons."""
    succeeded: NotRequired[bool | None]
    """For a transcript, whether the agent reached its goal; None if unknown."""
    unread: Annotated[int, operator.add]
    """The number of parts that no model has read; the warnings say why."""
    warnings: Annotated[list[str], add_warnings]
    """Failed steps, limits reached, and anything else that a reader of the procedures should know.
    """
    usage: Annotated[Usage, add_usage]
    """Model calls and tokens, in total and by node."""


class State(ExtractInput, ExtractOutput, RunState):
    """The state of an extraction."""

    written: Annotated[list[PartRead], operator.add]
    """The model's results for each part."""


def _begin(state: dict[str, Any], resources: Resources[ExtractContext]) -> dict[str, Any]:
    """Check the document and the models.

    Raises:
        BadInput: Part of the input, a setting or a name is invalid.
    """
    settings = resources.settings()
    try:
        document = _INPUT.validate_python(state)
    except ValidationError as error:
        raise BadInput(f"the document cannot be read: {error}") from error
    check_nodes(resources.node_models or {}, MODEL_NODES)
    warnings = checked_models(resources, settings, MODEL_NODES)
    kind, text = document.get("kind", "document"), clean(document["text"])
    succeeded = document.get("succeeded") if kind == "transcript" else True
    reason = "" if text.strip() else "the document is empty"
    if succeeded is False:
        reason = document.get("outcome") or "it failed"
    return {
        "limits": RunLimits.of(settings),
        "settings": settings.model_dump(mode="json", exclude_unset=True),
        "text": text,
        "kind": kind,
        "succeeded": succeeded,
        "written": Overwrite([]),
        "procedures": [],
        "rejected": [Rejected(output=document["title"], reason=reason, sentence="")] * bool(reason),
        "unread": Overwrite(0),
        "warnings": Overwrite(warnings),
        "usage": Overwrite(no_usage()),
    }


@Inline
def after_begin(state: State, resources: Resources[ExtractContext]) -> str | Sequence[Send]:
    """Send each part to the model; for an unjudged run, first ask whether it succeeded."""
    if state["rejected"] or state["unread"]:
        return END
    if state.get("succeeded") is None:
        return "success"
    shared = {name: state.get(name) for name in ("title", "kind", "settings", "limits", "usage")}
    parts = parts_of(state["text"], resources.settings(state))
    return [Send("extract", {**shared, "reading": part}) for part in parts]


def extract_builder(
    **options: Unpack[BuilderOptions],
) -> StateGraph[State, ExtractContext, ExtractInput, ExtractOutput]:
    """Return the uncompiled extraction graph."""
    resources = Resources.of("extract", ExtractContext, options)
    builder = StateGraph(
        State, ExtractContext, input_schema=ExtractInput, output_schema=ExtractOutput
    )
    builder.add_node("begin", resources.bind(_begin))
    builder.add_node("success", success.bound(resources))
    builder.add_node("extract", extract.bound(resources))
    builder.add_node("check", resources.bind(check))

    builder.add_edge(START, "begin")
    builder.add_conditional_edges("begin", resources.bind(after_begin), ["success", "extract", END])
    builder.add_conditional_edges("success", resources.bind(after_begin), ["extract", END])
    builder.add_edge("extract", "check")
    builder.add_edge("check", END)
    return builder


def build_extract(
    **options: Unpack[GraphOptions],
) -> CompiledStateGraph[State, ExtractContext, ExtractInput, ExtractOutput]:
    """Build and compile the extraction graph.

    Args:
        **options: The models, the settings and the arguments of `compile`. Sources have no effect.

    Raises:
        BadInput: An option has the wrong type.
    """
    return compiled(extract_builder, "extract", options)
