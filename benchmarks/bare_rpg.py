"""RPG's loop on plain LangGraph: the baseline against which Stepcraft's overhead is measured."""

from typing import Any, TypedDict

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langgraph.graph import END, START, StateGraph

from stepcraft.rerank import Sentence
from stepcraft.rerank.resolve import resolve_reranker
from stepcraft.text.sentences import passage_sentences


class State(TypedDict, total=False):
    question: str
    kind: str
    plan: str
    plans: list[str]
    segments: list[str]
    found: list[str]
    selected: list[str]
    used: list[str]
    answer: str


def bare_rpg(model: BaseChatModel, retriever: BaseRetriever, max_cycles: int = 3) -> Any:
    """The compiled graph. A node puts its state into a prompt, calls the model and stores the reply, no more."""
    builder = StateGraph(State)
    builder.add_node("begin", lambda _state: {"plans": [], "segments": [], "used": []})
    builder.add_node("retrieve", _searching(retriever))
    builder.add_node("select", _selecting())
    for name in ("plan", "answer", "combine"):
        builder.add_node(name, _calling(model, name))
    builder.add_edge(START, "begin")
    builder.add_edge("begin", "retrieve")
    builder.add_edge("begin", "plan")
    builder.add_conditional_edges("plan", _after_plan, ["select", "combine"])
    builder.add_edge("select", "answer")
    builder.add_conditional_edges(
        "answer", lambda state: _after_answer(state, max_cycles), ["plan", "combine"]
    )
    builder.add_edge("combine", END)
    return builder.compile()


def _after_plan(state: State) -> str:
    return "combine" if state["plan"] == "<complete>" else "select"


def _after_answer(state: State, max_cycles: int) -> str:
    most = 1 if state["kind"] == "short" else max_cycles
    return "combine" if len(state["plans"]) >= most else "plan"


def _calling(model: BaseChatModel, name: str) -> RunnableLambda:
    def call(state: State) -> dict[str, Any]:
        if name == "combine" and state["kind"] != "multihop":
            return {}
        return _update(name, state, model.invoke(_messages(name, state)).text)

    async def acall(state: State) -> dict[str, Any]:
        if name == "combine" and state["kind"] != "multihop":
            return {}
        return _update(name, state, (await model.ainvoke(_messages(name, state))).text)

    return RunnableLambda(call, afunc=acall)


def _messages(name: str, state: State) -> list[HumanMessage]:
    """The material of Stepcraft's prompts, without the instructions."""
    parts = {"question": state["question"], "text": "\n\n".join(state.get("segments", []))}
    if name == "plan":
        parts["plans"] = "\n".join(state.get("plans", []))
    if name == "answer":
        parts |= {"plan": state["plan"], "evidence": "\n".join(state["selected"])}
    return [HumanMessage("\n\n".join(f"<{key}>\n{value}\n</{key}>" for key, value in parts.items()))]


def _update(name: str, state: State, reply: str) -> dict[str, Any]:
    if name == "plan":
        return {"plan": reply}
    if name == "combine":
        return {"answer": reply}
    segments = [*state.get("segments", []), reply]
    return {
        "segments": segments,
        "plans": [*state.get("plans", []), state["plan"]],
        "used": [*state.get("used", []), *state["selected"]],
        "answer": "\n\n".join(segments),
    }


def _searching(retriever: BaseRetriever) -> RunnableLambda:
    def search(state: State) -> dict[str, Any]:
        return {"found": [found.page_content for found in retriever.invoke(state["question"], k=5)]}

    async def asearch(state: State) -> dict[str, Any]:
        return {"found": [found.page_content for found in await retriever.ainvoke(state["question"], k=5)]}

    return RunnableLambda(search, afunc=asearch)


def _selecting() -> Any:
    """A node that scores sentences with the same reranker; the sentences of each set of passages are prepared once."""
    ready: dict[tuple[str, ...], tuple[list[Sentence], Any]] = {}

    def select(state: State) -> dict[str, Any]:
        run = tuple(state["found"])
        if run not in ready:
            sentences = [
                Sentence(str(place), position, "", text)
                for place, passage in enumerate(state["found"])
                for position, text in enumerate(passage_sentences(passage))
            ]
            ready[run] = sentences, resolve_reranker(None).ready(sentences)
        sentences, ranking = ready[run]
        scored = zip(sentences, ranking.scores(state["plan"]), strict=True)
        used = set(state.get("used", []))
        return {"selected": [one.text for one, score in scored if score > 0.3 and one.text not in used]}

    return select
