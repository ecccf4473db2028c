"""What RPG writes: segments, and the sentences that were selected for each."""

from collections.abc import Iterable, Sequence

from typing_extensions import TypedDict


class Selected(TypedDict):
    """A sentence of a passage that was selected for a plan."""

    passage: str
    """The id of its passage among the evidence."""
    position: int
    """Its place among the sentences of its passage, from 0."""
    text: str
    score: float
    """How well it fits the plan; higher is better."""


class Segment(TypedDict):
    """One piece of an answer: what it was to be about, what it was written from, and what was written."""

    plan: str
    sentences: list[Selected]
    """In the order of the passages, and within one in the order of its text."""
    text: str
    evidence: list[str]
    """The ids of the passages of its sentences, each once, in order."""
    unsupported: bool
    """Whether no sentence fitted well enough, so that it was written without evidence."""


def written(segments: Sequence[Segment]) -> str:
    """The answer so far."""
    return "\n\n".join(segment["text"] for segment in segments)


def passages_of(sentences: Iterable[Selected]) -> list[str]:
    """The ids of the passages of some sentences, each once, in order."""
    return list(dict.fromkeys(sentence["passage"] for sentence in sentences))


def used(segments: Sequence[Segment]) -> list[str]:
    """The ids of all passages that segments were written from, in the order of their first use."""
    return list(dict.fromkeys(passage for segment in segments for passage in segment["evidence"]))
