"""Any LangChain retriever as a source of evidence."""

import asyncio
import hashlib
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp
from pydantic import Field

from stepcraft.concurrency import in_thread
from stepcraft.errors import BadInput, SourceFailure, StepcraftError
from stepcraft.secrets import without_secrets

_SOURCE_KEYS = ("source", "url", "link", "path", "file_path")


class RetrieverAdapter(BaseRetriever):
    """A LangChain retriever with the contract of sources: `k` with each call, and ids, titles and scores.

    Asking for more documents than the retriever gives by default works where it takes `k` with a call, has a field
    `k`, or has `search_kwargs`. Missing scores are filled in from the rank. In a trace the retriever is a child run.
    A retriever without async methods runs in a thread of its own rather than in the event loop's pool, where a few
    hung searches would hold up everything else.

    Raises:
        BadInput: a call asks for fewer than one document.
        SourceFailure: the retriever raised something else than an interrupt or an error of this package.
    """

    retriever: BaseRetriever
    """The retriever that is asked."""
    spec: str
    """The name of the source in messages."""
    k: int = Field(default=5, ge=1)
    """How many documents to return."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        wanted, asked, options = self._asked(k)
        try:
            found = asked.invoke(query, {"callbacks": run_manager.get_child()}, **options)
        except (StepcraftError, GraphBubbleUp):
            raise
        except Exception as error:
            raise self._failure(error) from error
        return [_document(document, rank) for rank, document in enumerate(found[:wanted])]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        wanted, asked, options = self._asked(k)
        config: RunnableConfig = {"callbacks": run_manager.get_child()}
        method = type(asked)._aget_relevant_documents  # pyright: ignore[reportPrivateUsage] - as in `takes_k`
        try:
            if method is BaseRetriever._aget_relevant_documents or (
                options and not takes_k(method)
            ):
                found = await asyncio.wrap_future(
                    in_thread(partial(asked.invoke, query, config, **options))
                )
            else:
                found = await asked.ainvoke(query, config, **options)
        except (StepcraftError, GraphBubbleUp):
            raise
        except Exception as error:
            raise self._failure(error) from error
        return [_document(document, rank) for rank, document in enumerate(found[:wanted])]

    def _asked(self, k: int | None) -> tuple[int, BaseRetriever, dict[str, Any]]:
        """How many documents are wanted, and the retriever with the options of its call that ask for so many."""
        wanted, retriever = self.k if k is None else k, self.retriever
        if wanted < 1:
            raise BadInput(f"k must be at least 1, not {wanted}")
        if takes_k(retriever._get_relevant_documents):  # pyright: ignore[reportPrivateUsage] - as in `takes_k`
            return wanted, retriever, {"k": wanted}
        if "k" in type(retriever).model_fields:
            return wanted, retriever.model_copy(update={"k": wanted}), {}
        if "search_kwargs" in type(retriever).model_fields:
            kept = getattr(retriever, "search_kwargs", None) or {}
            return wanted, retriever.model_copy(update={"search_kwargs": {**kept, "k": wanted}}), {}
        return wanted, retriever, {}

    def _failure(self, error: Exception) -> SourceFailure:
        reason = " ".join(without_secrets(str(error)).split())[:300]
        return SourceFailure(f"the source {self.spec} failed: {type(error).__name__}: {reason}")


def with_k(retriever: BaseRetriever, name: str) -> BaseRetriever:
    """Return a retriever that takes `k` with a call, sync and async: this one if it does, else an adapter for it."""
    sync, awaited = retriever._get_relevant_documents, retriever._aget_relevant_documents  # pyright: ignore[reportPrivateUsage] - as in `takes_k`
    return (
        retriever
        if takes_k(sync) and takes_k(awaited)
        else RetrieverAdapter(retriever=retriever, spec=name)
    )


def takes_k(method: Callable[..., object]) -> bool:
    """Whether a retriever's method takes `k` with a call; `invoke` itself takes any option and may ignore it."""
    return "k" in inspect.signature(method).parameters


def _document(document: Document, rank: int) -> Document:
    """The document with its id, title, source and score filled in where they are missing."""
    facts, text = document.metadata, document.page_content
    source = next((str(facts[name]) for name in _SOURCE_KEYS if facts.get(name)), "")
    title = str(facts.get("title") or source or " ".join(text.split()[:8]))
    given = next((facts[name] for name in ("score", "relevance_score") if name in facts), None)
    score = float(given) if isinstance(given, int | float) else 1 / (1 + rank)
    digest = hashlib.blake2b(
        f"{source}\n{text}".encode(errors="replace"), digest_size=12
    ).hexdigest()
    metadata = {**facts, "title": title, "source": source, "score": score}
    return Document(page_content=text, metadata=metadata, id=document.id or digest)
