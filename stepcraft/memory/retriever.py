"""A procedural memory as a LangChain retriever."""

from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field

from stepcraft.errors import BadInput
from stepcraft.memory.procedure import compose
from stepcraft.memory.protocol import Found, ProcedureMemory


class ProcedureRetriever(BaseRetriever):
    """Finds procedures in a memory, as documents, best first.

    A document holds the whole procedure as one text, and as metadata its `id`, `title` (what it reaches),
    `source` and `score`; a composed pair also has both ids as `composed_of`. `k` may also be given with a call: `retriever.invoke(query, k=5)`. `ainvoke` does not
    block the event loop.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    memory: Any
    """The ProcedureMemory that is searched."""
    k: int = Field(default=3, ge=1)
    """How many procedures to find."""
    alpha: float | None = Field(default=None, ge=0, le=1)
    """The weight of the vectors; None means the memory's own."""
    compose: bool = False
    """Whether two procedures of which one yields what the other needs are given as one."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        del run_manager
        memory: ProcedureMemory = self.memory
        found = memory.search(query, self.k if k is None else k, alpha=self.alpha)
        return self._documents(found, memory.template)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        del run_manager
        memory: ProcedureMemory = self.memory
        found = await memory.asearch(query, self.k if k is None else k, alpha=self.alpha)
        return self._documents(found, memory.template)

    def _documents(self, found: Sequence[Found], template: str) -> list[Document]:
        pairs = composed(found) if self.compose else [(hit,) for hit in found]
        return [_document(hits, template) for hits in pairs]


def composed(found: Sequence[Found]) -> list[tuple[Found, ...]]:
    """What was found, best first, each procedure once: alone, or before the one that needs what it yields."""
    left, pairs = list(found), list[tuple[Found, ...]]()
    while left:
        hit = left.pop(0)
        orders = ((pair, other) for other in left for pair in ((hit, other), (other, hit)))
        pair, other = next((order for order in orders if _fit(*order[0])), ((hit,), None))
        pairs.append(pair)
        left = [one for one in left if one is not other]
    return pairs


def _fit(first: Found, second: Found) -> bool:
    try:
        compose(first.procedure, second.procedure)
    except BadInput:
        return False
    return True


def _document(hits: tuple[Found, ...], template: str) -> Document:
    """A procedure; two of them as one, which the title and `composed_of` say."""
    procedure = hits[0].procedure if len(hits) == 1 else compose(*(hit.procedure for hit in hits))
    facts: dict[str, Any] = {"id": procedure.id, "title": procedure.output}
    if len(hits) > 1:
        facts["title"] = f"{procedure.output} (composed: first {hits[0].procedure.output})"
        facts["composed_of"] = [hit.procedure.id for hit in hits]
    sources = ", ".join(dict.fromkeys(hit.procedure.source for hit in hits if hit.procedure.source))
    facts |= {"source": sources, "score": max(hit.score for hit in hits)}
    return Document(page_content=procedure.text(template), metadata=facts, id=procedure.id)
