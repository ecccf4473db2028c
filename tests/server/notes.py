"""A small graph for servers: it says who asks, and what stands in the notes of the store."""

from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from stepcraft.access import caller, fill_namespace


class Input(TypedDict):
    question: str


class State(Input, total=False):
    answer: str
    identity: str | None
    notes: list[str]


async def answer(state: Input, config: RunnableConfig, runtime: Runtime[None]) -> dict[str, object]:
    """Return what the run sees."""
    store = runtime.store
    assert store
    items = await store.asearch(fill_namespace(("{user}", "notes"), config))
    return {
        "answer": state["question"],
        "identity": caller(),
        "notes": [item.value["text"] for item in items],
    }


graph = StateGraph(State, input_schema=Input).add_node(answer).add_edge(START, "answer").compile()
