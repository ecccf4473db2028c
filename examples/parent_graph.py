"""A report on several topics: a parent graph with a state of its own calls RPG in its nodes.

Run with `python examples/parent_graph.py "add memory to an agent" "stream the steps of an agent"`.
All topics are written side by side. STEPCRAFT_MODEL names the model.
"""

import operator
import sys
from typing import Annotated, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import Send

from stepcraft import Usage, add_usage, add_warnings, build_rpg

TOPICS = ["add long-term memory to a chat agent", "stream the steps of an agent"]
rpg = build_rpg()


class Report(TypedDict, total=False):
    """The state of the parent."""

    topics: list[str]
    topic: str
    """The topic of one section."""
    sections: Annotated[list[str], operator.add]
    warnings: Annotated[list[str], add_warnings]
    usage: Annotated[Usage, add_usage]


def write_section(state: Report) -> Report:
    """Run RPG as a subgraph: streams, traces and interrupts reach into it."""
    result = rpg.invoke({"question": state["topic"]})
    sources = [f"[{n}] {each['title']}" for n, each in enumerate(result["evidence"], 1)]
    section = "\n".join([f"## {state['topic']}\n", result["answer"], "", *sources])
    return {"sections": [section], "warnings": result["warnings"], "usage": result["usage"]}


def main(topics: list[str]) -> None:
    """Write the report, and print what it cost and what its reader should mind."""
    builder = StateGraph(Report)
    builder.add_node("write_section", write_section)
    builder.add_conditional_edges(
        START, lambda state: [Send("write_section", {"topic": topic}) for topic in state["topics"]]
    )
    report = builder.compile().invoke({"topics": topics})
    print("\n\n".join(report["sections"]))
    print(f"\n{report['usage']['calls']} model calls", *report["warnings"], sep="\n- ")


if __name__ == "__main__":
    main(sys.argv[1:] or TOPICS)
