"""A procedural memory as a LangChain retriever."""

from collections.abc import Sequence
from itertools import permutations
from typing import Any

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


class ProcedureRetriever(BaseRetriever):
    """A retriever of procedures from a memory, best first.

    The content of a document is the whole procedure as one text. Its metadata are `id`, `title`
    (the output of the procedure), `source` and `score`; a composed pair also has both ids as
    `composed_of`. `k` may also be given with a call, as in `retriever.invoke(query, k=5)`.
    `ainvoke` does not block the event loop.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    memory: Any
    """The ProcedureMemory to search."""
    k: int = Field(default=3, ge=1)
    """How many procedures to return."""
    alpha: float | None = Field(default=None, ge=0, le=1)
    """The weight of vectors; None for the memory's default."""
    feedback_weight: float = Field(default=FEEDBACK_WEIGHT, ge=0, le=1)
    """By how much votes and stale marks move a score at most; 0 switches them off."""
    compose: bool = False
    """Whether two procedures become one where the output of one is an input of the other."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        del run_manager
        count = self.k if k is None else k
        hits = self.memory.search(query, fetched(count, self.feedback_weight), alpha=self.alpha)
        return self._documents(hits, count)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        del run_manager
        count = self.k if k is None else k
        hits = await self.memory.asearch(query, fetched(count, self.feedback_weight), alpha=self.alpha)
        return self._documents(hits, count)

    def _documents(self, hits: Sequence[Found], count: int) -> list[Document]:
        best = reranked(hits, count, self.feedback_weight)
        groups = composed(best) if self.compose else [(hit,) for hit in best]
        return [_document(group, self.memory.template) for group in groups]


def composed(hits: Sequence[Found]) -> list[tuple[Found, ...]]:
    """Group hits, best first: pairs where the first yields what the second needs, and single ones."""
    rest, groups = list(hits), list[tuple[Found, ...]]()
    while rest:
        hit = rest.pop(0)
        pairs = (pair for other in rest for pair in permutations((hit, other)))
        group = next((pair for pair in pairs if _is_composable(*pair)), (hit,))
        groups.append(group)
        rest = [other for other in rest if other not in group]
    return groups


def _is_composable(first: Found, second: Found) -> bool:
    try:
        compose(first.procedure, second.procedure)
    except BadInput:
        return False
    return True


def _document(group: tuple[Found, ...], template: str) -> Document:
    procedures = [hit.procedure for hit in group]
    procedure, title = procedures[0], procedures[0].output
    sources = dict.fromkeys(item.source for item in procedures if item.source)
    metadata: dict[str, Any] = {
        "source": ", ".join(sources),
        "score": max(hit.score for hit in group),
    }
    if len(group) > 1:
        procedure = compose(*procedures)
        title = f"{procedure.output} (composed: first {title})"
        metadata["composed_of"] = [item.id for item in procedures]
    metadata |= {"id": procedure.id, "title": title}
    return Document(page_content=procedure.text(template), metadata=metadata, id=procedure.id)
