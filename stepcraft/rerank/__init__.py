"""Rerankers: what scores the sentences of passages against a plan (RPG §3.2)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from stepcraft.text.clean import normalised, tokens

_MAX_TITLE = 200
"""The number of a title's characters that are scored with each of its sentences."""


@dataclass(frozen=True)
class Sentence:
    """A sentence of a passage."""

    passage: str
    """The id of the passage."""
    position: int
    """Its index among the sentences of the passage."""
    title: str
    """The title of the passage: it says what the sentence is about, which the sentence often does not."""
    text: str

    @property
    def titled(self) -> str:
        """The text that is scored: the title above the sentence."""
        return f"{self.title[:_MAX_TITLE]}\n{self.text}" if self.title else self.text

    @cached_property
    def folded(self) -> str:
        """The form by which it is the same as another."""
        return normalised(self.text)

    @cached_property
    def tokens(self) -> int:
        """Its estimated number of tokens."""
        return tokens(self.text)


class Ranking(Protocol):
    """Sentences that are ready to be scored against one plan after another."""

    def scores(self, plan: str) -> Sequence[float]:
        """Return one score a sentence; higher is better. It may raise anything."""
        ...


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

    @property
    def waits(self) -> bool:
        """Whether it may take long, as a remote or a large model, so that it needs a thread and a deadline."""
        ...

    def ready(self, sentences: Sequence[Sentence]) -> Ranking:
        """Do what is done once for all plans, such as embedding the sentences. It may raise anything."""
        ...
