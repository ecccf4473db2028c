"""What each sentence of an answer of RPG rests on."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stepcraft.evidence import Evidence
from stepcraft.segments import Segment
from stepcraft.text.citations import marks, with_marks_of
from stepcraft.text.clean import clean
from stepcraft.text.sentences import sentences

_STOP = ".!?\u3002\uff01\uff1f\u2026"
_MARKS_BEHIND = re.compile(rf"(?<![{_STOP}])([{_STOP}]+[\"'\u201d\u2019)]*)([ \t]*(?:\[\d+\])+)")
"""Marks behind the stop of the sentence that they belong to."""


@dataclass(frozen=True)
class Ground:
    """A passage that something rests on, and what was chosen from it."""

    number: int
    """Its place among the evidence, from 1."""
    passage: Evidence
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Stated:
    """A sentence of the answer, the blanks before it, and what it rests on."""

    before: str
    text: str
    grounds: tuple[Ground, ...]


def stated(result: Mapping[str, Any], *, inline: bool) -> list[Stated]:
    """The answer sentence by sentence.

    The sentences of a segment share its evidence, those of an answer combined from segments that of all of
    them; where the answer has marks like [1], each sentence has what its own marks name.
    """
    answer = clean(result["answer"]).strip()
    marked = inline and bool(marks(answer))
    return [
        sentence
        for text, segments in _stretches(answer, result["segments"])
        for sentence in _stated(text, segments, result["evidence"], marked=marked)
    ]


def grounds(segments: Sequence[Segment], evidence: Sequence[Evidence]) -> tuple[Ground, ...]:
    """The passages of these segments, in the order of the evidence."""
    named = {name for segment in segments for name in segment["evidence"]}
    numbers = [number for number, passage in enumerate(evidence, 1) if passage["id"] in named]
    return tuple(_ground(number, segments, evidence) for number in numbers)


def places(text: str, wanted: Sequence[str]) -> list[tuple[int, int]]:
    """Where sentences stand in a text, whose blanks may be others; one that is not found is passed over."""
    found: list[tuple[int, int]] = []
    for sentence in filter(str.strip, wanted):
        end = found[-1][1] if found else 0
        start = text.find(sentence, end)
        if start >= 0:
            found.append((start, start + len(sentence)))
        elif match := re.compile(r"\s+".join(map(re.escape, sentence.split()))).search(text, end):
            found.append(match.span())
    return found


def _stretches(answer: str, segments: Sequence[Segment]) -> list[tuple[str, Sequence[Segment]]]:
    """The answer cut where a segment ends; where it is not made of the segments, whole."""
    cuts, end = [0], 0
    for segment in segments:
        text = clean(segment["text"]).strip()
        start = answer.find(text, end)
        if start < 0 or answer[end:start].strip():
            return [(answer, segments)]
        end = start + len(text)
        cuts.append(end)
    if answer[end:].strip():
        return [(answer, segments)]
    return [
        (answer[start:stop], [segment])
        for segment, start, stop in zip(segments, cuts, cuts[1:], strict=False)
    ]


def _stated(
    text: str, segments: Sequence[Segment], evidence: Sequence[Evidence], *, marked: bool
) -> Iterator[Stated]:
    shared = () if marked else grounds(segments, evidence)
    text = _MARKS_BEHIND.sub(r"\2\1", text) if marked else text
    end = 0
    for start, stop in places(text, sentences(text)):
        before, sentence, end = text[end:start], text[start:stop], stop
        if marked:
            numbers = sorted(number for number in marks(sentence) if 1 <= number <= len(evidence))
            cited = tuple(_ground(number, segments, evidence) for number in numbers)
            yield Stated(before, with_marks_of(sentence, ()), cited)
        else:
            yield Stated(before, sentence, shared)


def _ground(number: int, segments: Sequence[Segment], evidence: Sequence[Evidence]) -> Ground:
    passage = evidence[number - 1]
    chosen = (one for segment in segments for one in segment["sentences"] if one["passage"] == passage["id"])
    in_order = sorted(chosen, key=lambda one: one["position"])
    return Ground(number, passage, tuple(dict.fromkeys(one["text"] for one in in_order)))
