"""Use any LangChain retriever or search tool as a source of evidence."""

import asyncio
import inspect
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import count, zip_longest
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, Tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever
from langchain_text_splitters import RecursiveCharacterTextSplitter
from langgraph.errors import GraphBubbleUp
from typing_extensions import override

from stepcraft.concurrency import in_thread, to_thread
from stepcraft.errors import BadInput, SourceFailure, StepcraftError
from stepcraft.retriever import Source
from stepcraft.secrets import excerpt
from stepcraft.text.clean import stems

_PASSAGE = 1_500
"""The maximum number of characters in a passage split from a tool's result."""


_ORIGINS = ("source", "url", "link", "path", "file_path", "file_name")
_HEADINGS = tuple(f"Header {level}" for level in range(1, 7))


class RetrieverAdapter(Source):
    """Adapts a LangChain retriever to accept `k` per call and to provide titles and scores.

    In callbacks and traces, a search is a single run: the retriever's own.

    To return more documents than by default, the retriever must accept `k` per call, or have a
    field `k` or `search_kwargs`. Missing scores are derived from the rank. The retriever is awaited
    on the caller's event loop, or runs in a thread if it has no async implementation.

    Raises:
        SourceFailure: The retriever raised anything other than a LangGraph interrupt or a Stepcraft
            error.
    """

    retriever: BaseRetriever
    """The wrapped retriever."""
    spec: str
    """The name of the source in messages."""

    @classmethod
    def of(cls, retriever: BaseRetriever, name: str) -> BaseRetriever:
        """Return a Stepcraft source unchanged, and wrap any other retriever in an adapter."""
        return retriever if isinstance(retriever, Source) else cls(retriever=retriever, spec=name)

    @override
    def invoke(
        self, input: str, config: RunnableConfig | None = None, *, k: int | None = None, **_: Any
    ) -> list[Document]:
        """Search with the retriever, as one run."""
        k = k or self.k
        retriever, options = self._with_k(k, "_get_relevant_documents")
        with self._failures():
            return _completed(retriever.invoke(input, config, **options)[:k])

    @override
    async def ainvoke(
        self, input: str, config: RunnableConfig | None = None, *, k: int | None = None, **_: Any
    ) -> list[Document]:
        """Search with the retriever, as one run."""
        k = k or self.k
        if _only_blocks(self.retriever):
            return await to_thread(self.invoke, input, config, k=k)
        retriever, options = self._with_k(k, "_aget_relevant_documents")
        with self._failures():
            return _completed((await retriever.ainvoke(input, config, **options))[:k])

    def _with_k(self, k: int, method: str) -> tuple[BaseRetriever, dict[str, Any]]:
        """Return a retriever set up to find k documents, and the options with which to call it."""
        retriever = self.retriever
        methods = {"_get_relevant_documents", method}  # LangChain reads the options from the first
        if all(_takes_k(getattr(type(retriever), each)) for each in methods):
            return retriever, {"k": k}
        arguments = {**(getattr(retriever, "search_kwargs", None) or {}), "k": k}
        values = {"k": k, "search_kwargs": arguments}
        fields = values.keys() & type(retriever).model_fields
        return retriever.model_copy(update={name: values[name] for name in fields}), {}

    @contextmanager
    def _failures(self) -> Generator[None]:
        try:
            yield
        except (StepcraftError, GraphBubbleUp):
            raise
        except Exception as error:
            raise SourceFailure(f"the source {self.spec} failed: {excerpt(error, 300)}") from error


