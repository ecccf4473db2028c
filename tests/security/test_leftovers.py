"""Runs that were interrupted, cancelled or given up leave neither threads nor objects behind."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import interrupt

from stepcraft import NoAnswer
from stepcraft.graphs.baselines import build_rag
from tests.scripted import ScriptedModel

QUESTION = {"question": "How is tea made?"}
THREAD: Any = {"configurable": {"thread_id": "1"}}


class Asks(BaseRetriever):
    """Asks a person what it finds."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [Document(interrupt("What is known?"))]


class Waits(BaseRetriever):
    """Finds nothing, and not before it is told to."""

    begun: threading.Event
    told: threading.Event

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        self.begun.set()
        self.told.wait(10)
        return []


def waiting() -> Waits:
    return Waits(begun=threading.Event(), told=threading.Event())


def threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "stepcraft"}


def end(begun: set[threading.Thread]) -> None:
    for thread in begun:
        thread.join(5)
    assert not threads() & begun
    gc.collect()


def test_an_interrupted_run() -> None:
    retriever = Asks()
    graph = build_rag(retriever=retriever, model=ScriptedModel(["Tea."]), checkpointer=InMemorySaver())
    assert graph.invoke(QUESTION, THREAD)["__interrupt__"]
    kept, before = weakref.ref(retriever), threads()
    del graph, retriever
    end(threads() - before)
    assert kept() is None


def test_a_run_past_its_deadline() -> None:
    before, retriever = threads(), waiting()
    graph = build_rag(retriever=retriever, model=ScriptedModel(["Tea."]))
    with pytest.raises(NoAnswer):
        graph.invoke(QUESTION, context={"deadline_s": 0.2})
    begun = threads() - before
    assert begun, "the search goes on in its thread"
    retriever.told.set()
    kept = weakref.ref(retriever)
    del graph, retriever
    end(begun)
    assert kept() is None


async def test_a_cancelled_run() -> None:
    before, retriever = threads(), waiting()
    graph = build_rag(retriever=retriever, model=ScriptedModel(["Tea."]))
    run = asyncio.create_task(graph.ainvoke(QUESTION))
    await asyncio.to_thread(retriever.begun.wait, 10)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    retriever.told.set()
    kept, begun = weakref.ref(retriever), threads() - before
    del graph, retriever, run
    await asyncio.to_thread(end, begun)
    assert kept() is None
