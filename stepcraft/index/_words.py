"""Texts and queries in the form in which the full-text index reads them."""

import itertools
import re

from stepcraft.text.clean import STOP_WORDS, clean

MAX_TERMS = 128
"""How many different words of a query count; a longer query is cut here."""

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_CJK_CHARACTER = re.compile(f"[{_CJK}]")
_CJK_RUN = re.compile(f"[{_CJK}]+")
_RUN = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")


def spaced(text: str) -> str:
    """The text with a space around each CJK character, so that each becomes a token of its own."""
    return text if text.isascii() else _CJK_CHARACTER.sub(r" \g<0> ", text)


def cjk_words(text: str) -> str:
    """The CJK characters of a text and its pairs of neighbours, for an index that takes a whole run for a word."""
    runs: list[str] = [] if text.isascii() else _CJK_RUN.findall(text)
    return " ".join(word for run in runs for word in (*run, *_pairs(run)))


def query_words(query: str) -> list[str]:
    """The words of a query, each once, in lower case; a run of CJK characters counts by its pairs.

    Stop words are left out unless there is nothing else.
    """
    runs: list[str] = _RUN.findall(clean(query).lower())
    words = dict.fromkeys(word for run in runs for word in _words(run))
    telling = [word for word in words if word not in STOP_WORDS] or list(words)
    return telling[:MAX_TERMS]


def match_expression(query: str) -> str:
    """The query for FTS5: its words, quoted and joined by OR; "" if it has none."""
    return " OR ".join(f'"{spaced(word)}"' for word in query_words(query))


def _words(run: str) -> list[str]:
    return _pairs(run) if _CJK_CHARACTER.match(run) and len(run) > 1 else [run]


def _pairs(run: str) -> list[str]:
    return [first + second for first, second in itertools.pairwise(run)]
