"""AAG's topology on plain LangGraph: the baseline against which Stepcraft's overhead is measured."""

import operator
from typing import Annotated, Any, TypedDict

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.runnables import RunnableLambda
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from stepcraft.graphs.compile import InlineNode
from stepcraft.memory.protocol import ProcedureMemory


class Input(TypedDict):
    question: str
    resources: str


class Output(TypedDict, total=False):
    steps: str
    answers: Annotated[list[str], operator.add]


class State(Output, total=False):
    question: str
    resources: str
    draft: str
    queries: list[str]
    found: list[list[str]]
    edits: str
    updates: int


def bare_aag(model: BaseChatModel, memory: ProcedureMemory, max_updates: int = 3) -> Any:
    """The compiled graph. A node puts its state into a prompt, calls the model and stores the reply, no more.

    Searches go through the memory's retriever, so that they show in traces, and functions that wait for nothing run on
    the event loop, both as in our graph: neither is the difference that is measured.
    """
    builder = StateGraph(State, input_schema=Input, output_schema=Output)
    builder.add_node("begin", InlineNode(lambda state: {"queries": [], "updates": 0}))
    builder.add_node("retrieve", _searching(memory))
    for name in ("draft", "to_query", "answer", "revise", "critic", "edit"):
        builder.add_node(name, _calling(model, name))
    builder.add_edge(START, "begin")
    builder.add_edge("begin", "retrieve")
    builder.add_conditional_edges("retrieve", InlineNode(_fan_out), ["draft", "to_query", "answer"])
    builder.add_edge("to_query", "retrieve")
    builder.add_edge(["draft", "answer"], "revise")
    builder.add_edge("revise", "critic")
    after_critic = InlineNode(lambda state: "edit" if "- " in state["edits"] else END)
    builder.add_conditional_edges("critic", after_critic, ["edit", END])
    after_edit = InlineNode(lambda state: "critic" if state["updates"] < max_updates else END)
    builder.add_conditional_edges("edit", after_edit, ["critic", END])
    return builder.compile()


def _searching(memory: ProcedureMemory) -> RunnableLambda:
    retriever = memory.as_retriever(3)

    def search(state: State) -> dict[str, Any]:
        return _found(retriever.batch(_queries(state)))

    async def asearch(state: State) -> dict[str, Any]:
        return _found(await retriever.abatch(_queries(state)))

    return RunnableLambda(search, afunc=asearch)


def _found(documents: list[list[Document]]) -> dict[str, Any]:
    return {"found": [[document.page_content for document in found] for found in documents]}


def _queries(state: State) -> list[str]:
    return state["queries"] or [f"{state['question']} using {state['resources']}"]


def _fan_out(state: State) -> list[Send]:
    if not state["queries"]:
        return [Send("draft", state), Send("to_query", state)]
    pairs = zip(state["queries"], state["found"], strict=True)
    return [Send("answer", {"question": query, "found": [found]}) for query, found in pairs]


def _calling(model: BaseChatModel, name: str) -> RunnableLambda:
    def call(state: State) -> dict[str, Any]:
        return _update(name, state, model.invoke(_messages(name, state)).text)

    async def acall(state: State) -> dict[str, Any]:
        return _update(name, state, (await model.ainvoke(_messages(name, state))).text)

    return RunnableLambda(call, afunc=acall)


def _messages(name: str, state: State) -> list[Any]:
    return [SystemMessage(name), HumanMessage("\n\n".join(f"{key}: {value}" for key, value in state.items()))]


def _update(name: str, state: State, reply: str) -> dict[str, Any]:
    match name:
        case "draft":
            return {"draft": reply}
        case "to_query":
            return {"queries": [line for line in reply.splitlines() if line.endswith("?")]}
        case "answer":
            return {"answers": [reply]}
        case "critic":
            return {"edits": reply}
        case "edit":
            return {"steps": reply, "updates": state["updates"] + 1}
    return {"steps": reply}
