"""RPG, retrieve-plan-generate: plan the searches, look again, write, check each part (RPG §3).

A second round of searches is planned from the results of the first, so that multi-hop questions
need no loop. The paper's loop is `stepcraft_papers.graphs.rpg`.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from langgraph.channels import EphemeralValue
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import TypedDict, Unpack

from stepcraft.contexts.rpg import RpgContext
from stepcraft.errors import BadInput
from stepcraft.llm.resources import BuilderOptions, GraphOptions, Resources, compiled
from stepcraft.nodes.begin import Begin, empty_check
from stepcraft.nodes.edit import after_edit, edit_text
from stepcraft.nodes.generate import generate
from stepcraft.nodes.look_again import after_retrieve, look_again
from stepcraft.nodes.plan import plan
from stepcraft.nodes.retrieve import Retrieve
from stepcraft.nodes.revise import after_check, revise
from stepcraft.nodes.split import split_into_blocks
from stepcraft.nodes.state import Answer, Check, LookState, Messages, Question, Revision
from stepcraft.nodes.to_query import to_query
from stepcraft.nodes.trace import TracedSentence, trace
from stepcraft.retrieval.target import OpenedSource
from stepcraft.schema import described
from stepcraft.secrets import excerpt

__all__ = ["RpgContext", "RpgInput", "RpgOutput", "build_rpg", "graph", "rpg_builder"]

MODEL_NODES = (plan, look_again, generate, to_query, revise)
KINDS = ("auto", "long", "short")


@described
class RpgInput(TypedDict, total=False):
    """A question, or messages."""

    question: Question
    kind: Annotated[Literal["auto", "long", "short"], EphemeralValue]
    """The form of the answer; `auto` leaves it to the plan. The setting with the same name takes
    precedence.
    """
    messages: Messages


@described
class RpgOutput(Answer):
    """The answer, and the evidence for each of its sentences."""

    sentences: list[TracedSentence]
    """The sentences of the answer, each with the ids of the passages that it cites."""
    queries: list[str]
    """The queries made before the answer was written."""
    form: str
    """The form of the answer: long or short."""
    first_draft: str
    """The answer before the checks."""
    checks: list[Check]
    """The results of checking the draft against the evidence, statement by statement."""
    revisions: list[Revision]
    """The changes made by the checks, by part and round."""


class State(LookState, RpgInput):
    """The state of RPG."""

    form: str
    """The form of the answer: long, short, or auto until it is planned."""
    sentences: list[TracedSentence]


def _initial(
    state: Mapping[str, Any], settings: RpgContext, searched: Sequence[OpenedSource]
) -> dict[str, Any]:
    kind = settings.kind if settings.kind != "auto" else state.get("kind") or "auto"
    if kind not in KINDS:
        raise BadInput(
            f"kind={excerpt(kind)} cannot be used: it should be one of {', '.join(KINDS)}"
        )
    return {**empty_check(settings, searched), "form": kind, "sentences": []}


def rpg_builder(
    **options: Unpack[BuilderOptions],
) -> StateGraph[State, RpgContext, RpgInput, RpgOutput]:
    """Return RPG as an uncompiled graph, so that nodes can be replaced, wrapped or added."""
    resources = Resources.of("rpg", RpgContext, options)
    builder = StateGraph(State, RpgContext, input_schema=RpgInput, output_schema=RpgOutput)
    builder.add_node("begin", Begin(resources, [node.name for node in MODEL_NODES], _initial))
    for node in MODEL_NODES:
        builder.add_node(node.name, node.bound(resources))
    builder.add_node("retrieve", Retrieve(resources, by_statement=True, fuse=True))
    builder.add_node("split", split_into_blocks)
    builder.add_node("edit", edit_text)
    builder.add_node("trace", resources.bind(trace))

    builder.add_edge(START, "begin")
    builder.add_edge("begin", "plan")
    builder.add_edge("plan", "retrieve")
    builder.add_conditional_edges(
        "retrieve",
        after_retrieve,
        {"look again": "look_again", "write": "generate", "draft to check": "revise"},
    )
    builder.add_edge("look_again", "retrieve")
    builder.add_edge("generate", "split")
    builder.add_edge("split", "to_query")
    builder.add_edge("to_query", "retrieve")
    builder.add_conditional_edges(
        "revise", after_check, {"parts are left": "revise", "all parts": "edit"}
    )
    builder.add_conditional_edges(
        "edit", resources.bind(after_edit), {"changed": "to_query", "checked": "trace"}
    )
    builder.add_edge("trace", END)
    return builder


def build_rpg(
    **options: Unpack[GraphOptions],
) -> CompiledStateGraph[State, RpgContext, RpgInput, RpgOutput]:
    """Build and compile RPG, with the options of the builder and of LangGraph's `compile`.

    Raises:
        BadInput: An option has the wrong type.
    """
    return compiled(rpg_builder, "rpg", options)


graph = build_rpg()
"""RPG configured by the context, the environment and the defaults, for servers and Studio."""
