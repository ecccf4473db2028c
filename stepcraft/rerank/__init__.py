"""Rerankers: what scores the sentences of passages against a plan (RPG §3.2)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from stepcraft.evidence import Evidence
from stepcraft.text.sentences import passage_sentences

_MAX_TITLE = 200
"""Characters of a title that are scored with each of its sentences."""


@dataclass(frozen=True)
class Sentence:
    """A sentence of a passage."""

    passage: str
    """The id of the passage."""
    title: str
    """The title of the passage, which says what the sentence is about."""
    text: str

    @property
    def titled(self) -> str:
        """The text that is scored: the title above the sentence."""
        return f"{self.title[:_MAX_TITLE]}\n{self.text}" if self.title else self.text


class Reranker(Protocol):
    """A way to score sentences."""

    @property
    def name(self) -> str:
        """Its name in warnings and traces."""
        ...

    @property
    def threshold(self) -> float:
        """The default threshold: sentences with a score above it are selected."""
        ...

    def scores(self, plan: str, sentences: Sequence[Sentence]) -> Sequence[float]:
        """Return one score a sentence; higher is better. It may raise anything."""
        ...


def sentences_of(evidence: Iterable[Evidence]) -> list[Sentence]:
    """Return the sentences of passages, in order, each passage once."""
    passages = {passage["id"]: passage for passage in evidence}
    return [
        Sentence(passage["id"], passage["title"], text)
        for passage in passages.values()
        for text in passage_sentences(passage["text"])
    ]
