"""Graphs that fail, for a server."""

from langchain_core.retrievers import BaseRetriever

from stepcraft import build_aag
from stepcraft.graphs.baselines import build_direct, build_rag
from tests.scripted import ScriptedModel


class Refusing(Exception):
    status_code = 401


def unreachable() -> BaseRetriever:
    """Not a retriever."""
    raise OSError("the shelf fell down")


wrong_key = build_direct(model=ScriptedModel(lambda *_: Refusing("bad key")))
no_answer = build_direct(model=ScriptedModel(lambda *_: ""))
no_memory = build_aag(model=ScriptedModel([]), memory="weaviate://127.0.0.1:1/Procedures")
no_source = build_rag(model=ScriptedModel([]), retriever="tests.graphs.failing:unreachable")
