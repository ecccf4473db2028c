"""What benchmarks/serving.py serves: AAG, its topology on plain LangGraph, and a graph that does nothing."""

import os
from typing import Any

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph

from benchmarks.bare import Input, bare_aag
from stepcraft import build_aag
from tests.kitchen import small_memory

MODEL_URL = "BENCHMARK_MODEL_URL"
"""The environment variable with the address of the model."""


def _model() -> ChatOpenAI:
    return ChatOpenAI(model="served", base_url=os.environ[MODEL_URL], api_key="none", max_retries=0)


async def _nothing(_state: Input) -> dict[str, Any]:
    return {}


def make_aag(checkpointer: Any = None) -> Any:
    """AAG on the model of the benchmark."""
    return build_aag(model=_model(), memory=small_memory(), checkpointer=checkpointer)


def make_bare() -> Any:
    """The topology of AAG on plain LangGraph: its nodes call the same model and do no more."""
    return bare_aag(_model(), small_memory())


if MODEL_URL in os.environ:
    aag = make_aag()
    bare = make_bare()
empty = (
    StateGraph(Input)
    .add_node("nothing", _nothing)
    .add_edge(START, "nothing")
    .add_edge("nothing", END)
    .compile()
)