class ToolRetriever(BaseRetriever):
    """Wraps a search tool, such as one from an MCP server, as a retriever.

    The tool is awaited on the caller's event loop, to which its session may be bound; for a
    blocking call, it runs on an event loop in another thread. Long texts are cut into passages.
    """

    tool: BaseTool
    argument: str
    """The tool argument that takes the query."""

    @classmethod
    def of(cls, tool: BaseTool) -> "ToolRetriever":
        """Return a retriever for a tool.

        Raises:
            BadInput: The tool cannot be called with just a string.
        """
        schema: dict[str, Any] = convert_to_openai_tool(tool)["function"]["parameters"]
        texts = [
            name for name, each in schema["properties"].items() if each.get("type") == "string"
        ]
        needed = schema.get("required") or texts[:1]
        if len(needed) != 1 or needed[0] not in texts:
            raise BadInput(
                f"the tool {tool.name} is no source: it has to take one text, the query, and needs "
                f"{', '.join(needed) or 'nothing'}"
            )
        return cls(tool=tool, argument=needed[0])

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        del run_manager
        call = self._call(query)
        if _only_blocks(self.tool):
            return self._passages(query, self.tool.invoke(call))
        reply = in_thread(lambda: asyncio.run(self.tool.ainvoke(call))).result()
        return self._passages(query, reply)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        del run_manager
        call = self._call(query)
        if _only_blocks(self.tool):
            return self._passages(query, await to_thread(self.tool.invoke, call))
        return self._passages(query, await self.tool.ainvoke(call))

    def _call(self, query: str) -> ToolCall:
        arguments = {self.argument: query}
        return ToolCall(type="tool_call", id="search", name=self.tool.name, args=arguments)

    def _passages(self, query: str, message: ToolMessage) -> list[Document]:
        """Return the reply as passages: the best of each text, then the second best, and so on."""
        if message.status == "error":
            raise SourceFailure(f"the tool {self.tool.name} failed: {excerpt(message.text, 300)}")
        splitter = RecursiveCharacterTextSplitter(chunk_size=_PASSAGE, chunk_overlap=0)
        words = stems(query)
        ranked = [
            sorted(
                splitter.split_text(str(each.get("text", ""))),
                key=lambda text: -len(words & stems(text)),
            )
            for each in message.content_blocks
        ]
        return [Document(text) for rank in zip_longest(*ranked) for text in rank if text]


def _only_blocks(source: BaseRetriever | BaseTool) -> bool:
    """Return whether a source is only synchronous, so LangChain would run it in its own threads.

    Those threads are joined when an event loop or the process ends, so a slow search would delay
    shutdown.
    """
    if isinstance(source, Tool | StructuredTool):
        return source.coroutine is None
    if isinstance(source, BaseTool):
        return _is_inherited(source, BaseTool, "_arun")
    if isinstance(source, VectorStoreRetriever):
        return _is_inherited(source.vectorstore, VectorStore, "asimilarity_search")
    return _is_inherited(source, BaseRetriever, "_aget_relevant_documents")


def _is_inherited(value: object, base: type, method: str) -> bool:
    """Return whether a value's class inherits a method from the given base class."""
    return getattr(type(value), method) is getattr(base, method)


@cache
def _takes_k(method: Callable[..., object]) -> bool:
    """Return whether a method declares `k`; `invoke` accepts any option but may ignore it."""
    return "k" in inspect.signature(method).parameters


def _completed(documents: Sequence[Document]) -> list[Document]:
    return [*map(_complete, documents, count(1))]


def _complete(document: Document, rank: int) -> Document:
    """Return a document with any missing title, source and score filled in.

    Headings from LangChain's splitters become the title; page numbers are added to the source.
    """
    facts = document.metadata
    source = str(next(filter(None, map(facts.get, _ORIGINS)), ""))
    page = facts.get("page_label", facts.get("page"))
    if page is not None and page != "":
        source += f"#page={page}"
    headings = " \u203a ".join(str(facts[key]) for key in _HEADINGS if facts.get(key))
    words = " ".join(document.page_content.split()[:8])
    title = str(facts.get("title") or headings or source or words)
    score = facts.get("score", facts.get("relevance_score", 1 / rank))
    complete = {**facts, "title": title, "source": source, "score": score}
    return Document(document.page_content, id=document.id, metadata=complete)
