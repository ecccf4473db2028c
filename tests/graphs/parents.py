"""Other people's graphs, with one of ours in them."""

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph


class Shared(TypedDict, total=False):
    question: str
    resources: str
    answer: str


def parent_of(node: Any, schema: Any = None, state: Any = Shared) -> Any:
    builder = StateGraph(state, context_schema=schema)
    builder.add_node("write", node)
    builder.add_edge(START, "write")
    builder.add_edge("write", END)
    return builder.compile()
