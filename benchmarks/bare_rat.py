"""RAT's loop on plain LangGraph: the baseline against which Stepcraft's overhead is measured."""

import operator
from typing import Annotated, Any, TypedDict

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langgraph.graph import END, START, StateGraph
from langgraph.types import Overwrite, Send


class Step(TypedDict, total=False):
    number: int
    question: str
    text: str
    query: str
    evidence: list[str]
    results: list[tuple[int, str, str]]


class Results(TypedDict):
    results: list[tuple[int, str, str]]


class State(TypedDict, total=False):
    question: str
    text: str
    thoughts: list[str]
    done: int
    width: int
    results: Annotated[list[tuple[int, str, str]], operator.add]
    answer: str


def bare_rat(model: BaseChatModel, retriever: BaseRetriever) -> Any:
    """The compiled graph. A node puts its state into a prompt, calls the model and stores the reply, no more."""
    builder = StateGraph(State)
    for name in ("draft", "finish"):
        builder.add_node(name, _calling(model, name))
    builder.add_node("step", _step(model, retriever))
    builder.add_node("accept", _accept)
    builder.add_edge(START, "draft")
    for settled in ("draft", "accept"):
        builder.add_conditional_edges(settled, _next, ["step", "finish"])
    builder.add_edge("step", "accept")
    builder.add_edge("finish", END)
    return builder.compile()


def _step(model: BaseChatModel, retriever: BaseRetriever) -> Any:
    builder = StateGraph(Step, output_schema=Results)
    builder.add_node("to_query", _calling(model, "to_query"))
    builder.add_node("retrieve", _searching(retriever))
    builder.add_node("revise", _calling(model, "revise"))
    builder.add_edge(START, "to_query")
    builder.add_edge("to_query", "retrieve")
    builder.add_edge("retrieve", "revise")
    builder.add_edge("revise", END)
    return builder.compile()


def _next(state: State) -> list[Send] | str:
    done, thoughts = state["done"], state["thoughts"]
    if done == len(thoughts):
        return "finish"
    ahead = range(done, min(len(thoughts), done + state["width"]))
    texts = {place: state["text"] + "".join(thoughts[done : place + 1]) for place in ahead}
    return [
        Send("step", {"number": place, "question": state["question"], "text": text})
        for place, text in texts.items()
    ]


def _accept(state: State) -> dict[str, Any]:
    text, done, width = state["text"], state["done"], state["width"]
    for number, before, after in state["results"]:
        text, done, width = after, number + 1, min(8, 2 * state["width"])
        if after != before:
            width = 1
            break
    return {"text": text, "done": done, "width": width, "results": Overwrite([])}


def _calling(model: BaseChatModel, name: str) -> RunnableLambda:
    def call(state: Any) -> dict[str, Any]:
        return _update(name, state, model.invoke(_messages(state)).text)

    async def acall(state: Any) -> dict[str, Any]:
        return _update(name, state, (await model.ainvoke(_messages(state))).text)

    return RunnableLambda(call, afunc=acall)


def _searching(retriever: BaseRetriever) -> RunnableLambda:
    def search(state: Step) -> dict[str, Any]:
        return {"evidence": [found.page_content for found in retriever.invoke(state["query"], k=2)]}

    async def asearch(state: Step) -> dict[str, Any]:
        return {"evidence": [found.page_content for found in await retriever.ainvoke(state["query"], k=2)]}

    return RunnableLambda(search, afunc=asearch)


def _messages(state: Any) -> list[Any]:
    sections = (f"<{key}>\n{value}\n</{key}>" for key, value in state.items())
    return [HumanMessage("\n\n".join(sections))]


def _update(name: str, state: Any, reply: str) -> dict[str, Any]:
    match name:
        case "draft":
            parts = reply.split("\n\n")
            thoughts = [f"{part}\n\n" for part in parts[:-1]] + parts[-1:]
            return {"thoughts": thoughts, "text": "", "done": 0, "width": 1}
        case "to_query":
            return {"query": reply}
        case "revise":
            after = state["text"] if reply == "NO CHANGE" else reply
            return {"results": [(state["number"], state["text"], after)]}
    return {"answer": reply}
