"""A procedural memory as a LangChain retriever."""

from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field

from stepcraft.memory.store import Found, ProcedureMemory


class ProcedureRetriever(BaseRetriever):
    """Finds procedures in a memory, as documents, best first.

    A document holds the whole procedure as one text, and as metadata its `id`, `title` (what it reaches),
    `source` and `score`. `k` may also be given with a call: `retriever.invoke(query, k=5)`. `ainvoke` does not
    block the event loop.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    memory: Any
    """The ProcedureMemory that is searched."""
    k: int = Field(default=3, ge=1)
    """How many procedures to find."""
    alpha: float | None = Field(default=None, ge=0, le=1)
    """The weight of the vectors; None means the memory's own."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        del run_manager
        memory: ProcedureMemory = self.memory
        found = memory.search(query, self.k if k is None else k, alpha=self.alpha)
        return [_document(hit, memory.template) for hit in found]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        del run_manager
        memory: ProcedureMemory = self.memory
        found = await memory.asearch(query, self.k if k is None else k, alpha=self.alpha)
        return [_document(hit, memory.template) for hit in found]


def _document(found: Found, template: str) -> Document:
    procedure = found.procedure
    facts = {"id": procedure.id, "title": procedure.output, "source": procedure.source, "score": found.score}
    return Document(page_content=procedure.text(template), metadata=facts, id=procedure.id)
