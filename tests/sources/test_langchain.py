"""Retrievers and search tools of LangChain as sources: where they run, and what becomes of errors."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

import pytest
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool, StructuredTool, tool
from langchain_core.vectorstores import VectorStore
from pydantic import PrivateAttr

from stepcraft import RatContext, build_rat
from stepcraft.contexts.baselines import RagContext
from stepcraft.graphs.baselines import build_rag
from tests.scripted import ScriptedModel

TASK: Any = {"question": "Who?", "draft": "Haldruvin built it."}
SETTINGS = RatContext(rounds=1, deadline_s=5)


def checked(source: Any, *, is_async: bool, settings: RatContext = SETTINGS) -> Any:
    """Return the result of a check by a blocking or an async caller."""
    rat = build_rat(model=ScriptedModel(["NO CHANGE"] * 2), sources=source)
    if is_async:
        return asyncio.run(rat.ainvoke(TASK, context=settings))
    return rat.invoke(TASK, context=settings)


class Session:
    """As a session of MCP that is open on one event loop: a task of that loop serves a queue."""

    def __init__(self) -> None:
        self.requests: asyncio.Queue[tuple[str, asyncio.Future[str]]] = asyncio.Queue()
        self.server = asyncio.create_task(self._serve())

    async def _serve(self) -> None:
        while True:
            query, reply = await self.requests.get()
            reply.set_result(f"Found: {query}")

    async def ask(self, query: str) -> str:
        """Search."""
        reply = asyncio.get_running_loop().create_future()
        await self.requests.put((query, reply))
        return str(await reply)


class SessionRetriever(BaseRetriever):
    _session: Session = PrivateAttr()

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        raise AssertionError("the session serves an event loop")

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [Document(await self._session.ask(query))]


class OwnTool(BaseTool):
    name: str = "own"
    description: str = "Search."
    _session: Session = PrivateAttr()

    def _run(self, query: str) -> str:
        raise NotImplementedError

    async def _arun(self, query: str) -> str:
        return await self._session.ask(query)


def tool_of(session: Session) -> BaseTool:
    return StructuredTool.from_function(coroutine=session.ask, name="ask")


def own_tool_of(session: Session) -> BaseTool:
    tool = OwnTool()
    tool._session = session
    return tool


def retriever_of(session: Session) -> BaseRetriever:
    retriever = SessionRetriever()
    retriever._session = session
    return retriever


@pytest.mark.parametrize("source_of", [tool_of, own_tool_of, retriever_of])
async def test_a_source_is_awaited_on_the_loop_of_its_session(
    source_of: Callable[[Session], Any],
) -> None:
    session = Session()
    rat = build_rat(model=ScriptedModel(["NO CHANGE"]), sources=source_of(session))
    async with asyncio.timeout(60):
        result = await rat.ainvoke(TASK, context=SETTINGS)
    assert f"Found: {TASK['draft']}" in [each["text"] for each in result["evidence"]]
    session.server.cancel()


async def asearch(query: str) -> str:
    """Search."""
    return f"Found: {query}"


def search(query: str) -> str:
    """Search."""
    return f"Found by {threading.current_thread() is threading.main_thread()}: {query}"


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("functions", [{"func": search}, {"coroutine": asearch}])
def test_every_tool_serves_both_kinds_of_callers(functions: Any, is_async: bool) -> None:
    tool = StructuredTool.from_function(**functions)
    result = checked(tool, is_async=is_async)
    assert result["evidence"]
    for passage in result["evidence"]:
        assert TASK["draft"] in passage["text"]
        assert "True" not in passage["text"]


class TenByDefault(BaseRetriever):
    """Takes `k` in one of its methods."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [Document(f"Passage {number}.") for number in range(10)]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: Any, k: int = 10
    ) -> list[Document]:
        return [Document(f"Passage {number}.") for number in range(k)]


@pytest.mark.parametrize("is_async", [False, True])
def test_no_more_passages_than_asked_for(is_async: bool) -> None:
    rag = build_rag(model=ScriptedModel(["Haldruvin."]), sources=TenByDefault())
    question, settings = {"question": "Who?"}, RagContext(k=3)
    if is_async:
        result = asyncio.run(rag.ainvoke(question, context=settings))
    else:
        result = rag.invoke(question, context=settings)
    assert len(result["evidence"]) == 3


@pytest.mark.parametrize("place", [0, 3])
def test_the_part_of_a_long_reply_that_fits_the_query_is_found_wherever_it_stands(
    place: int,
) -> None:
    texts = [f"Pier {pier}. " + "Stone came by barge from upstream. " * 20 for pier in range(3)]
    texts.insert(place, "The Oster bridge was built by Haldruvin.")

    @tool
    def wiki(query: str) -> str:
        """Search the wiki."""
        return "\n\n".join(texts)

    rag = build_rag(model=ScriptedModel(["Haldruvin."]), sources=wiki)
    question = {"question": "Who built the Oster bridge?"}
    [found] = rag.invoke(question, context=RagContext(k=1))["evidence"]
    assert "Haldruvin" in found["text"]


class Hung(BaseRetriever):
    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        time.sleep(60)
        return []


def hang(query: str) -> str:
    """Search."""
    time.sleep(60)
    return query


async def ahang(query: str) -> str:
    """Search."""
    await asyncio.sleep(60)
    return query


class HungStore(VectorStore):
    def similarity_search(self, query: str, k: int = 4, **_: Any) -> list[Document]:
        time.sleep(60)
        return []

    @classmethod
    def from_texts(cls, *_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    "source",
    [
        Hung(),
        HungStore().as_retriever(),
        StructuredTool.from_function(hang),
        StructuredTool.from_function(coroutine=ahang, name="ahang"),
    ],
)
def test_a_source_that_hangs_holds_up_neither_the_run_nor_the_end_of_its_loop(
    source: Any, is_async: bool
) -> None:
    started = time.monotonic()
    settings = RatContext(rounds=1, deadline_s=0.5)
    result = checked(source, is_async=is_async, settings=settings)
    assert time.monotonic() - started < 20
    assert "longer than the deadline" in str(result["warnings"])


async def fail(query: str) -> str:
    """Search."""
    raise ExceptionGroup("the session ended", [EOFError(query)])


@pytest.mark.parametrize("is_async", [False, True])
def test_what_a_tool_raises_is_a_warning(is_async: bool) -> None:
    tool = StructuredTool.from_function(coroutine=fail, name="desk")
    result = checked({"desk": tool}, is_async=is_async)
    assert "the source desk failed: ExceptionGroup" in str(result["warnings"])


def test_equal_texts_of_two_pages_or_headings_are_two_passages() -> None:
    class Manual(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            places: list[dict[str, Any]] = [
                {"source": "a.pdf", "page": 1},
                {"source": "a.pdf", "page": 7, "page_label": "vii"},
                {"file_name": "a.md", "Header 1": "Alpha", "Header 2": "Limits"},
                {"file_name": "a.md", "Header 1": "Gamma", "Header 2": "Limits"},
            ]
            return [Document("Haldruvin built it.", metadata=place) for place in places]

    rag = build_rag(model=ScriptedModel(["Haldruvin."]), sources=Manual())
    evidence = rag.invoke({"question": "Who?"})["evidence"]
    assert [(each["title"], each["source"]) for each in evidence] == [
        ("a.pdf#page=1", "a.pdf#page=1"),
        ("a.pdf#page=vii", "a.pdf#page=vii"),
        ("Alpha \u203a Limits", "a.md"),
        ("Gamma \u203a Limits", "a.md"),
    ]
