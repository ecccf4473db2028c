"""Split whole texts, and passages scored by a reranker, into sentences.

This is our own code because the maintained libraries either need a model to be downloaded (NLTK,
spaCy) or break code and Chinese text apart.
"""

import re

from stepcraft.text.clean import CAPITALS, CJK, SPACELESS_STOPS, STOP_WORDS, STOPS, clean
from stepcraft.text.markdown import code_blocks

LONGEST = 1000
"""The length above which a sentence is split between words, as in a table or a minified page."""

_STOP = re.compile(
    f"[{STOPS}{SPACELESS_STOPS}\n`]"
    f"(?:(?<![{STOPS}]{{2}})(?<=[{STOPS}])[{STOPS}]*[\"'\u201d\u2019)\\]*]{{0,4}}(?=\\s)"
    f"|(?<=[{SPACELESS_STOPS}])[{SPACELESS_STOPS}]*[\u201d\u2019\uff09\u300d\u300f]*"
    "|(?<=\n)\n*|(?<=`))"
)
"""A possible sentence end. It begins with a single character class, which makes it much faster."""
_NO_STOP = re.compile(
    r"(?:\b(?:e\.?g|i\.?e|cf|vs|dr|mrs?|ms|prof|fig|figs|eq|sec|ch|vol|pp?|ca|approx|incl|resp)"
    r"|\b(?-i:v|St|Lt|Gen|Col|Maj|Capt|Cmdr|Sgt|Rev|Hon|Gov|Sen|Rep|Pres|Mt|Jan|Feb|Mar|Apr|Jun"
    r"|Jul|Aug|Sept?|Oct|Nov|Dec)"
    rf"|^\W{{0,3}}(?:\d{{1,3}}|(?-i:[{CAPITALS}])))\.$",
    re.IGNORECASE,
)
_MAYBE_STOP = re.compile(rf"(?:\b(?:[{CAPITALS}]|[ap]\.m|Inc|Ltd|Corp|Co|Bros|Jr|Sr|etc))\.$")
"""Abbreviations that end a sentence only before a word that begins a new one."""
_NUMBER = re.compile(r"\b[Nn]os?\.$")
_FIRST_WORD = re.compile(r"[^\W\d_]{2,}")

_WORD = re.compile(f"[{CJK}]|[^\\W_{CJK}]+")
_ENDED = re.compile(f"[{STOPS}{SPACELESS_STOPS}:;]\\W{{0,4}}$")
_SPACELESS = re.compile(f"[{CJK}\u3000-\u303f\uff00-\uffef\u2018-\u201d]")
_PIECE = re.compile(rf"\S.{{0,{LONGEST - 1}}}(?=\s|$)|\S.{{0,{LONGEST - 1}}}", re.DOTALL)
_FENCES = ("```", "~~~")


def sentences(text: str) -> list[str]:
    """Split a text into sentences, each with its whitespace folded.

    A line break ends a sentence too, unless the next line continues in lower case. Abbreviations,
    initials, list numbers and dots in code spans do not end a sentence.
    """
    return [folded for sentence in pieces(text) if (folded := " ".join(sentence.split()))]


def pieces(text: str) -> list[str]:
    """Split a text into sentences verbatim; joined, they are the text."""
    split: list[str] = []
    start, in_code = 0, False
    for match in _STOP.finditer(text):
        if match[0] == "`":
            in_code = not in_code
        elif match[0][0] == "\n":
            in_code = False
        if not in_code and match[0] != "`" and _ends_sentence(text, start, match):
            split.append(text[start : match.end()])
            start = match.end()
    return [*split, text[start:]]


def _ends_sentence(text: str, start: int, match: re.Match[str]) -> bool:
    follows = text[match.end() : match.end() + 40].lstrip()
    if match[0] == ".":
        before = text[max(start, match.end() - 12) : match.end()].lstrip()
        if _NO_STOP.search(before) or (_NUMBER.search(before) and follows[:1].isdigit()):
            return False
        if _MAYBE_STOP.search(before) and follows:
            word = _FIRST_WORD.match(follows)
            return word is not None and word[0].istitle() and word[0].lower() in STOP_WORDS
    return not follows[:1].islower()


def passage_sentences(text: str) -> list[str]:
    """Split a passage into pieces to score, none longer than `LONGEST` (RPG §3.2).

    A fenced code block is not split into sentences, and a piece of fewer than three words is joined
    to its neighbour.
    """
    text = clean(text)
    parts: list[str] = []
    end = 0
    for block in code_blocks(text):
        parts += sentences(text[end : block.start])
        parts.append(text[block.start : block.stop].strip())
        end = block.stop
    parts += sentences(text[end:])
    joined: list[str] = []
    for part in parts:
        # A fragment belongs to the sentence that it ends, and a heading to the sentence below it.
        ends = _is_short(part) and _ENDED.search(part) and joined and len(joined[-1]) < LONGEST
        if ends or (joined and _is_short(joined[-1])):
            joined[-1] = _joined(joined[-1], part)
        else:
            joined.append(part)
    if len(joined) > 1 and _is_short(joined[-1]):
        joined[-2:] = [_joined(*joined[-2:])]
    return [piece for sentence in joined for piece in _PIECE.findall(sentence)]


def _is_short(sentence: str) -> bool:
    return len(sentence) <= 30 and len(_WORD.findall(sentence)) < 3


def _joined(text: str, part: str) -> str:
    if text.startswith(_FENCES) or part.startswith(_FENCES):
        return f"{text}\n{part}"
    is_spaceless = _SPACELESS.match(text[-1:]) and _SPACELESS.match(part)
    return f"{text}{part}" if is_spaceless else f"{text} {part}"
