"""A registry of graphs by name, each imported when it is first used.

Other distributions, such as `stepcraft-papers`, register theirs as entry points in the group
`stepcraft.graphs`; each loads a `GraphInfo`:

    [project.entry-points."stepcraft.graphs"]
    rat_paper = "stepcraft_papers.graphs:RAT_PAPER"
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any

from langgraph.graph.state import CompiledStateGraph
from typing_extensions import Unpack

from stepcraft.contexts.base import Settings
from stepcraft.errors import BadInput
from stepcraft.llm.resources import GraphOptions
from stepcraft.registered import installed, installed_names
from stepcraft.secrets import excerpt

_GROUP = "stepcraft.graphs"
_OF_PAPERS = {"aag_paper", "cot", "few_shot", "rat_paper", "rpg_paper", "self_refinement"}


@dataclass(frozen=True)
class GraphInfo:
    """Where a graph is defined, and what it is for."""

    builder: str
    """The function that builds it, as `package.module:build_graph`."""
    settings: str
    """The class of its settings, as `package.module:GraphContext`."""
    sentence: str
    """Its purpose, for people who choose a graph and for models that call it as a tool."""
    inputs: tuple[str, ...] = ("question",)
    """The keys of its input besides `messages`."""
    prefers_memory: bool = False
    """Whether it searches a memory of procedures, besides any sources."""


GRAPHS: Mapping[str, GraphInfo] = {
    "aag": GraphInfo(
        "stepcraft.graphs.aag:build_aag",
        "stepcraft.contexts.aag:AagContext",
        "For a goal: the steps that reach it, "
        "written by analogy with remembered procedures and checked",
        ("question", "resources"),
        prefers_memory=True,
    ),
    "rat": GraphInfo(
        "stepcraft.graphs.rat:build_rat",
        "stepcraft.contexts.rat:RatContext",
        "For a question that requires reasoning: "
        "every part of the answer is looked up, and what is wrong is changed",
        ("question", "draft"),
    ),
    "rpg": GraphInfo(
        "stepcraft.graphs.rpg:build_rpg",
        "stepcraft.contexts.rpg:RpgContext",
        "For an answer from documents: "
        "the searches are planned, and each sentence is traced to its evidence",
        ("question", "kind"),
    ),
    "chat": GraphInfo(
        "stepcraft.graphs.chat:build_chat",
        "stepcraft.contexts.chat:ChatContext",
        "For a conversation: each message is answered by the graph that fits it, with sources",
    ),
    "direct": GraphInfo(
        "stepcraft.graphs.baselines:build_direct",
        "stepcraft.contexts.baselines:DirectContext",
        "For talk and what needs no sources: one reply of the model",
    ),
    "rag": GraphInfo(
        "stepcraft.graphs.baselines:build_rag",
        "stepcraft.contexts.baselines:RagContext",
        "For one fact from the sources: one search for the question, one answer from it",
    ),
    "react": GraphInfo(
        "stepcraft.graphs.baselines:build_react",
        "stepcraft.contexts.baselines:ReactContext",
        "For a fact that is found by trying: an agent that searches as it sees fit",
    ),
}
"""The graphs in this package."""


def graph_names() -> list[str]:
    """Return the names of the graphs in this package, then those of installed packages."""
    return [*GRAPHS, *installed_names(_GROUP)]


def graph_info(name: str) -> GraphInfo:
    """Return where the graph with the given name is defined, and what it is for.

    Raises:
        BadInput: There is no graph with this name.
    """
    graph = GRAPHS.get(name) or installed(_GROUP, name, GraphInfo)
    if graph is not None:
        return graph
    if name in _OF_PAPERS:
        raise BadInput(
            f"{name} is part of stepcraft-papers, which is not installed: "
            "pip install stepcraft-papers"
        )
    raise BadInput(f"there is no graph {excerpt(name)}; there are {', '.join(graph_names())}")


def get_graph(
    name: str, /, **options: Unpack[GraphOptions]
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Build the graph with the given name.

    Raises:
        BadInput: There is no graph with this name, or an option has the wrong type.
    """
    graph: CompiledStateGraph[Any, Any, Any, Any] = resolve_name(graph_info(name).builder)(
        **options
    )
    return graph


def context_of(name: str) -> type[Settings]:
    """Return the class of a graph's settings.

    Raises:
        BadInput: There is no graph with this name.
    """
    settings: type[Settings] = resolve_name(graph_info(name).settings)
    return settings
