"""The sources of a run: several as one, each opened once in a process."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from stepcraft.sources.foreign import ForeignRetriever, takes_k
from stepcraft.sources.open import open_source

_MOST = 32
_opened: dict[str, BaseRetriever] = {}
_opening = threading.Lock()


class Several(BaseRetriever):
    """Searches several sources; the best of each, then the second best of each, and so on.

    Their scores cannot be compared, so k passages come from every one of them.
    """

    sources: Sequence[BaseRetriever]
    k: int = 4

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        config: Any = {"callbacks": run_manager.get_child()}
        return _in_turn([source.invoke(query, config, k=k or self.k) for source in self.sources])

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        config: Any = {"callbacks": run_manager.get_child()}
        searches = (source.ainvoke(query, config, k=k or self.k) for source in self.sources)
        return _in_turn(await asyncio.gather(*searches))


def shared_source(named: Sequence[BaseRetriever | str]) -> BaseRetriever:
    """The sources as one retriever that takes `k` with a call; what is named by a spec is opened once.

    Raises:
        BadInput: a spec is not understood, or there is nothing in what it names.
        SourceFailure: a source cannot be read.
    """
    sources = [_shared(one) if isinstance(one, str) else _of_object(one) for one in named]
    return sources[0] if len(sources) == 1 else Several(sources=sources)


def _of_object(retriever: BaseRetriever) -> BaseRetriever:
    """A retriever that takes `k` with a call, which is this one if it does."""
    methods = (retriever._get_relevant_documents, retriever._aget_relevant_documents)  # pyright: ignore[reportPrivateUsage] - `invoke` takes anything
    if all(takes_k(method) for method in methods):
        return retriever
    return ForeignRetriever(retriever=retriever, spec=type(retriever).__name__)


def _shared(spec: str) -> BaseRetriever:
    with _opening:
        source = _opened.pop(spec, None) or open_source(spec)
        _opened[spec] = source
        while len(_opened) > _MOST:
            _opened.pop(next(iter(_opened)))
        return source


def _in_turn(found: Sequence[Sequence[Document]]) -> list[Document]:
    longest = max(map(len, found), default=0)
    return [documents[rank] for rank in range(longest) for documents in found if rank < len(documents)]
