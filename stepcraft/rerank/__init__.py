"""What scores the sentences of passages against a plan: the hybrid of the local index, or a model made for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from stepcraft.text.clean import normalised, tokens


@dataclass(frozen=True)
class Sentence:
    """A sentence of a passage."""

    passage: str
    position: int
    """Its place among the sentences of its passage, from 0."""
    title: str
    """The passage's: it says what the sentence is about, which the sentence often does not."""
    text: str

    @property
    def titled(self) -> str:
        """What is scored."""
        return f"{self.title[:_TITLE]}\n{self.text}" if self.title else self.text

    @cached_property
    def folded(self) -> str:
        """What makes it the same as another."""
        return normalised(self.text)

    @cached_property
    def tokens(self) -> int:
        """About how many."""
        return tokens(self.text)


_TITLE = 200
"""So many characters of a title are scored with each of its sentences."""


class Ranking(Protocol):
    """The sentences of a run, made ready to be scored against one plan after another."""

    def scores(self, plan: str) -> Sequence[float]:
        """One score a sentence; higher is better."""
        ...


class Reranker(Protocol):
    """Makes sentences ready."""

    @property
    def name(self) -> str:
        """What it is called in warnings and traces."""
        ...

    @property
    def threshold(self) -> float:
        """What a score must be above where no threshold is set."""
        ...

    @property
    def waits(self) -> bool:
        """Whether it may take long, for a network or a large model, so that it gets a thread and a limit."""
        ...

    def ready(self, sentences: Sequence[Sentence]) -> Ranking:
        """What can be done once for all plans."""
        ...
