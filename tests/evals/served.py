"""Graphs with a scripted model, for LangGraph servers and for this process."""

from stepcraft.graphs.baselines import build_direct, build_rag
from tests.scripted import ScriptedModel


def _number(_node: str, prompt: str) -> str:
    return prompt.partition("Question ")[2].partition("?")[0]


direct = build_direct(model=ScriptedModel(_number, latency=0.2))
rag = build_rag(model=ScriptedModel(_number, latency=0.2))
