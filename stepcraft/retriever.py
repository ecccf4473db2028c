"""The base class of the retrievers in this package."""

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field

from stepcraft.concurrency import to_thread


class Source(BaseRetriever):
    """A retriever that accepts `k` per call.

    In async code, it searches in a thread unless it has its own `_asearch`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    k: int = Field(default=5, ge=1)
    """The number of passages to find."""

    def _search(self, query: str, k: int) -> list[Document]:
        """Return the k best-matching passages, best first. This may block."""
        raise NotImplementedError

    def beside(self, id: str) -> list[Document]:  # noqa: A002, ARG002 - as a document's field
        """Return the passages before and after the one with this id, or [] if none are known."""
        return []

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        del run_manager
        return self._search(query, self.k if k is None else k)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        del run_manager
        return await self._asearch(query, self.k if k is None else k)

    async def _asearch(self, query: str, k: int) -> list[Document]:
        return await to_thread(self._search, query, k)
