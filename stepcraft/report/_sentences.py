"""The sentences of an RPG answer, with the related text in the passages that they cite."""

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from stepcraft.evidence import Evidence
from stepcraft.nodes.trace import TracedSentence
from stepcraft.text.citations import HEADING, labels, marks, without_marks
from stepcraft.text.clean import STOP_WORDS, clean, stems
from stepcraft.text.markdown import code_blocks
from stepcraft.text.sentences import passage_sentences

_OPENING = re.compile(
    rf"\s*+(?:(?:{HEADING.pattern})[ \t]*+\n\s*+)*+(?:(?:[-*+>\u2022]|\d{{1,3}}[.)])[ \t]++)*+"
)
"""Any headings, and the bullet or number of a list item."""


class Quote(NamedTuple):
    """The part of a cited passage that relates to a sentence."""

    number: int
    """The number of the passage in the evidence, starting at 1."""
    passage: Evidence
    text: str
    """The sentence in the passage that shares the most words with the sentence in the answer, or ""
    if none shares any.
    """


class CitedSentence(NamedTuple):
    """A sentence from an answer, without its citation marks."""

    before: str
    """The headings and bullets before the prose."""
    text: str
    behind: str
    """The whitespace and code after the prose."""
    quotes: list[Quote]
    supported: bool
    objection: str
    """Why it is not supported although it cites passages."""


def cited_sentences(
    sentences: Sequence[TracedSentence], evidence: Sequence[Evidence]
) -> list[CitedSentence]:
    """Return the sentences, each with its quotes in the order of the evidence."""
    numbers = {passage["id"]: number for number, passage in enumerate(evidence, 1)}

    @cache
    def words_by_sentence(number: int) -> list[tuple[str, frozenset[str]]]:
        text = evidence[number - 1]["text"]
        return [(sentence, stems(sentence)) for sentence in passage_sentences(text)]

    def quote(number: int, words: frozenset[str]) -> Quote:
        shared = [(len(words & theirs), text) for text, theirs in words_by_sentence(number)]
        most, best = max(shared, key=lambda pair: pair[0], default=(0, ""))
        return Quote(number, evidence[number - 1], best if most else "")

    cited: list[CitedSentence] = []
    for sentence in sentences:
        places = sorted({numbers[id_] for id_ in sentence["evidence"] if id_ in numbers})
        before, text, behind = _parts(_without_marks(clean(sentence["text"]), places))
        quotes = [quote(number, stems(text) - STOP_WORDS) for number in places]
        objection = _objection(sentence)
        cited.append(CitedSentence(before, text, behind, quotes, sentence["supported"], objection))
    return cited


def _without_marks(text: str, places: Sequence[int]) -> str:
    """Return a sentence without the marks of its passages; other numbers in brackets are words."""
    known = labels(text)
    others = [f"[{number}]" for number in marks(text, unless_in=known) if number not in places]
    return without_marks(text, unless_in="\n".join([known, *others]))


def _objection(sentence: TracedSentence) -> str:
    if words := sentence["unconfirmed"]:
        return f"The check did not confirm: {clean('; '.join(words))}"
    return "The sentence names in code what this evidence does not have."


def _parts(sentence: str) -> tuple[str, str, str]:
    """Split a sentence into headings and bullet, prose, and trailing whitespace and code."""
    stop = next((block.start for block in code_blocks(sentence)), len(sentence))
    opening = _OPENING.match(sentence, 0, stop)
    start = opening.end() if opening else 0
    words = sentence[start:stop].rstrip()
    return sentence[:start], words, sentence[start + len(words) :]
