"""RAT, retrieval-augmented thoughts: write, look up each part, fix what is wrong (RAT §3).

A draft that is passed in is checked as is: "check this answer against my documents". The paper's
algorithm, thought by thought, is `stepcraft_papers.graphs.rat`.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from langgraph.channels import EphemeralValue
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import TypedDict, Unpack

from stepcraft.contexts.rat import RatContext
from stepcraft.errors import BadInput
from stepcraft.llm.calls import Inline
from stepcraft.llm.resources import BuilderOptions, GraphOptions, Resources, compiled
from stepcraft.nodes.begin import Begin, draft_of, empty_check, last_draft
from stepcraft.nodes.draft import draft
from stepcraft.nodes.edit import after_edit, edit_text
from stepcraft.nodes.finish import finish
from stepcraft.nodes.retrieve import Retrieve
from stepcraft.nodes.revise import after_check, revise
from stepcraft.nodes.split import split_into_thoughts
from stepcraft.nodes.state import Answer, Check, CheckState, Messages, Question, Revision
from stepcraft.nodes.to_query import to_query
from stepcraft.retrieval.target import OpenedSource
from stepcraft.schema import described

__all__ = ["RatContext", "RatInput", "RatOutput", "build_rat", "graph", "rat_builder"]

MODEL_NODES = (draft, to_query, revise, finish)


@described
class RatInput(TypedDict, total=False):
    """A question, or messages, and optionally a draft to check."""

    question: Question
    draft: Annotated[str, EphemeralValue]
    """An existing answer to check, in place of a new draft."""
    messages: Messages


@described
class RatOutput(Answer):
    """The answer, with details of how it was corrected."""

    first_draft: str
    """The text before the checks."""
    checks: list[Check]
    """The results of checking the draft against the evidence, statement by statement."""
    revisions: list[Revision]
    """The changes made by the checks, by part and round."""


class State(CheckState, RatInput):
    """The state of RAT."""

    own_draft: str
    """The draft that the graph wrote, or "" if it was passed in."""


def _initial(
    state: Mapping[str, Any], settings: RatContext, searched: Sequence[OpenedSource]
) -> dict[str, Any]:
    text = draft_of(state.get("draft"))
    if settings.check_last:
        text = text or last_draft(state)
        if not text:
            raise BadInput(
                "check_last=True needs an AI message without tool calls "
                "after the last human message"
            )
    return {
        **empty_check(settings, searched),
        "queries": [] if text else [state["task"]],
        "first_draft": text,
        "answer": text,
        "own_draft": "",
    }


@Inline
def after_begin(state: State) -> str:
    return "with a draft" if state["first_draft"] else "question only"


@Inline
def after_retrieve(state: State) -> str:
    return "draft to check" if state["first_draft"] else "no draft yet"


def rat_builder(
    **options: Unpack[BuilderOptions],
) -> StateGraph[State, RatContext, RatInput, RatOutput]:
    """Return RAT as an uncompiled graph, so that nodes can be replaced, wrapped or added."""
    resources = Resources.of("rat", RatContext, options)
    builder = StateGraph(State, RatContext, input_schema=RatInput, output_schema=RatOutput)
    builder.add_node("begin", Begin(resources, [node.name for node in MODEL_NODES], _initial))
    for node in MODEL_NODES:
        builder.add_node(node.name, node.bound(resources))
    builder.add_node("retrieve", Retrieve(resources, by_statement=True))
    builder.add_node("split", resources.bind(split_into_thoughts))
    builder.add_node("edit", edit_text)

    builder.add_edge(START, "begin")
    builder.add_conditional_edges(
        "begin", after_begin, {"question only": "retrieve", "with a draft": "split"}
    )
    builder.add_edge("draft", "split")
    builder.add_edge("split", "to_query")
    builder.add_edge("to_query", "retrieve")
    builder.add_conditional_edges(
        "retrieve",
        after_retrieve,
        {"no draft yet": "draft", "draft to check": "revise"},
    )
    builder.add_conditional_edges(
        "revise", after_check, {"parts are left": "revise", "all parts": "edit"}
    )
    builder.add_conditional_edges(
        "edit", resources.bind(after_edit), {"changed": "to_query", "checked": "finish"}
    )
    builder.add_edge("finish", END)
    return builder


def build_rat(
    **options: Unpack[GraphOptions],
) -> CompiledStateGraph[State, RatContext, RatInput, RatOutput]:
    """Build and compile RAT, with the options of the builder and of LangGraph's `compile`.

    Raises:
        BadInput: An option has the wrong type.
    """
    return compiled(rat_builder, "rat", options)


graph = build_rat()
"""RAT configured by the context, the environment and the defaults, for servers and Studio."""
