"""A procedural memory as a LangChain retriever."""

from functools import partial
from typing import Any

from langchain_core.documents import Document
from pydantic import Field

from stepcraft.memory.outcomes import OUTCOME_WEIGHT, ranked
from stepcraft.retriever import Source


class ProcedureRetriever(Source):
    """A retriever that returns procedures from a memory, best first.

    A document's content is the whole procedure, and its metadata fields are `id`, `title` (the
    output of the procedure), `source` and `score`. `k` may also be passed per call, as in
    `retriever.invoke(query, k=5)`. `ainvoke` does not block the event loop.
    """

    memory: Any
    """The ProcedureMemory to search."""
    k: int = 3
    """The number of procedures to return."""
    alpha: float | None = None
    """The weight of vectors; None for the memory's default."""
    where: dict[str, str] = Field(default_factory=dict)
    """Tags that a procedure must have, with their values."""
    outcome_weight: float = OUTCOME_WEIGHT
    """The maximum by which outcomes and stale marks change a score; 0 switches them off."""
    least_score: float = float("-inf")
    """The minimum score, before outcomes are considered; results below it are left out."""

    def _search(self, query: str, k: int) -> list[Document]:
        options = {"where": self.where} if self.where else {}
        search = partial(self.memory.search, query, alpha=self.alpha, **options)
        return [
            Document(
                page_content=hit.procedure.text(),
                metadata={
                    "id": hit.procedure.id,
                    "title": hit.procedure.output,
                    "source": hit.procedure.source,
                    "score": hit.score,
                },
                id=hit.procedure.id,
            )
            for hit in ranked(search, k, self.outcome_weight, least_score=self.least_score)
        ]
