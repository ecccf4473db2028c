"""A procedural memory as a LangChain retriever."""

from collections.abc import Sequence
from typing import Any, Protocol

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field

from stepcraft.errors import BadInput
from stepcraft.memory.feedback import FEEDBACK_WEIGHT, fetched, reranked
from stepcraft.memory.procedure import Found, compose


class _Searched(Protocol):
    """The part of a ProcedureMemory that a retriever uses; the memory's own protocol imports this module."""

    @property
    def template(self) -> str: ...

    def search(self, query: str, k: int, *, alpha: float | None) -> list[Found]: ...

    async def asearch(self, query: str, k: int, *, alpha: float | None) -> list[Found]: ...


class ProcedureRetriever(BaseRetriever):
    """A retriever of procedures from a memory, best first.

    The content of a document is the whole procedure as one text. Its metadata are `id`, `title` (the output of the
    procedure), `source` and `score`; a composed pair also has both ids as `composed_of`. `k` may also be given with a
    call, as in `retriever.invoke(query, k=5)`. `ainvoke` does not block the event loop.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    memory: Any
    """The ProcedureMemory to search."""
    k: int = Field(default=3, ge=1)
    """How many procedures to find."""
    alpha: float | None = Field(default=None, ge=0, le=1)
    """The weight of vectors; None for the memory's default."""
    feedback_weight: float = Field(default=FEEDBACK_WEIGHT, ge=0, le=1)
    """By how much votes and stale marks move a procedure's score at most; 0 switches them off."""
    compose: bool = False
    """Whether two procedures are returned as one where the output of one is an input of the other."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        del run_manager
        memory: _Searched = self.memory
        wanted = self.k if k is None else k
        found = memory.search(query, fetched(wanted, self.feedback_weight), alpha=self.alpha)
        return self._documents(found, wanted)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        del run_manager
        memory: _Searched = self.memory
        wanted = self.k if k is None else k
        found = await memory.asearch(query, fetched(wanted, self.feedback_weight), alpha=self.alpha)
        return self._documents(found, wanted)

    def _documents(self, found: Sequence[Found], wanted: int) -> list[Document]:
        best = reranked(found, wanted, self.feedback_weight)
        groups = composed(best) if self.compose else [(hit,) for hit in best]
        return [_document(hits, self.memory.template) for hits in groups]


def composed(found: Sequence[Found]) -> list[tuple[Found, ...]]:
    """Group search results, best first: pairs where the first yields what the second needs, and single ones."""
    left, groups = list(found), list[tuple[Found, ...]]()
    while left:
        hit = left.pop(0)
        orders = ((pair, other) for other in left for pair in ((hit, other), (other, hit)))
        pair, other = next((order for order in orders if _composable(*order[0])), ((hit,), None))
        groups.append(pair)
        left = [one for one in left if one is not other]
    return groups


def _composable(first: Found, second: Found) -> bool:
    try:
        compose(first.procedure, second.procedure)
    except BadInput:
        return False
    return True


def _document(hits: tuple[Found, ...], template: str) -> Document:
    procedure = hits[0].procedure if len(hits) == 1 else compose(*(hit.procedure for hit in hits))
    metadata: dict[str, Any] = {"id": procedure.id, "title": procedure.output}
    if len(hits) > 1:
        metadata["title"] = f"{procedure.output} (composed: first {hits[0].procedure.output})"
        metadata["composed_of"] = [hit.procedure.id for hit in hits]
    sources = ", ".join(dict.fromkeys(hit.procedure.source for hit in hits if hit.procedure.source))
    metadata |= {"source": sources, "score": max(hit.score for hit in hits)}
    return Document(page_content=procedure.text(template), metadata=metadata, id=procedure.id)
