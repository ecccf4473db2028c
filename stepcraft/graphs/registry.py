"""All graphs by name. A graph is imported when it is first used."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast, get_args, get_type_hints

from stepcraft.errors import BadInput

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

    from stepcraft.contexts.base import Context
    from stepcraft.graphs.compile import Allow, Checkpointer


@dataclass(frozen=True)
class Listed:
    """The module of a graph, when to take it and what it does."""

    module: str
    line: str
    """When to take it and what it does, as people and tool-calling models choose by it."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """What its `graph` is built with."""
    is_baseline: bool = False
    """Whether it is there for the others to be compared with."""

    @property
    def sentence(self) -> str:
        """The line with a capital letter."""
        return self.line[0].upper() + self.line[1:]


GRAPHS = {
    "aag": Listed(
        "aag",
        "for a goal: the steps that reach it, written with the help of remembered procedures and criticised",
    ),
    "rat": Listed(
        "rat",
        "for a question that takes reasoning, code or a long text: a draft, each thought of which is corrected by sources",
        {"fallback": "memory"},
    ),
    "rpg": Listed(
        "rpg",
        "for an answer that joins facts of several sources: planned topic by topic, each sentence traced to its evidence",
        {"fallback": "memory"},
    ),
    "direct": Listed(
        "baselines.direct", "for talk and what needs no sources: one reply of the model", is_baseline=True
    ),
    "cot": Listed(
        "baselines.cot",
        "for arithmetic and logic without sources: the model thinks step by step, then answers, in one call",
        is_baseline=True,
    ),
    "rag": Listed(
        "baselines.rag",
        "for one fact from the sources, quickly: one search for the question, one answer from what it finds",
        is_baseline=True,
    ),
    "few_shot": Listed(
        "baselines.few_shot",
        "for a goal, in one call: the steps, written after the pattern of random procedures of the memory",
        is_baseline=True,
    ),
    "react": Listed(
        "baselines.react",
        "for a fact that is found only by trying: an agent that searches as often as it sees fit, then answers",
        is_baseline=True,
    ),
}
"""The methods, then the baselines."""

CHAT = {
    "chat": Listed(
        "chat",
        "for a conversation: each message is answered by the method that fits it, with sources",
        {"fallback": "memory"},
    )
}
"""The façade over them. It takes messages, so it stands beside the graphs that are compared with each other."""


def get_graph(
    name: str, *, allow: "Allow" = None, checkpointer: "Checkpointer" = None
) -> "CompiledStateGraph[Any, Any, Any, Any]":
    """A compiled graph by its name: aag, rat, rpg, direct, cot, rag, few_shot, react or chat.

    All accept `{"question": …}` and return at least `answer`, `evidence`, `warnings` and `usage`. An object of another
    type as context, such as `SimpleNamespace(retriever="memory", k=3)`, works for all of them: each graph reads the
    fields that it has.

    Args:
        name: The name.
        allow: What the contexts of its runs may name, as the functions that build graphs take it; None for the rules
            in STEPCRAFT_ALLOW.
        checkpointer: Keeps the state of each thread, so that an interrupted run can be resumed.

    Without rules and a checkpointer it is the same graph with every call.

    Raises:
        BadInput: There is no graph with this name, or an entry of `allow` is not understood.
    """
    listed = _listed(name)
    module = import_module(f"stepcraft.graphs.{listed.module}")
    graph: CompiledStateGraph[Any, Any, Any, Any] = module.graph
    if allow is not None or checkpointer is not None:
        build = getattr(module, f"build_{name}")
        graph = build(allow=allow, checkpointer=checkpointer, **listed.arguments)
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


def kinds_of(name: str) -> tuple[str, ...]:
    """The kinds of answer that a graph's input may ask for; none if it has no `kind`.

    Raises:
        BadInput: There is no graph with this name.
    """
    return get_args(get_type_hints(get_graph(name).builder.input_schema).get("kind"))


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
