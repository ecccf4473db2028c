"""All graphs by name. A graph is imported when it is first used."""

import difflib
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, get_type_hints

from stepcraft.errors import BadInput

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

    from stepcraft.contexts.base import Context
    from stepcraft.llm.resources import GraphResources


@dataclass(frozen=True)
class Listed:
    """The module of a graph, and what it does in one line."""

    module: str
    line: str


GRAPHS = {
    "aag": Listed("aag", "a procedure for a goal, by analogy with remembered ones, criticised and edited"),
    "rat": Listed("rat", "an answer whose every thought is checked against sources"),
    "rpg": Listed("rpg", "an answer in segments, each planned and written from sentences selected for it"),
    "direct": Listed("baselines.direct", "baseline: the model is asked the question, without evidence"),
    "cot": Listed("baselines.cot", "baseline: the model thinks step by step, then answers, in one call"),
    "rag": Listed("baselines.rag", "baseline: one search for the question, one answer from what it finds"),
    "few_shot": Listed("baselines.few_shot", "baseline: random procedures of the memory as examples"),
    "react": Listed("baselines.react", "baseline: an agent that may search again before it answers"),
}
"""The methods, then the baselines."""


def get_graph(name: str) -> "CompiledStateGraph[Any, Any, Any, Any]":
    """A compiled graph by its name: aag, rat, rpg, direct, cot, rag, few_shot or react.

    All accept `{"question": …}` and return at least `answer`, `evidence`, `warnings` and `usage`. An object of another
    type as context, such as `SimpleNamespace(retriever="memory", k=3)`, works for all of them: each graph reads the
    fields that it has.

    Raises:
        BadInput: There is no graph with this name.
    """
    graph: CompiledStateGraph[Any, Any, Any, Any] = import_module(
        f"stepcraft.graphs.{_listed(name).module}"
    ).graph
    return graph


def resources_of(name: str) -> "GraphResources":
    """What a graph was built with: its context, its models, what it searches.

    Raises:
        BadInput: There is no graph with this name.
    """
    graph = get_graph(name)
    resources: GraphResources = import_module("stepcraft.graphs.compile").resources_of(graph)
    return resources


def context_of(name: str) -> "type[Context]":
    """The context class of a graph.

    Raises:
        BadInput: There is no graph with this name.
    """
    return resources_of(name).context


def inputs_of(name: str) -> list[str]:
    """The keys of a graph's input.

    Raises:
        BadInput: There is no graph with this name.
    """
    return list(get_type_hints(get_graph(name).builder.input_schema))


def outputs_of(name: str) -> list[str]:
    """The keys of a graph's output.

    Raises:
        BadInput: There is no graph with this name.
    """
    return list(get_type_hints(get_graph(name).builder.output_schema))


def _listed(name: str) -> Listed:
    if name not in GRAPHS:
        near = difflib.get_close_matches(str(name), GRAPHS, 1, 0.5)
        hint = f" did you mean {near[0]!r}?" if near else ""
        raise BadInput(f"there is no graph {name!r};{hint} there is {', '.join(GRAPHS)}")
    return GRAPHS[name]
