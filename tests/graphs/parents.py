"""Other people's graphs, with one of ours in them."""

from collections.abc import Callable
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph

from stepcraft import as_node, build_aag, build_chat, build_rat, build_rpg
from stepcraft.graphs import baselines
from tests import bridge
from tests.kitchen import GOAL, cook, forever, small_memory
from tests.scripted import ScriptedModel, ToolModel
from tests.shelf import QUESTION, Shelf, thinker


class Shared(TypedDict, total=False):
    question: str
    resources: str
    answer: str


class Theirs(TypedDict, total=False):
    """A parent with keys of its own; `model` is no setting of ours."""

    task: str
    notes: str
    model: str


def parent_of(node: Any, schema: Any = None, state: Any = Shared, checkpointer: Any = None) -> Any:
    builder = StateGraph(state, context_schema=schema)
    builder.add_node("write", node)
    builder.add_edge(START, "write")
    builder.add_edge("write", END)
    return builder.compile(checkpointer)


def built(name: str, **options: Any) -> tuple[Any, str, ScriptedModel]:
    """A graph with a scripted model, a question for it, and the model."""
    shelf = Shelf(says=bridge.documents) if name == "rpg" else Shelf()
    makers: dict[str, tuple[Callable[..., Any], ScriptedModel, dict[str, Any]]] = {
        "aag": (build_aag, ScriptedModel(forever(cook())), {"memory": small_memory()}),
        "rat": (build_rat, ScriptedModel(thinker("...")), {"retriever": shelf}),
        "rpg": (build_rpg, ScriptedModel(bridge.planner()), {"retriever": shelf}),
        "direct": (baselines.build_direct, ScriptedModel(said), {}),
        "cot": (baselines.build_cot, ScriptedModel(said), {}),
        "rag": (baselines.build_rag, ScriptedModel(said), {"retriever": shelf}),
        "few_shot": (baselines.build_few_shot, ScriptedModel(said), {"memory": small_memory()}),
        "react": (baselines.build_react, ToolModel(said), {"retriever": shelf}),
        "chat": (build_chat, ScriptedModel(routed), {"retriever": shelf}),
    }
    build, model, found = makers[name]
    asked = {"aag": GOAL["question"], "rpg": bridge.QUESTION["question"]}.get(name, QUESTION["question"])
    return build(**{"model": model, **found, **options}), asked, model


def routed(node: str, prompt: str) -> str:
    """RAT answers."""
    return "KIND: OTHER\nWHY: a plain fact" if node == "route" else thinker("...")(node, prompt)


def said(_node: str, _prompt: str) -> str:
    return "An answer."


def calling(graph: Any) -> Callable[[Theirs], Theirs]:
    """A node that calls a graph itself."""

    def write(state: Theirs) -> Theirs:
        return {"notes": graph.invoke({"question": state["task"]})["answer"]}

    return write


def acalling(graph: Any) -> Callable[[Theirs], Any]:
    """As `calling`, on an event loop."""

    async def write(state: Theirs) -> Theirs:
        return {"notes": (await graph.ainvoke({"question": state["task"]}))["answer"]}

    return write


def mapped(graph: Any, **options: Any) -> Any:
    """The graph as a node of `Theirs`."""
    return as_node(graph, question="task", answer="notes", state=Theirs, **options)
