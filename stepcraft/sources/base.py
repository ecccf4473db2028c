"""What the sources of this package have in common."""

import asyncio

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field

from stepcraft.concurrency import in_thread
from stepcraft.errors import BadInput


class Source(BaseRetriever):
    """A retriever that takes `k` with a call and never blocks an event loop. A child says in `_found` what it finds."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    k: int = Field(default=5, ge=1)
    """How many passages to find."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        del run_manager
        return self._found(query, self._wanted(k))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        del run_manager
        wanted = self._wanted(k)
        return await asyncio.wrap_future(in_thread(lambda: self._found(query, wanted)))

    def _wanted(self, k: int | None) -> int:
        wanted = self.k if k is None else k
        if wanted < 1:
            raise BadInput(f"k is the number of passages to find, at least 1, not {wanted}")
        return wanted

    def _found(self, query: str, k: int) -> list[Document]:
        raise NotImplementedError
