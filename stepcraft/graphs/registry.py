"""The graphs by name, each imported when it is first used."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from langgraph.graph.state import CompiledStateGraph
from typing_extensions import Unpack

from stepcraft.contexts.base import Settings
from stepcraft.errors import BadInput
from stepcraft.llm.resources import GraphOptions
from stepcraft.secrets import excerpt


@dataclass(frozen=True)
class GraphInfo:
    """A graph of the package."""

    module: str
    """The module below `stepcraft.graphs`."""
    sentence: str
    """What it is for, for people who choose and for models that call it as a tool."""
    inputs: tuple[str, ...] = ("question",)
    """The keys of its input beside `messages`."""


GRAPHS: Mapping[str, GraphInfo] = {
    "aag": GraphInfo(
        "aag",
        "For a goal: the steps that reach it, "
        "written by analogy with remembered procedures and checked",
        ("question", "resources"),
    ),
    "rat": GraphInfo(
        "rat",
        "For a draft, or a question that takes reasoning: "
        "every part is looked up, and what is wrong is changed",
        ("question", "draft"),
    ),
    "rpg": GraphInfo(
        "rpg",
        "For an answer from documents: "
        "what has to be looked up is planned, and each sentence is traced to its evidence",
        ("question", "kind"),
    ),
    "chat": GraphInfo(
        "chat",
        "For a conversation: each message is answered by the graph that fits it, with sources",
    ),
    "direct": GraphInfo("baselines", "For talk and what needs no sources: one reply of the model"),
    "cot": GraphInfo(
        "baselines",
        "For arithmetic and logic: the model thinks step by step, then answers, in one call",
    ),
    "rag": GraphInfo(
        "baselines",
        "For one fact from the sources: one search for the question, one answer from it",
    ),
    "few_shot": GraphInfo(
        "baselines", "For a goal, in one call: written after the pattern of random procedures"
    ),
    "react": GraphInfo(
        "baselines", "For a fact that is found by trying: an agent that searches as it sees fit"
    ),
    "rat_paper": GraphInfo("paper.rat", "RAT as its paper has it: thought by thought"),
    "rpg_paper": GraphInfo(
        "paper.rpg",
        "RPG as its paper has it: plan, select and answer in a loop",
        ("question", "kind"),
    ),
    "aag_paper": GraphInfo(
        "paper.aag",
        "AAG as its paper has it: questions, answers, critic and edits",
        ("question", "resources"),
    ),
}


def get_graph(
    name: str, /, **options: Unpack[GraphOptions]
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Build a graph by its name.

    Raises:
        BadInput: There is no graph of this name, or an option is of another kind than it has to be.
    """
    graph: CompiledStateGraph[Any, Any, Any, Any] = getattr(_module(name), f"build_{name}")(
        **options
    )
    return graph


def context_of(name: str) -> type[Settings]:
    """Return the class of a graph's settings.

    Raises:
        BadInput: There is no graph of this name.
    """
    words = (part.capitalize() for part in name.split("_"))
    settings: type[Settings] = getattr(_module(name), f"{''.join(words)}Context")
    return settings


def _module(name: str) -> Any:
    if name not in GRAPHS:
        raise BadInput(f"there is no graph {excerpt(name)}; there are {', '.join(GRAPHS)}")
    return import_module(f"stepcraft.graphs.{GRAPHS[name].module}")
