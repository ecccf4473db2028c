"""Any LangChain retriever as a source of evidence."""

import asyncio
import hashlib
import inspect
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
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
from stepcraft.secrets import excerpt

_SOURCE_KEYS = ("source", "url", "link", "path", "file_path")


class RetrieverAdapter(BaseRetriever):
    """A LangChain retriever that takes `k` with each call, and gives ids, titles and scores.

    Asking for more documents than the retriever gives by default works where it takes `k` with a
    call, has a field `k`, or has `search_kwargs`. Missing scores are filled in from the rank. In a
    trace the retriever is a child run. A retriever without async methods runs in a thread of its
    own rather than in the event loop's pool, where a few hung searches would hold up all else.

    Raises:
        BadInput: A call asks for fewer than one document.
        SourceFailure: The retriever raised something else than an interrupt or an error of ours.
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
        wanted, retriever, options = self._asking_for(k)
        with self._failures():
            documents = retriever.invoke(query, {"callbacks": run_manager.get_child()}, **options)
        return _complete(documents[:wanted])

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        wanted, retriever, options = self._asking_for(k)
        config: RunnableConfig = {"callbacks": run_manager.get_child()}
        method = type(retriever)._aget_relevant_documents  # pyright: ignore[reportPrivateUsage]
        is_async = method is not BaseRetriever._aget_relevant_documents
        with self._failures():
            if is_async and (not options or takes_k(method)):
                documents = await retriever.ainvoke(query, config, **options)
            else:
                call = in_thread(partial(retriever.invoke, query, config, **options))
                documents = await asyncio.wrap_future(call)
        return _complete(documents[:wanted])

    def _asking_for(self, k: int | None) -> tuple[int, BaseRetriever, dict[str, Any]]:
        """Return how many documents are wanted, and the retriever and options that give as many."""
        wanted, retriever = self.k if k is None else k, self.retriever
        if wanted < 1:
            raise BadInput(f"k must be at least 1, not {wanted}")
        if takes_k(retriever._get_relevant_documents):  # pyright: ignore[reportPrivateUsage]
            return wanted, retriever, {"k": wanted}
        update: dict[str, Any] = {"k": wanted}
        if "k" not in type(retriever).model_fields:
            update = {
                "search_kwargs": {**(getattr(retriever, "search_kwargs", None) or {}), **update}
            }
        if update.keys() <= type(retriever).model_fields.keys():
            retriever = retriever.model_copy(update=update)
        return wanted, retriever, {}

    @contextmanager
    def _failures(self) -> Generator[None]:
        try:
            yield
        except (StepcraftError, GraphBubbleUp):
            raise
        except Exception as error:
            raise SourceFailure(f"the source {self.spec} failed: {excerpt(error, 300)}") from error


def with_k(retriever: BaseRetriever, name: str) -> BaseRetriever:
    """Return a retriever that takes `k` with a call: this one if it does, else an adapter."""
    methods = ("_get_relevant_documents", "_aget_relevant_documents")
    is_ready = all(takes_k(getattr(retriever, name)) for name in methods)
    return retriever if is_ready else RetrieverAdapter(retriever=retriever, spec=name)


def takes_k(method: Callable[..., object]) -> bool:
    """Tell whether a retriever's method takes `k`; `invoke` takes any option and may ignore it."""
    return "k" in inspect.signature(method).parameters


def _complete(documents: Sequence[Document]) -> list[Document]:
    """Return the documents with title, source and score filled in where they are missing."""
    complete: list[Document] = []
    for rank, document in enumerate(documents, 1):
        text, metadata = document.page_content, document.metadata
        source = next((str(metadata[key]) for key in _SOURCE_KEYS if metadata.get(key)), "")
        title = str(metadata.get("title") or source or " ".join(text.split()[:8]))
        score = metadata.get("score", metadata.get("relevance_score", 1 / rank))
        digest = hashlib.blake2b(f"{source}\n{text}".encode(errors="replace"), digest_size=12)
        metadata = {**metadata, "title": title, "source": source, "score": score}
        complete.append(Document(text, id=document.id or digest.hexdigest(), metadata=metadata))
    return complete
