"""The segments of an RPG answer, and the sentences that were selected for each, as plain JSON."""

from collections.abc import Iterable, Sequence

from typing_extensions import TypedDict

from stepcraft.schema import described


@described
class Selected(TypedDict):
    """A sentence that was selected for a plan (RPG §3.2)."""

    passage: str
    """The id of its passage among the evidence."""
    position: int
    """Its index among the sentences of its passage."""
    text: str
    """The sentence."""
    score: float
    """How well it fits the plan; higher is better."""


@described
class Segment(TypedDict):
    """One part of an answer."""

    plan: str
    """The topic that was planned for it."""
    sentences: list[Selected]
    """The sentences it was written from, in the order of the passages and of their texts."""
    text: str
    """What was written."""
    evidence: list[str]
    """The ids of the passages of its sentences, each once, in order."""
    unsupported: bool
    """Whether no sentence fitted well enough, so that it was written without evidence."""


class Outlined(TypedDict):
    """A segment that was written in parallel with others."""

    place: int
    """Its index in the outline."""
    plan: str
    segments: list[Segment]
    """The segment; empty where nothing was found for its plan, or its step failed."""


@described
class TracedSentence(TypedDict):
    """A sentence of an answer, and what it rests on."""

    text: str
    """The sentence, with the white space behind it: joined, the sentences are the answer."""
    evidence: list[str]
    """The ids of the passages that it cites, each once."""
    supported: bool
    """Whether it cites evidence, and no check found that this does not bear it out."""


def written(segments: Sequence[Segment]) -> str:
    """Return the answer so far: the texts of the segments, separated by blank lines."""
    return "\n\n".join(segment["text"] for segment in segments)


def passages_of(sentences: Iterable[Selected]) -> list[str]:
    """Return the ids of the passages of some sentences, each once, in order."""
    return list(dict.fromkeys(sentence["passage"] for sentence in sentences))


def used(segments: Sequence[Segment]) -> list[str]:
    """Return the ids of all passages that the segments were written from, each once, in order."""
    return list(dict.fromkeys(passage for segment in segments for passage in segment["evidence"]))


def support(supported: int, unsupported: int) -> str:
    """Return in words how many sentences rest on evidence, and how many do not; "" where there are none."""
    rest = "1 sentence rests" if supported == 1 else f"{supported:,} sentences rest"
    if supported and unsupported:
        return f"{rest} on evidence, {unsupported:,} {'does' if unsupported == 1 else 'do'} not."
    if supported > 1:
        return f"Each of the {supported:,} sentences rests on evidence."
    return f"{rest} on evidence." if supported else "No sentence rests on evidence." * bool(unsupported)
