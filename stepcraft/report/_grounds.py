"""Which passages each sentence of an RPG answer rests on."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from stepcraft.evidence import Evidence
from stepcraft.segments import Segment, TracedSentence
from stepcraft.text.citations import marks, with_marks_of
from stepcraft.text.clean import SPACELESS_STOPS, STOPS, clean
from stepcraft.text.diff import Piece, shortened
from stepcraft.text.sentences import sentences

_MARKS_AFTER_STOP = re.compile(
    rf"(?<![{STOPS}{SPACELESS_STOPS}])([{STOPS}{SPACELESS_STOPS}]+[\"'\u201d\u2019)]*)([ \t]*(?:\[\d+\])+)"
)
"""Citation marks that follow the stop of their sentence: "It fell. [2]"."""
_WORD = re.compile(r"\S+")
_BLANK_LINES = re.compile(r"\n(?:[ \t]*+\n){2,}")


@dataclass(frozen=True)
class Ground:
    """A passage that a text rests on, and the sentences that were selected from it."""

    number: int
    """Its place in the evidence, from 1."""
    passage: Evidence
    selected: tuple[tuple[int, str], ...]
    """The place of each selected sentence in the passage, and its text; in order."""

    @property
    def sentences(self) -> list[str]:
        """The selected sentences, each once."""
        return list(dict.fromkeys(text for _, text in self.selected))

    @property
    def quotes(self) -> list[list[str]]:
        """The selected sentences; those that follow one another in the passage are in one list."""
        found: list[list[str]] = []
        for (before, _), (place, text) in pairwise([(-2, ""), *self.selected]):
            if place == before + 1:
                found[-1].append(text)
            else:
                found.append([text])
        return found


@dataclass(frozen=True)
class CitedSentence:
    """A sentence of the answer, the white space before it, and the passages that it cites."""

    before: str
    text: str
    grounds: tuple[Ground, ...]
    supported: bool
    """Whether it cites evidence, and no check found that this does not bear it out."""


def cited_sentences(result: Mapping[str, Any], *, inline: bool) -> list[CitedSentence]:
    """Split the answer into sentences and attribute evidence to each.

    The result of an earlier version does not say what its sentences rest on: there a sentence rests on all evidence of
    its segment; where the answer was combined from several segments, on that of all of them. With `inline`, if the
    answer cites passages like [1], a sentence rests on those it cites.
    """
    if "sentences" in result:
        return _traced(result["sentences"], result, inline=inline)
    answer, evidence = clean(result["answer"]).strip(), result["evidence"]
    marked = inline and bool(marks(answer))
    found: list[CitedSentence] = []
    for text, segments in _stretches(answer, result["segments"]):
        shared = () if marked else grounds_of(segments, evidence)
        stretch = _MARKS_AFTER_STOP.sub(r"\2\1", text) if marked else text
        end = 0
        for start, stop in _places(stretch, sentences(stretch)):
            before, sentence, end = stretch[end:start], stretch[start:stop], stop
            if marked:
                cited = sorted(number for number in marks(sentence) if 1 <= number <= len(evidence))
                own = tuple(_ground(number, segments, evidence) for number in cited)
                found.append(CitedSentence(before, with_marks_of(sentence, ()), own, supported=bool(own)))
            else:
                found.append(CitedSentence(before, sentence, shared, supported=bool(shared)))
    return found


def _traced(
    sentences: Sequence[TracedSentence], result: Mapping[str, Any], *, inline: bool
) -> list[CitedSentence]:
    numbers = {passage["id"]: number for number, passage in enumerate(result["evidence"], 1)}
    found: list[CitedSentence] = []
    blanks = ""
    for one in sentences:
        text = clean(one["text"])
        said = text.strip()
        before = blanks + text[: len(text) - len(text.lstrip())]
        blanks = text[len(text.rstrip()) :]
        cited = sorted({numbers[name] for name in one["evidence"] if name in numbers})
        grounds = tuple(_ground(number, result["segments"], result["evidence"]) for number in cited)
        shown = with_marks_of(said, ()) if inline else said
        found.append(CitedSentence(before, shown, grounds, one["supported"] and bool(grounds)))
    return found


def grounds_of(segments: Sequence[Segment], evidence: Sequence[Evidence]) -> tuple[Ground, ...]:
    """Return the passages that these segments were written from, in the order of the evidence."""
    named = {name for segment in segments for name in segment["evidence"]}
    numbers = [number for number, passage in enumerate(evidence, 1) if passage["id"] in named]
    return tuple(_ground(number, segments, evidence) for number in numbers)


def merged(cited: Sequence[CitedSentence]) -> list[Ground]:
    """Return each passage that the sentences rest on once, with all that was selected from it."""
    found: dict[int, Ground] = {}
    for ground in (ground for sentence in cited for ground in sentence.grounds):
        known = found.get(ground.number, ground).selected
        selected = tuple(sorted({*known, *ground.selected}))
        found[ground.number] = Ground(ground.number, ground.passage, selected)
    return [found[number] for number in sorted(found)]


def marked_passage(ground: Ground) -> list[Piece]:
    """Return the passage around its selected sentences, which are the pieces of kind "added".

    The list is empty if a sentence does not occur in the passage as it was selected.
    """
    text = _BLANK_LINES.sub("\n\n", clean(ground.passage["text"]).strip())
    found = _places(text, [clean(sentence) for sentence in ground.sentences])
    if len(found) < len(ground.sentences):
        return []
    pieces: list[Piece] = []
    end = 0
    for start, stop in found:
        pieces += [Piece("same", text[end:start]), Piece("added", text[start:stop])]
        end = stop
    pieces.append(Piece("same", text[end:]))
    return shortened([piece for piece in pieces if piece.text], 160)


def ranges(numbers: Sequence[int]) -> str:
    """Return ascending numbers as "1, 2"; three or more in a row become a range."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


def _stretches(answer: str, segments: Sequence[Segment]) -> Iterator[tuple[str, Sequence[Segment]]]:
    """Split the answer after each segment; an answer that does not consist of its segments stays whole."""
    cuts = [0]
    for segment in segments:
        text = clean(segment["text"]).strip()
        start = answer.find(text, cuts[-1])
        if start < 0 or answer[cuts[-1] : start].strip():
            break
        cuts.append(start + len(text))
    if len(cuts) <= len(segments) or answer[cuts[-1] :].strip():
        yield answer, segments
        return
    for segment, start, stop in zip(segments, cuts[:-1], cuts[1:], strict=True):
        yield answer[start:stop], [segment]


def _ground(number: int, segments: Sequence[Segment], evidence: Sequence[Evidence]) -> Ground:
    passage = evidence[number - 1]
    chosen = {
        (one["position"], one["text"])
        for segment in segments
        for one in segment["sentences"]
        if one["passage"] == passage["id"]
    }
    return Ground(number, passage, tuple(sorted(chosen)))


def _places(text: str, wanted: Sequence[str]) -> list[tuple[int, int]]:
    """Locate sentences in a text, in order; white space may differ, and a sentence that is missing is left out."""
    words = [match.span() for match in _WORD.finditer(text)]
    folded = " ".join(text[start:stop] for start, stop in words)
    offsets = [offset for start, stop in words for offset in range(start, stop + 1)]
    found: list[tuple[int, int]] = []
    end = 0
    for sentence in filter(None, (" ".join(one.split()) for one in wanted)):
        start = folded.find(sentence, end)
        if start >= 0:
            end = start + len(sentence)
            found.append((offsets[start], offsets[end - 1] + 1))
    return found
