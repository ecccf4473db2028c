"""A report on several topics: a parent graph with keys and a context of its own, and RPG as its node.

Run with `python examples/parent_graph.py "add long-term memory to an agent" "stream the steps of an agent"`. All topics
are written in one superstep; evidence, warnings and usage are merged. STEPCRAFT_MODEL names the model.
"""

import sys
from dataclasses import dataclass
from typing import Annotated

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from stepcraft import MergedResults, add_answer, as_node, build_rpg

TOPICS = ["add long-term memory to a chat agent", "stream the steps of an agent"]


@dataclass
class Settings:
    """The context of the parent."""

    depth: int = 1
    """Segments of a section."""
    model: str = "the name of something else"
    """Not RPG's `model`: of this context RPG gets what `context_from` names, and nothing else."""


class Report(MergedResults, total=False):
    """The state of the parent."""

    topics: list[str]
    topic: str
    """The topic of one branch."""
    sections: Annotated[list[str], add_answer]
    report: str


def branches(state: Report) -> list[Send]:
    """One section for each topic."""
    return [Send("write_section", {"topic": topic}) for topic in state["topics"]]


def bind(state: Report) -> Report:
    """The sections as one text."""
    return {"report": "\n\n".join(state["sections"])}


def main(topics: list[str]) -> None:
    """Write the report and print what it rests on and what it cost."""
    section = as_node(
        build_rpg(fallback="memory"),
        state=Report,
        context={"finish": False},
        context_from={"max_cycles": "depth"},
        question="topic",
        answer="sections",
        evidence="evidence",
        warnings="warnings",
        usage="usage",
    )
    builder = StateGraph(Report, context_schema=Settings)
    builder.add_node("write_section", section)
    builder.add_node("bind", bind)
    builder.add_conditional_edges(START, branches, ["write_section"])
    builder.add_edge("write_section", "bind")
    builder.add_edge("bind", END)
    result = builder.compile().invoke({"topics": topics}, context=Settings(depth=2))
    print(result["report"])
    print(f"\n{len(result['evidence'])} passages, {result['usage']['calls']} model calls")
    print(*result["warnings"], sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:] or TOPICS)
