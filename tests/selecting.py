"""The select node alone, as a graph runs it, and rerankers for it."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.callbacks import Callbacks
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import Embeddings
from langgraph.graph import StateGraph

from stepcraft.evidence import Evidence
from stepcraft.graphs.rpg import RpgContext, State
from stepcraft.llm.resources import GraphResources
from stepcraft.nodes.rpg.select import SelectNode
from stepcraft.segments import Segment, Selected

BRIDGE = "The old bridge of Mostar stands in Bosnia. Mimar Haldruvin built the bridge in 1566. It fell in the year 1993."
CHEESE = "Brie is a soft cheese. It is made of the milk of cows. The rind is white."
BUILDER = "Mimar Haldruvin built the bridge in 1566."


def evidence(*texts: str, titles: Sequence[str] = ()) -> list[Evidence]:
    """Passages p0, p1, …."""
    named = [*titles, *[""] * len(texts)]
    return [
        Evidence(id=f"p{number}", title=named[number], text=text, source="", score=0.5)
        for number, text in enumerate(texts)
    ]


PAPER = {"paper": True}
"""Sentences alone, each once, as in the paper."""


class Selecting:
    """Selects as a run of RPG would, cycle after cycle."""

    def __init__(self, reranker: object = None) -> None:
        builder: Any = StateGraph(State, RpgContext)
        builder.add_node("select", SelectNode(GraphResources("rpg", RpgContext, reranker=reranker)))
        builder.set_entry_point("select")
        self.graph = builder.compile()
        self.warnings: list[str] = []

    def __call__(
        self, plan: str, passages: list[Evidence], used: Sequence[Selected] = (), **context: Any
    ) -> list[Selected]:
        return self._told(self.graph.invoke(self._state(plan, passages, used), context=PAPER | context))

    async def on_loop(self, plan: str, passages: list[Evidence], **context: Any) -> list[Selected]:
        return self._told(await self.graph.ainvoke(self._state(plan, passages, ()), context=PAPER | context))

    def _state(self, plan: str, passages: list[Evidence], used: Sequence[Selected]) -> dict[str, Any]:
        before = Segment(plan="", sentences=list(used), text="", evidence=[], unsupported=False)
        return {"plan": plan, "question": "Who built it?", "evidence": passages, "segments": [before]}

    def _told(self, state: dict[str, Any]) -> list[Selected]:
        self.warnings = state["warnings"]
        return state["selected"]


def both(selecting: Selecting, plan: str, passages: list[Evidence], **context: Any) -> list[Selected]:
    """What is selected, which is the same on an event loop."""
    blocking = selecting(plan, passages, **context)
    warned = selecting.warnings
    assert asyncio.run(selecting.on_loop(plan, passages, **context)) == blocking
    assert selecting.warnings == warned
    return blocking


class Scorer(BaseCrossEncoder):
    """Scores as a function says."""

    def __init__(self, says: Callable[[list[tuple[str, str]]], Any]) -> None:
        self.says = says

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        return self.says(text_pairs)


class Filter(BaseDocumentCompressor):
    """Keeps the documents that a function keeps."""

    says: Callable[[Sequence[Document]], Sequence[Document]]

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        return self.says(documents)


class Letters(Embeddings):
    """A vector of how often each letter occurs; counts what it embeds."""

    def __init__(self) -> None:
        self.embedded: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.embedded += texts
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [float(text.lower().count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"]
