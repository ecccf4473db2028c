"""The baselines that the methods are compared with, all with one input and output.

They are direct, cot, rag, few_shot and react.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import Unpack

from stepcraft.contexts.baselines import (
    CotContext,
    DirectContext,
    FewShotContext,
    RagContext,
    ReactContext,
)
from stepcraft.evidence import Evidence
from stepcraft.llm.node import ModelNode, published
from stepcraft.llm.resources import BuilderOptions, GraphOptions, Resources, S, compiled
from stepcraft.llm.usage import RunState
from stepcraft.nodes.agent import NAME as AGENT
from stepcraft.nodes.agent import Agent
from stepcraft.nodes.answer import answer, answer_by_thinking
from stepcraft.nodes.begin import Begin, store_of_run
from stepcraft.nodes.retrieve import Retrieve
from stepcraft.nodes.state import Answer, Finding, Part, QuestionInput
from stepcraft.retrieval.target import Searched


class State(Answer, RunState, QuestionInput):
    """The state of a baseline."""

    task: str
    queries: list[str]
    findings: list[Finding]
    parts: list[Part]


Builder = StateGraph[State, Any, QuestionInput, Answer]
Graph = CompiledStateGraph[State, Any, QuestionInput, Answer]


def _initial(
    state: Mapping[str, Any], _settings: object, _searched: Sequence[Searched]
) -> dict[str, Any]:
    return {"queries": [state["task"]], "findings": [], "parts": []}


def _begun(resources: Resources[S], *nodes: str, searches: bool = True) -> Builder:
    builder: Builder = StateGraph(
        State, resources.settings_type, input_schema=QuestionInput, output_schema=Answer
    )
    builder.add_node("begin", Begin(resources, nodes, _initial, searches=searches))
    builder.add_edge(START, "begin")
    return builder


def _one_call(
    graph: str, settings_type: type[S], node: ModelNode, options: BuilderOptions
) -> Builder:
    resources = Resources.of(graph, settings_type, options)
    builder = _begun(resources, node.name, searches=False)
    builder.add_node("answer", node.bound(resources))
    builder.add_edge("begin", "answer")
    builder.add_edge("answer", END)
    return builder


def direct_builder(**options: Unpack[BuilderOptions]) -> Builder:
    """Return the baseline of one call without evidence."""
    return _one_call("direct", DirectContext, answer, options)


def cot_builder(**options: Unpack[BuilderOptions]) -> Builder:
    """Return the baseline that thinks step by step, then answers, in one call."""
    return _one_call("cot", CotContext, answer_by_thinking, options)


def rag_builder(**options: Unpack[BuilderOptions]) -> Builder:
    """Return the baseline that searches once with the question; `k=5` is RAG-5."""
    resources = Resources.of("rag", RagContext, options)
    builder = _begun(resources, "answer")
    builder.add_node("retrieve", Retrieve(resources, alone=1))
    builder.add_node("answer", answer.bound(resources))
    builder.add_edge("begin", "retrieve")
    builder.add_edge("retrieve", "answer")
    builder.add_edge("answer", END)
    return builder


def few_shot_builder(**options: Unpack[BuilderOptions]) -> Builder:
    """Return the baseline that sees `k` random procedures of the memory, the same for a seed."""
    resources = Resources.of("few_shot", FewShotContext, options, prefers_memory=True)
    builder = _begun(resources, "answer")
    builder.add_node("sample", resources.bind(sample))
    builder.add_node("answer", answer.bound(resources))
    builder.add_edge("begin", "sample")
    builder.add_edge("sample", "answer")
    builder.add_edge("answer", END)
    return builder


def sample(state: State, resources: Resources[FewShotContext]) -> dict[str, Any]:
    """Return random procedures of the memory as evidence."""
    settings = resources.settings(state)
    memory = resources.target.memory(settings, store_of_run())
    procedures = sorted(memory, key=lambda procedure: procedure.id)
    chosen = random.Random(settings.sample_seed).sample(  # noqa: S311 - examples, no secret
        procedures, min(settings.k, len(procedures))
    )
    evidence = [
        Evidence(
            id=procedure.id,
            title=procedure.output,
            text=procedure.text(),
            source=procedure.source,
            score=0.0,
        )
        for procedure in chosen
    ]
    return {"evidence": evidence}


def react_builder(**options: Unpack[BuilderOptions]) -> Builder:
    """Return the agent with a search tool.

    Where it gives no answer, a call without tools writes it.
    """
    resources = Resources.of("react", ReactContext, options)
    builder = _begun(resources, AGENT, "answer")
    builder.add_node(AGENT, Agent(resources))
    builder.add_node("answer", answer.bound(resources))
    builder.add_node("finish", resources.bind(finish))
    builder.add_edge("begin", AGENT)
    builder.add_conditional_edges(AGENT, after_agent, ["answer", "finish"])
    builder.add_edge("answer", END)
    builder.add_edge("finish", END)
    return builder


def after_agent(state: State) -> str:
    return "finish" if state["answer"] else "answer"


def finish(state: State, resources: Resources[ReactContext]) -> dict[str, Any]:
    """Publish the agent's answer."""
    return published(resources.graph, state, {"answer": state["answer"]})


def build_direct(**options: Unpack[GraphOptions]) -> Graph:
    """Build and compile the direct baseline."""
    return compiled(direct_builder, "direct", options)


def build_cot(**options: Unpack[GraphOptions]) -> Graph:
    """Build and compile the chain-of-thought baseline."""
    return compiled(cot_builder, "cot", options)


def build_rag(**options: Unpack[GraphOptions]) -> Graph:
    """Build and compile RAG."""
    return compiled(rag_builder, "rag", options)


def build_few_shot(**options: Unpack[GraphOptions]) -> Graph:
    """Build and compile the few-shot baseline."""
    return compiled(few_shot_builder, "few_shot", options)


def build_react(**options: Unpack[GraphOptions]) -> Graph:
    """Build and compile the agent."""
    return compiled(react_builder, "react", options)


direct, cot, rag = build_direct(), build_cot(), build_rag()
few_shot, react = build_few_shot(), build_react()
"""The baselines with everything from the context, the environment and the defaults, for servers and
Studio."""
