"""A shelf of passages as a retriever, for graphs that search: it counts its searches, and can fail or wait."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field

from stepcraft.text.sections import parse

BRIDGE: Mapping[str, str] = {
    "Haldruvin": "Haldruvin built the Oster bridge in 1873.",
    "Oster": "The Oster bridge has four arches of granite.",
    "mayor": "The mayor in 1873 was Ilse Quandt.",
}
"""Passages by the word that finds them."""
QUESTION = {"question": "Who built the Oster bridge, and who was mayor then?"}

THREAD: Any = {"configurable": {"thread_id": "1"}}
"""The config of a run that a checkpointer keeps."""


class Shelf(BaseRetriever):
    """Finds the passages whose word stands in the query; `fail` may raise for a query."""

    passages: Mapping[str, str] = BRIDGE
    score: float = 0.5
    fail: Callable[[str], None] = lambda _query: None
    queries: list[str] = Field(default_factory=list)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int = 5
    ) -> list[Document]:
        self.queries.append(query)
        self.fail(query)
        fitting = [
            (word, text) for word, text in self.passages.items() if word.lower() in query.lower()
        ]
        return [
            Document(
                page_content=text,
                id=word,
                metadata={"title": word, "source": f"{word}.md", "score": self.score},
            )
            for word, text in fitting[:k]
        ]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: Any, k: int = 5
    ) -> list[Document]:
        return self._get_relevant_documents(query, run_manager=run_manager, k=k)


def shown(prompt: str, name: str) -> list[str]:
    """Return the texts of a prompt's sections of this name."""
    return [section.text for section in parse(prompt) if section.name == name]


def ids(result: Mapping[str, Any]) -> list[str]:
    """Return the ids of a result's evidence."""
    return [passage["id"] for passage in result["evidence"]]
