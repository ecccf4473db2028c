"""Every graph by its name. A graph is loaded when it is first asked for."""

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
    """Where a graph stands, and what it does in a line."""

    module: str
    line: str


GRAPHS = {
    "aag": Listed("aag", "a procedure for a goal, by analogy with remembered ones, criticised and edited"),
    "rat": Listed("rat", "an answer whose every thought is checked against sources"),
    "rpg": Listed("rpg", "an answer in segments, each planned and written from sentences selected for it"),
    "direct": Listed("baselines.direct", "baseline: the question is put to the model, and that is all"),
    "cot": Listed("baselines.cot", "baseline: the model thinks step by step, then answers, in one call"),
    "rag": Listed("baselines.rag", "baseline: one search for the question, one answer from what it finds"),
    "few_shot": Listed("baselines.few_shot", "baseline: random procedures of the memory as examples"),
    "react": Listed("baselines.react", "baseline: an agent that may search again before it answers"),
}
"""The methods, then what they are compared with."""


def get_graph(name: str) -> "CompiledStateGraph[Any, Any, Any, Any]":
    """A compiled graph by its name: aag, rat, rpg, direct, cot, rag, few_shot or react.

    All take `{"question": …}` and give at least `answer`, `evidence`, `warnings` and `usage`. Of any object that is
    given as context, such as `SimpleNamespace(retriever="memory", k=3)`, each takes the fields it knows, so that
    whatever runs one runs all.

    Raises:
        BadInput: there is no graph of this name.
    """
    graph: CompiledStateGraph[Any, Any, Any, Any] = import_module(
        f"stepcraft.graphs.{_listed(name).module}"
    ).graph
    return graph


def build_of(name: str) -> "GraphResources":
    """What a graph of the registry was built with: its context, its models, what it searches.

    Raises:
        BadInput: there is no graph of this name.
    """
    begin: Any = get_graph(name).builder.nodes["begin"].runnable
    build: GraphResources = begin.build
    return build


def context_of(name: str) -> "type[Context]":
    """The settings that a run of a graph takes.

    Raises:
        BadInput: there is no graph of this name.
    """
    return build_of(name).context


def inputs_of(name: str) -> list[str]:
    """The keys of what a graph is given.

    Raises:
        BadInput: there is no graph of this name.
    """
    return list(get_type_hints(get_graph(name).builder.input_schema))


def outputs_of(name: str) -> list[str]:
    """The keys of what a graph gives.

    Raises:
        BadInput: there is no graph of this name.
    """
    return list(get_type_hints(get_graph(name).builder.output_schema))


def _listed(name: str) -> Listed:
    if name not in GRAPHS:
        near = difflib.get_close_matches(str(name), GRAPHS, 1, 0.5)
        hint = f" did you mean {near[0]!r}?" if near else ""
        raise BadInput(f"there is no graph {name!r};{hint} there is {', '.join(GRAPHS)}")
    return GRAPHS[name]
