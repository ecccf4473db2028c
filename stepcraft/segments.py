"""The segments of an RPG answer, and the sentences that were selected for each, as plain JSON."""

from collections.abc import Iterable, Sequence

from typing_extensions import TypedDict


class Selected(TypedDict):
    """A sentence that was selected for a plan (RPG §3.2)."""

    passage: str
    """The id of its passage among the evidence."""
    position: int
    """Its index among the sentences of its passage."""
    text: str
    score: float
    """How well it fits the plan; higher is better."""


class Segment(TypedDict):
    """One part of an answer."""

    plan: str
    """The topic that was planned for it."""
    sentences: list[Selected]
    """The sentences it was written from, in the order of the passages and of their texts."""
    text: str
    evidence: list[str]
    """The ids of the passages of its sentences, each once, in order."""
    unsupported: bool
    """Whether no sentence fitted well enough, so that it was written without evidence."""


def written(segments: Sequence[Segment]) -> str:
    """Return the answer so far: the texts of the segments, separated by blank lines."""
    return "\n\n".join(segment["text"] for segment in segments)


def passages_of(sentences: Iterable[Selected]) -> list[str]:
    """Return the ids of the passages of some sentences, each once, in order."""
    return list(dict.fromkeys(sentence["passage"] for sentence in sentences))


def used(segments: Sequence[Segment]) -> list[str]:
    """Return the ids of all passages that the segments were written from, each once, in order."""
    return list(dict.fromkeys(passage for segment in segments for passage in segment["evidence"]))
