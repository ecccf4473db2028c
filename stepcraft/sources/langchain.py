"""Any LangChain retriever as a source of evidence."""

import hashlib
import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig, run_in_executor
from pydantic import Field

from stepcraft.errors import BadInput, SourceFailure, StepcraftError, without_secrets

_SOURCES = ("source", "url", "link", "path", "file_path")


class ForeignRetriever(BaseRetriever):
    """Keeps the contract of sources over a retriever that does not: `k` with a call, ids, titles and scores.

    Asking for more than the retriever gives of itself works where it takes `k` with a call, has a field `k`, or
    has search_kwargs. Scores that are missing fall with the rank. The retriever shows as a run of its own in a trace.
    """

    retriever: BaseRetriever
    """The retriever that is asked."""
    spec: str
    """What it was named as."""
    k: int = Field(default=5, ge=1)
    """How many documents to give."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        wanted = _checked(self.k if k is None else k)
        asked, options = _asking_for(self.retriever, wanted)
        try:
            found = asked.invoke(query, {"callbacks": run_manager.get_child()}, **options)
        except Exception as error:
            raise self._plain(error) from error
        return [_document(document, rank) for rank, document in enumerate(found[:wanted])]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        wanted = _checked(self.k if k is None else k)
        asked, options = _asking_for(self.retriever, wanted)
        config: RunnableConfig = {"callbacks": run_manager.get_child()}
        try:
            if options and not takes_k(asked._aget_relevant_documents):  # pyright: ignore[reportPrivateUsage]
                found = await run_in_executor(None, partial(asked.invoke, query, config, **options))
            else:
                found = await asked.ainvoke(query, config, **options)
        except Exception as error:
            raise self._plain(error) from error
        return [_document(document, rank) for rank, document in enumerate(found[:wanted])]

    def _plain(self, error: Exception) -> StepcraftError:
        if isinstance(error, StepcraftError):
            return error
        reason = " ".join(without_secrets(str(error)).split())[:300]
        return SourceFailure(f"the source {self.spec} failed: {type(error).__name__}: {reason}")


def takes_k(method: Callable[..., object]) -> bool:
    """Whether a retriever's method takes `k` with a call."""
    return "k" in inspect.signature(method).parameters


def _checked(k: int) -> int:
    if k < 1:
        raise BadInput(f"k must be at least 1, not {k}")
    return k


def _asking_for(retriever: BaseRetriever, k: int) -> tuple[BaseRetriever, dict[str, Any]]:
    """The retriever, and what to call it with, so that it gives k documents if it can."""
    if takes_k(retriever._get_relevant_documents):  # pyright: ignore[reportPrivateUsage] - `invoke` takes anything
        return retriever, {"k": k}
    fields = type(retriever).model_fields
    if "k" in fields:
        return retriever.model_copy(update={"k": k}), {}
    if "search_kwargs" in fields:
        kept = getattr(retriever, "search_kwargs", None) or {}
        return retriever.model_copy(update={"search_kwargs": {**kept, "k": k}}), {}
    return retriever, {}


def _document(document: Document, rank: int) -> Document:
    facts = document.metadata
    source = next((str(facts[name]) for name in _SOURCES if facts.get(name)), "")
    known = {
        "title": str(facts.get("title") or source or _first_words(document.page_content)),
        "source": source,
        "score": _score(facts, rank),
    }
    name = (
        document.id
        or hashlib.blake2b(
            f"{source}\n{document.page_content}".encode(errors="replace"), digest_size=12
        ).hexdigest()
    )
    return Document(page_content=document.page_content, metadata={**facts, **known}, id=name)


def _score(facts: dict[str, Any], rank: int) -> float:
    given = next((facts[name] for name in ("score", "relevance_score") if name in facts), None)
    return float(given) if isinstance(given, int | float) else 1 / (1 + rank)


def _first_words(text: str) -> str:
    words: Sequence[str] = text.split()
    return " ".join(words[:8])
