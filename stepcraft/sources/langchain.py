"""Any LangChain retriever as a source of evidence."""

import inspect
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import count
from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langgraph.errors import GraphBubbleUp

from stepcraft.errors import SourceFailure, StepcraftError
from stepcraft.secrets import excerpt
from stepcraft.sources.base import Source

_SOURCE_KEYS = ("source", "url", "link", "path", "file_path")


class RetrieverAdapter(Source):
    """A LangChain retriever that takes `k` with each call, and gives titles and scores.

    Asking for more documents than the retriever gives by default works where it takes `k` with a
    call, has a field `k`, or has `search_kwargs`. Missing scores are filled in from the rank. A
    retriever without async methods runs in a thread of its
    own rather than in the event loop's pool, where a few hung searches would hold up all else.

    Raises:
        SourceFailure: The retriever raised something else than an interrupt or an error of ours.
    """

    retriever: BaseRetriever
    """The retriever that is asked."""
    spec: str
    """The name of the source in messages."""

    @classmethod
    def of(cls, retriever: BaseRetriever, name: str) -> BaseRetriever:
        """Return a retriever that takes `k` with a call: this one if it does, else an adapter."""
        kind = type(retriever)
        if _takes_k(kind._get_relevant_documents) and _takes_k(kind._aget_relevant_documents):
            return retriever
        return cls(retriever=retriever, spec=name)

    def _search(self, query: str, k: int) -> list[Document]:
        retriever, options = self._giving(k, type(self.retriever)._get_relevant_documents)
        with self._failures():
            return [*map(_complete, retriever.invoke(query, **options)[:k], count(1))]

    async def _asearch(self, query: str, k: int) -> list[Document]:
        method = type(self.retriever)._aget_relevant_documents
        if method is BaseRetriever._aget_relevant_documents:
            return await super()._asearch(query, k)
        retriever, options = self._giving(k, method)
        with self._failures():
            documents = await retriever.ainvoke(query, **options)
        return [*map(_complete, documents[:k], count(1))]

    def _giving(
        self, k: int, method: Callable[..., object]
    ) -> tuple[BaseRetriever, dict[str, Any]]:
        """Return a retriever whose method gives so many documents, called with these options."""
        retriever = self.retriever
        if _takes_k(method):
            return retriever, {"k": k}
        arguments = {**(getattr(retriever, "search_kwargs", None) or {}), "k": k}
        values = {"k": k, "search_kwargs": arguments}
        update = {name: values[name] for name in values.keys() & type(retriever).model_fields}
        return retriever.model_copy(update=update), {}

    @contextmanager
    def _failures(self) -> Generator[None]:
        try:
            yield
        except (StepcraftError, GraphBubbleUp):
            raise
        except Exception as error:
            raise SourceFailure(f"the source {self.spec} failed: {excerpt(error, 300)}") from error


def _takes_k(method: Callable[..., object]) -> bool:
    """Tell whether a retriever's method takes `k`; `invoke` takes any option and may ignore it."""
    return "k" in inspect.signature(method).parameters


def _complete(document: Document, rank: int) -> Document:
    """Return a document with title, source and score filled in where they are missing."""
    facts = document.metadata
    source = str(next(filter(None, map(facts.get, _SOURCE_KEYS)), ""))
    title = str(facts.get("title") or source or " ".join(document.page_content.split()[:8]))
    score = facts.get("score", facts.get("relevance_score", 1 / rank))
    complete = {**facts, "title": title, "source": source, "score": score}
    return document.model_copy(update={"metadata": complete})
