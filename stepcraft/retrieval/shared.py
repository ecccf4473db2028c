"""The sources of a run: several as one, each opened once in a process."""

import asyncio
import threading
import time
from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from stepcraft.sources.langchain import ForeignRetriever, takes_k
from stepcraft.sources.open import open_source

_MOST = 32
_FOLLOWS_S = 60
"""How old what is known of a corpus's files may be when a run begins, in seconds."""

_opened: dict[str, tuple[BaseRetriever, float]] = {}
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
        return in_turn([source.invoke(query, config, k=k or self.k) for source in self.sources])

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        config: Any = {"callbacks": run_manager.get_child()}
        searches = (source.ainvoke(query, config, k=k or self.k) for source in self.sources)
        return in_turn(await asyncio.gather(*searches))


def shared_source(named: Sequence[BaseRetriever | str], *, begins: bool = False) -> BaseRetriever:
    """The sources as one retriever that takes `k` with a call; what is named by a spec is opened once.

    Args:
        named: retrievers, and specs of sources.
        begins: whether a run begins, which sees what changed in the files of a corpus more than a minute ago.

    Raises:
        BadInput: a spec is not understood, or there is nothing in what it names.
        SourceFailure: a source cannot be read.
    """
    sources = [_shared(one, begins=begins) if isinstance(one, str) else _of_object(one) for one in named]
    return sources[0] if len(sources) == 1 else Several(sources=sources)


def _of_object(retriever: BaseRetriever) -> BaseRetriever:
    """A retriever that takes `k` with a call, which is this one if it does."""
    methods = (retriever._get_relevant_documents, retriever._aget_relevant_documents)  # pyright: ignore[reportPrivateUsage] - `invoke` takes anything
    if all(takes_k(method) for method in methods):
        return retriever
    return ForeignRetriever(retriever=retriever, spec=type(retriever).__name__)


def is_open(named: Sequence[BaseRetriever | str]) -> bool:
    """Whether `shared_source` has nothing to open, which may take long."""
    return all(not isinstance(one, str) or one in _opened for one in named)


def _shared(spec: str, *, begins: bool) -> BaseRetriever:
    with _opening:
        source, since = _opened.pop(spec, (None, 0.0))
        old = begins and spec.startswith("corpus:") and time.monotonic() - since > _FOLLOWS_S
        if source is None or old:
            source, since = open_source(spec), time.monotonic()
        _opened[spec] = source, since
        while len(_opened) > _MOST:
            _opened.pop(next(iter(_opened)))
        return source


def in_turn(found: Sequence[Sequence[Document]]) -> list[Document]:
    """The best of each, then the second best of each, and so on."""
    longest = max(map(len, found), default=0)
    return [documents[rank] for rank in range(longest) for documents in found if rank < len(documents)]
