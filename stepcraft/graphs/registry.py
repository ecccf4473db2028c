"""All graphs by name. A graph is imported when it is first used."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast, get_type_hints

from stepcraft.errors import BadInput

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

    from stepcraft.contexts.base import Context
    from stepcraft.graphs.compile import Allow


@dataclass(frozen=True)
class Listed:
    """The module of a graph, and what it does in one line."""

    module: str
    line: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """What its `graph` is built with."""


GRAPHS = {
    "aag": Listed("aag", "a procedure for a goal, by analogy with remembered ones, criticised and edited"),
    "rat": Listed("rat", "an answer whose every thought is checked against sources", {"fallback": "memory"}),
    "rpg": Listed(
        "rpg",
        "an answer in segments, each planned and written from sentences selected for it",
        {"fallback": "memory"},
    ),
    "direct": Listed("baselines.direct", "baseline: the model is asked the question, without evidence"),
    "cot": Listed("baselines.cot", "baseline: the model thinks step by step, then answers, in one call"),
    "rag": Listed("baselines.rag", "baseline: one search for the question, one answer from what it finds"),
    "few_shot": Listed("baselines.few_shot", "baseline: random procedures of the memory as examples"),
    "react": Listed("baselines.react", "baseline: an agent that may search again before it answers"),
}
"""The methods, then the baselines."""

CHAT = {
    "chat": Listed(
        "chat",
        "a conversation: each message is answered by the method that fits it, with sources",
        {"fallback": "memory"},
    )
}
"""The façade over them. It takes messages, so it stands beside the graphs that are compared with each other."""


def get_graph(name: str, *, allow: "Allow" = None) -> "CompiledStateGraph[Any, Any, Any, Any]":
    """A compiled graph by its name: aag, rat, rpg, direct, cot, rag, few_shot, react or chat.

    All accept `{"question": …}` and return at least `answer`, `evidence`, `warnings` and `usage`. An object of another
    type as context, such as `SimpleNamespace(retriever="memory", k=3)`, works for all of them: each graph reads the
    fields that it has.

    Args:
        name: The name.
        allow: What the contexts of its runs may name, as the functions that build graphs take it; None for the rules
            in STEPCRAFT_ALLOW, and for the same graph with every call.

    Raises:
        BadInput: There is no graph with this name, or an entry of `allow` is not understood.
    """
    listed = _listed(name)
    module = import_module(f"stepcraft.graphs.{listed.module}")
    graph: CompiledStateGraph[Any, Any, Any, Any] = (
        module.graph if allow is None else getattr(module, f"build_{name}")(allow=allow, **listed.arguments)
    )
    return graph


def context_of(name: str) -> "type[Context]":
    """The context class of a graph.

    Raises:
        BadInput: There is no graph with this name.
    """
    return cast("type[Context]", get_graph(name).builder.context_schema)


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
    graphs = {**GRAPHS, **CHAT}
    if name not in graphs:
        near = difflib.get_close_matches(str(name), graphs, 1, 0.5)
        hint = f" did you mean {near[0]!r}?" if near else ""
        raise BadInput(f"there is no graph {name!r};{hint} there is {', '.join(graphs)}")
    return graphs[name]
