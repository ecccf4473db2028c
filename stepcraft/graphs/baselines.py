"""The baselines that the methods are compared with, all with the same input and output.

They are direct, rag and react. Others, such as those in `stepcraft_papers`, are built with
`baseline_builder` and `one_call_builder`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import Unpack

from stepcraft.contexts.baselines import DirectContext, RagContext, ReactContext
from stepcraft.llm.calls import Inline
from stepcraft.llm.node import ModelNode, publish
from stepcraft.llm.resources import BuilderOptions, GraphOptions, Resources, S, compiled
from stepcraft.llm.usage import RunState
from stepcraft.nodes.agent import NAME as AGENT
from stepcraft.nodes.agent import Agent
from stepcraft.nodes.answer import answer
from stepcraft.nodes.begin import Begin
from stepcraft.nodes.retrieve import Retrieve
from stepcraft.nodes.state import Answer, Finding, Part, QuestionInput
from stepcraft.retrieval.target import OpenedSource


class State(Answer, RunState, QuestionInput):
    """The state of a baseline."""

    task: str
    queries: list[str]
    findings: list[Finding]
    parts: list[Part]


Builder = StateGraph[State, Any, QuestionInput, Answer]
Graph = CompiledStateGraph[State, Any, QuestionInput, Answer]


def _initial(
    state: Mapping[str, Any], _settings: object, _searched: Sequence[OpenedSource]
) -> dict[str, Any]:
    return {"queries": [state["task"]], "findings": [], "parts": []}


def baseline_builder(resources: Resources[S], *nodes: str, searches: bool = True) -> Builder:
    """Return a builder with a baseline's first node; `nodes` names the nodes that call a model."""
    builder: Builder = StateGraph(
        State, resources.settings_type, input_schema=QuestionInput, output_schema=Answer
    )
    builder.add_node("begin", Begin(resources, nodes, _initial, searches=searches))
    builder.add_edge(START, "begin")
    return builder


def one_call_builder(
    graph: str, settings_type: type[S], node: ModelNode, options: BuilderOptions
) -> Builder:
    """Return a baseline with a single node, which asks a model without searching."""
    resources = Resources.of(graph, settings_type, options)
    builder = baseline_builder(resources, node.name, searches=False)
    builder.add_node("answer", node.bound(resources))
    builder.add_edge("begin", "answer")
    builder.add_edge("answer", END)
    return builder


def direct_builder(**options: Unpack[BuilderOptions]) -> Builder:
    """Return the baseline that makes one call without evidence."""
    return one_call_builder("direct", DirectContext, answer, options)


def rag_builder(**options: Unpack[BuilderOptions]) -> Builder:
    """Return the baseline that searches once with the question; `k=5` is RAG-5."""
    resources = Resources.of("rag", RagContext, options)
    builder = baseline_builder(resources, "answer")
    builder.add_node("retrieve", Retrieve(resources))
    builder.add_node("answer", answer.bound(resources))
    builder.add_edge("begin", "retrieve")
    builder.add_edge("retrieve", "answer")
    builder.add_edge("answer", END)
    return builder


def react_builder(**options: Unpack[BuilderOptions]) -> Builder:
    """Return the agent with a search tool.

    If it gives no answer, a call without tools writes one.
    """
    resources = Resources.of("react", ReactContext, options)
    builder = baseline_builder(resources, AGENT, "answer")
    builder.add_node(AGENT, Agent(resources))
    builder.add_node("answer", answer.bound(resources))
    builder.add_node("finish", resources.bind(publish))
    builder.add_edge("begin", AGENT)
    builder.add_conditional_edges(AGENT, after_agent, ["answer", "finish"])
    builder.add_edge("answer", END)
    builder.add_edge("finish", END)
    return builder


@Inline
def after_agent(state: State) -> str:
    return "finish" if state["answer"] else "answer"


def build_direct(**options: Unpack[GraphOptions]) -> Graph:
    """Build and compile the direct baseline."""
    return compiled(direct_builder, "direct", options)


def build_rag(**options: Unpack[GraphOptions]) -> Graph:
    """Build and compile RAG."""
    return compiled(rag_builder, "rag", options)


def build_react(**options: Unpack[GraphOptions]) -> Graph:
    """Build and compile the agent."""
    return compiled(react_builder, "react", options)


direct, rag, react = build_direct(), build_rag(), build_react()
"""The baselines configured by the context, the environment and the defaults, for servers and
Studio.
"""
