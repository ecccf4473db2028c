"""The schemas and the shape of the baselines. Input and output have the keys of the methods, so that they compare."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal, NotRequired, get_args

from langgraph.channels import EphemeralValue
from langgraph.graph import END, START, StateGraph
from pydantic import Field
from typing_extensions import TypedDict

from stepcraft.contexts.base import Context
from stepcraft.evidence import Evidence
from stepcraft.graphs.compile import (
    Builder,
    DescribedNode,
    Graph,
    Persistence,
    add_model_node,
    add_node,
    compile_graph,
)
from stepcraft.llm.budget import Budgeted, Usage
from stepcraft.llm.node import ModelNode
from stepcraft.llm.resources import GraphResources
from stepcraft.nodes.begin import BeginNode, checked_option, checked_text
from stepcraft.nodes.retrieve import wanted
from stepcraft.nodes.rpg.input_passages import Passage, given_passages
from stepcraft.schema import described, for_programs

Kind = Literal["long", "short", "multihop"]


@described
class Input(TypedDict):
    """A question, and whatever else one of the methods takes."""

    question: str
    """The question to answer, or the goal to reach."""
    resources: NotRequired[str | list[str]]
    """The available resources, as a comma-separated text or a list."""
    kind: NotRequired[Kind]
    """Length of the answer: long (the default), or as short as possible."""
    passages: NotRequired[Annotated[list[str | Passage], for_programs]]
    """Passages to answer from, instead of a search; for the baselines that search."""


@described
class Output(TypedDict):
    """The answer and how it was written."""

    answer: Annotated[str, Field(description="The answer.")]
    evidence: Annotated[
        list[Evidence], Field(description="The passages or examples that the model was shown.")
    ]
    warnings: Annotated[
        list[str],
        Field(
            description="Failed steps, reached limits, and whatever else a reader of the answer should know."
        ),
    ]
    usage: Annotated[Usage, Field(description="Model calls and tokens, in total and by node.")]


class State(Output, Budgeted):
    """The state of a baseline."""

    question: str
    resources: NotRequired[Annotated[Any, EphemeralValue]]
    """The input as it was given; not kept for the thread's next run."""
    kind: NotRequired[Annotated[Any, EphemeralValue]]
    """The input as it was given; not kept for the thread's next run."""
    passages: NotRequired[Annotated[Any, EphemeralValue]]
    """The input as it was given; not kept for the thread's next run."""
    passages_given: bool
    """Whether the input has passages, so that nothing is searched."""
    resources_text: str
    """The resources as one text, "" if none are named."""
    answer_style: Kind
    """The form of the answer, from the input's `kind`."""


InitialState = Callable[[Mapping[str, Any], Context], dict[str, Any]]


def initial_state(given: Mapping[str, Any], _context: Context) -> dict[str, Any]:
    """The state that a baseline with evidence starts with.

    Raises:
        BadInput: The resources, the kind or the passages cannot be used.
    """
    passages = given.get("passages")
    evidence, warnings = ([], []) if passages is None else given_passages(passages)
    return {
        "answer": "",
        "resources_text": checked_text("resources", given.get("resources") or ""),
        "answer_style": checked_option("kind", given.get("kind"), get_args(Kind)),
        "passages_given": passages is not None,
        "evidence": evidence,
        "warnings": warnings,
    }


def initial_state_without_evidence(given: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """The state that a baseline starts with whose model is shown no passages.

    Raises:
        BadInput: The resources, the kind or the passages cannot be used.
    """
    return {**initial_state(given, context), "evidence": [], "warnings": []}


def searches(given: Mapping[str, Any], _context: Context) -> bool:
    """Whether a run with this input searches: not if it has passages."""
    return given.get("passages") is None


def to_look_up(state: State) -> list[str]:
    """The question with the resources; nothing if the input has passages."""
    return [] if state["passages_given"] else [wanted(state["question"], state["resources_text"])]


def keep_found(state: State, found: list[list[Evidence]], _failed: list[str]) -> dict[str, Any]:
    """The passages that were found, or those of the input."""
    return {"evidence": found[0] if found else state["evidence"]}


def builder_with_begin(
    resources: GraphResources,
    model_nodes: Sequence[str],
    *,
    state: type[Any] = State,
    output: type[Any] = Output,
    initial: InitialState = initial_state_without_evidence,
    searches: Callable[[Any, Any], bool] = lambda _given, _context: True,
) -> Builder:
    """The builder of a baseline, with its first node; `model_nodes` names the nodes that ask a model."""
    builder: Builder = StateGraph(state, resources.context, input_schema=Input, output_schema=output)
    add_node(builder, BeginNode(model_nodes, initial, resources, searches=searches))
    builder.add_edge(START, "begin")
    return builder


def linear_graph(
    builder: Builder,
    resources: GraphResources,
    node: ModelNode,
    persistence: Persistence,
    *before: DescribedNode,
) -> Graph:
    """Complete and compile a baseline of one line: begin, the nodes before the answer, the answer."""
    for earlier in before:
        add_node(builder, earlier)
    add_model_node(builder, resources, node, persistence)
    for one, other in pairwise(["begin", *(str(earlier.name) for earlier in before), node.node, END]):
        builder.add_edge(one, other)
    return compile_graph(builder, resources, persistence)
