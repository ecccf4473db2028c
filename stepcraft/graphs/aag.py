"""AAG, analogy-augmented generation: write a procedure from similar ones in memory (AAG §3).

The graph first lists what to look up, and with `looks=2` does so once more after reading the first
results. It then drafts the steps from the procedures it has found, and checks each step against the
evidence found for it. The paper's algorithm is `stepcraft_papers.graphs.aag`.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from langgraph.channels import EphemeralValue
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import TypedDict, Unpack

from stepcraft.access import check_may_remember
from stepcraft.contexts.aag import AagContext
from stepcraft.llm.calls import Inline
from stepcraft.llm.resources import BuilderOptions, GraphOptions, Resources, compiled
from stepcraft.memory.procedure import checked_tags
from stepcraft.nodes.begin import Begin, checked_resources, empty_check
from stepcraft.nodes.check_names import CheckedName, check_names
from stepcraft.nodes.draft import draft_steps
from stepcraft.nodes.edit import after_edit, edit_steps, publish_steps
from stepcraft.nodes.look_again import after_retrieve, look_again
from stepcraft.nodes.plan import look_up
from stepcraft.nodes.remember import remember
from stepcraft.nodes.retrieve import Retrieve
from stepcraft.nodes.review import Review, check_can_pause, review
from stepcraft.nodes.revise import after_check, critic
from stepcraft.nodes.split import split_into_steps
from stepcraft.nodes.state import Answer, LookState, Messages, Revision
from stepcraft.retrieval.target import OpenedSource
from stepcraft.schema import described

__all__ = ["AagContext", "AagInput", "AagOutput", "aag_builder", "build_aag", "graph"]

MODEL_NODES = (look_up, look_again, draft_steps, critic)


@described
class AagInput(TypedDict, total=False):
    """A goal, or messages, and the available resources."""

    question: Annotated[str, EphemeralValue]
    """The goal to reach; without one, the last human message is used."""
    resources: Annotated[str | list[str], EphemeralValue]
    """The available resources, as a comma-separated string or a list."""
    messages: Messages


@described
class AagOutput(Answer):
    """The procedure, with details of how it was written."""

    steps: list[str]
    """The steps in order; `answer` holds them as numbered text."""
    queries: list[str]
    """The queries made before the steps were drafted."""
    first_draft: str
    """The steps before the checks, as one string."""
    revisions: list[Revision]
    """The critic's changes, by step and round."""
    names: list[CheckedName]
    """The names in the code of the steps, and where else they occur; an unverified one may be
    invented.
    """
    reviews: list[Review]
    """The decisions of human reviewers on the steps, if `review` or `remember` is set."""
    remembered: str
    """The id of the procedure that the steps were saved as, or "" if they were not."""


class State(LookState, AagInput):
    """The state of AAG."""

    own_draft: str
    """The draft as the graph wrote it, or "" if it wrote none."""
    steps: list[str]
    names: list[CheckedName]
    reviews: list[Review]
    reason: str
    """The reason why a person rejected the steps, or "" once they have been revised."""
    remembered: str


def _initial(
    state: Mapping[str, Any], settings: AagContext, searched: Sequence[OpenedSource]
) -> dict[str, Any]:
    if settings.remember:
        check_may_remember()
    if settings.review or settings.remember:
        check_can_pause("review=True and remember=True")
    checked_tags(settings.where)
    memory = searched[0].memory if len(searched) == 1 else None
    is_empty = memory is not None and memory.is_empty()
    return {
        **empty_check(settings, searched),
        "task_resources": checked_resources(state.get("resources")),
        "own_draft": "",
        "steps": [],
        "names": [],
        "reviews": [],
        "reason": "",
        "remembered": "",
        "warnings": [f"the memory {searched[0].label} is empty"] if is_empty else [],
    }


@Inline
def after_names(state: State, resources: Resources[AagContext]) -> str:
    settings = resources.settings(state)
    return "asked for" if settings.review or settings.remember else "finish"


@Inline
def after_review(state: State, resources: Resources[AagContext]) -> str:
    if state["reason"]:
        return "rejected"
    return "to be remembered" if resources.settings(state).remember else "approved"


def aag_builder(
    **options: Unpack[BuilderOptions],
) -> StateGraph[State, AagContext, AagInput, AagOutput]:
    """Return AAG as an uncompiled graph, so that nodes can be replaced, wrapped or added."""
    resources = Resources.of("aag", AagContext, options, prefers_memory=True)
    builder = StateGraph(State, AagContext, input_schema=AagInput, output_schema=AagOutput)
    builder.add_node("begin", Begin(resources, [node.name for node in MODEL_NODES], _initial))
    for node in MODEL_NODES:
        builder.add_node(node.name, node.bound(resources))
    builder.add_node("retrieve", Retrieve(resources, fuse=True))
    builder.add_node("split", split_into_steps)
    builder.add_node("edit", resources.bind(edit_steps))
    builder.add_node("check_names", resources.bind(check_names))
    builder.add_node("review", resources.bind(review))
    builder.add_node("remember", resources.bind(remember))
    builder.add_node("finish", resources.bind(publish_steps))

    builder.add_edge(START, "begin")
    builder.add_edge("begin", "to_query")
    builder.add_edge("to_query", "retrieve")
    builder.add_conditional_edges(
        "retrieve",
        after_retrieve,
        {"look again": "look_again", "write": "draft", "draft to check": "critic"},
    )
    builder.add_edge("look_again", "retrieve")
    builder.add_edge("draft", "split")
    builder.add_edge("split", "retrieve")
    builder.add_conditional_edges(
        "critic", after_check, {"parts are left": "critic", "all parts": "edit"}
    )
    builder.add_conditional_edges(
        "edit", resources.bind(after_edit), {"changed": "retrieve", "checked": "check_names"}
    )
    builder.add_conditional_edges(
        "check_names", resources.bind(after_names), {"asked for": "review", "finish": "finish"}
    )
    builder.add_conditional_edges(
        "review",
        resources.bind(after_review),
        {"rejected": "critic", "to be remembered": "remember", "approved": "finish"},
    )
    builder.add_edge("remember", "finish")
    builder.add_edge("finish", END)
    return builder


def build_aag(
    **options: Unpack[GraphOptions],
) -> CompiledStateGraph[State, AagContext, AagInput, AagOutput]:
    """Build and compile AAG, with the options of the builder and of LangGraph's `compile`.

    Raises:
        BadInput: An option has the wrong type.
    """
    return compiled(aag_builder, "aag", options)


graph = build_aag()
"""AAG configured by the context, the environment and the defaults, for servers and Studio."""
