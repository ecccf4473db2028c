"""Learn from an agent's run: a procedure that it demonstrates, or a repair of one that failed.

    extract → find_like → compare        for a run that reached its goal
    extract → find_followed → repair     for one that did not, but was shown procedures

The result is a proposal, which a person approves or the caller stores (Mem^p, arXiv 2508.06433).
"""

from collections.abc import Callable
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from stepcraft.building.compare import ComparisonState, compare
from stepcraft.building.duplicates import nearest_alike
from stepcraft.building.extract import ExtractInput, ExtractOutput, build_extract
from stepcraft.building.repair import RepairState, repair
from stepcraft.building.settings import DuplicatesContext, ExtractContext, RepairContext
from stepcraft.contexts.base import Settings
from stepcraft.llm.calls import Inline
from stepcraft.llm.node import BoundNode, ModelNode
from stepcraft.llm.resources import BuilderOptions, Resources
from stepcraft.memory.history import content_of
from stepcraft.memory.procedure import Content, Procedure
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.models.resolve import ChatModel


class Proposal(Content):
    """A procedure proposed for a memory."""

    replaces: str
    """The id of the procedure that it replaces, or "" for a new one."""
    before: Content | None
    """The previous content of that procedure, or None for a new one."""
    is_repair: bool
    """Whether the run failed with the previous content of that procedure."""
    why: str
    """The reason for the change, or "" for a new procedure."""


class LearnInput(ExtractInput):
    """A run, and the procedures that its agent was shown."""

    shown: list[str]
    """Procedure ids."""


class LearnState(LearnInput, ExtractOutput, ComparisonState, RepairState):
    """The state of the learning graph."""

    like: str
    """The id of the procedure that the learned one is compared with."""


def build_learn(
    memory: Callable[[], ProcedureMemory],
    model: ChatModel | str,
    *,
    repairs: bool,
    max_calls: int,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Build the learning graph, whose result can be read with `proposed`.

    Args:
        memory: A function that returns the memory, which is searched but not changed.
        model: The model that reads the run.
        repairs: Whether to repair a procedure that made a run fail.
        max_calls: The maximum number of model calls.

    Raises:
        BadInput: The model cannot be used.
    """

    def find_like(state: LearnState) -> Command[str]:
        """Find the procedure in the memory that the learned one may be merged with."""
        content = content_of(state["procedures"][0])
        learned = Procedure.from_dict(content)
        alike = next(iter(nearest_alike(memory(), learned)), None)
        if memory().get(learned.id) or (alike and content == content_of(alike)):
            return Command(goto=END, update={"procedures": []})  # nothing was learned
        if not alike:
            return Command(goto=END)
        update = {"like": alike.id, "first": content_of(alike), "second": content}
        return Command(goto="compare", update=update)

    def find_followed(state: LearnState) -> Command[str]:
        """Read the procedures that the agent was shown."""
        followed = [*filter(None, map(memory().get, state["shown"]))]
        ids = [procedure.id for procedure in followed]
        update = {"shown": ids, "followed": [*map(content_of, followed)]}
        return Command(goto="repair" if followed else END, update=update)

    @Inline
    def after_extract(state: LearnState) -> str:
        if state["procedures"]:
            return "find_like"
        has_failed = repairs and state["shown"] and state.get("succeeded") is False
        return "find_followed" if has_failed else END

    def bound(node: ModelNode, settings_type: type[Settings]) -> BoundNode:
        options: BuilderOptions = {"model": model, "settings": settings_type(max_calls=max_calls)}
        return node.bound(Resources.of(node.name, settings_type, options))

    extract = build_extract(model=model, settings=ExtractContext(max_calls=max_calls))
    builder = StateGraph(LearnState, input_schema=LearnInput)
    builder.add_node("extract", extract)
    builder.add_node("find_like", find_like)
    builder.add_node("compare", bound(compare, DuplicatesContext))
    builder.add_node("find_followed", find_followed)
    builder.add_node("repair", bound(repair, RepairContext))
    builder.add_edge(START, "extract")
    builder.add_conditional_edges("extract", after_extract, ["find_like", "find_followed", END])
    return builder.compile(name="learn")


def proposed(result: LearnState) -> Proposal | None:
    """Return the procedure that a run teaches, whether new, merged or repaired, or None."""
    if repaired := result.get("repaired"):
        place = result["blamed"] - 1
        return Proposal(
            **repaired,
            replaces=result["shown"][place],
            before=result["followed"][place],
            is_repair=True,
            why=result["cause"],
        )
    if merged := result.get("merged"):
        if merged == result["first"]:
            return None
        return Proposal(
            **merged,
            replaces=result["like"],
            before=result["first"],
            is_repair=False,
            why="another run shows more",
        )
    if drafts := result["procedures"]:
        content = content_of(drafts[0])
        return Proposal(**content, replaces="", before=None, is_repair=False, why="")
    return None
