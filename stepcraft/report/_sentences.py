"""The sentences of an RPG answer, each with what the passages that it cites have on it."""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from stepcraft.evidence import Evidence
from stepcraft.nodes.trace import TracedSentence
from stepcraft.text.citations import parts, renumbered
from stepcraft.text.clean import STOP_WORDS, clean, stems
from stepcraft.text.sentences import passage_sentences


class Quote(NamedTuple):
    """What a cited passage has on a sentence."""

    number: int
    """The number of the passage in the evidence, from 1."""
    passage: Evidence
    text: str
    """The sentence of the passage with the most words of the answer's."""


class CitedSentence(NamedTuple):
    """A sentence of an answer without its marks."""

    before: str
    """Headings and bullets that stand before its words."""
    text: str
    behind: str
    """White space and code that stand behind its words."""
    quotes: list[Quote]
    supported: bool


def cited_sentences(
    sentences: Sequence[TracedSentence], evidence: Sequence[Evidence]
) -> list[CitedSentence]:
    """Return the sentences with their quotes, in the order of the evidence."""
    numbers = {passage["id"]: number for number, passage in enumerate(evidence, 1)}

    @cache
    def words_by_sentence(number: int) -> list[tuple[str, frozenset[str]]]:
        text = evidence[number - 1]["text"]
        return [(sentence, stems(sentence)) for sentence in passage_sentences(text)]

    def quote(number: int, words: frozenset[str]) -> Quote:
        shared = [(len(words & theirs), text) for text, theirs in words_by_sentence(number)]
        best = max(shared, key=lambda pair: pair[0], default=(0, ""))
        return Quote(number, evidence[number - 1], best[1])

    cited: list[CitedSentence] = []
    for sentence in sentences:
        before, text, behind = parts(renumbered(clean(sentence["text"]), {}))
        places = sorted({numbers[id_] for id_ in sentence["evidence"] if id_ in numbers})
        quotes = [quote(number, stems(text) - STOP_WORDS) for number in places]
        cited.append(CitedSentence(before, text, behind, quotes, sentence["supported"]))
    return cited
