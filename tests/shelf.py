"""A shelf of passages and scripts for RAT, shared by the tests of nodes and graphs."""

import asyncio
import re
import time
from collections.abc import Callable
from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import PrivateAttr

QUESTION = {"question": "Who built the old bridge of Mostar?"}
THOUGHTS = ["The bridge was built in 1566.\n\n", "Its builder was Haldruvin.\n\n", "It was rebuilt in 2004."]
DRAFT = "".join(THOUGHTS)
NUMBER = re.compile(r"^\[[0-9]+\] ", re.MULTILINE)
"""The number of a paragraph in the prompt of a revision."""


class Shelf(BaseRetriever):
    """Gives one passage after the other, and notes what it was asked."""

    k: int = 4
    latency: float = 0.0
    says: Callable[[str], list[Document] | None] = lambda _query: None
    """What there is on a query, None for the usual; may raise."""
    _queries: list[tuple[str, int]] = PrivateAttr(default_factory=list)

    @property
    def queries(self) -> list[tuple[str, int]]:
        """Every query so far, with how many passages it was to find."""
        return list(self._queries)

    def _get_relevant_documents(
        self, query: str, *, run_manager: Any, k: int | None = None
    ) -> list[Document]:
        self._queries.append((query, k or self.k))
        time.sleep(self.latency)
        told = self.says(query)
        return [passage(query, number) for number in range(k or self.k)] if told is None else told

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: Any, k: int | None = None
    ) -> list[Document]:
        return await asyncio.to_thread(self._get_relevant_documents, query, run_manager=run_manager, k=k)


def passage(query: str, number: int) -> Document:
    facts = {"title": f"On {query:.40}", "source": f"shelf/{number}.md:1", "score": 1.0 - number / 10}
    return Document(f"Passage {number} on {query}.", id=f"{query}/{number}", metadata=facts)


def thinker(changes: str, draft: str = DRAFT, *, finish: str = "The answer.") -> Callable[[str, str], str]:
    """A model whose revision of each thought, in order, changes it ("x") or does not (".").

    Where the paragraphs are numbered, it writes the changed one alone. What it does depends on its prompt alone, so that
    the order of the calls does not matter.
    """
    thoughts = draft.split("\n\n")

    def reply(node: str, prompt: str) -> str:
        text = section(prompt, "text")
        numbered = text.split("\n\n")[-1]
        last = NUMBER.sub("", numbered)
        if node == "draft":
            return draft
        if node == "to_query":
            return f"query for {section(prompt, 'thought')} after {len(text)}"
        if node == "revise":
            if last not in thoughts or changes[thoughts.index(last)] == ".":
                return "NO CHANGE"
            whole = section(prompt, "thought") or (text if numbered == last else numbered)
            return f"{whole} (checked against {len(section(prompt, 'evidence'))})"
        return finish

    return reply


def section(prompt: str, name: str) -> str:
    """The last section of a name in a prompt, "" if there is none."""
    _, found, after = prompt.rpartition(f"<{name}")
    return after.partition(">\n")[2].partition(f"\n</{name}>")[0] if found else ""
