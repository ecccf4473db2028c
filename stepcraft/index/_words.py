"""Texts and queries in the form in which the full-text index reads them."""

import itertools
import re

from stepcraft.text import STOP_WORDS, clean

MAX_TERMS = 128
"""How many different words of a query count; a longer query is cut here."""

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_CJK_CHARACTER = re.compile(f"[{_CJK}]")
_RUN = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")


def spaced(text: str) -> str:
    """The text with a space around each CJK character, so that each becomes a token of its own."""
    return text if text.isascii() else _CJK_CHARACTER.sub(r" \g<0> ", text)


def match_expression(query: str) -> str:
    """The query for FTS5: its words, quoted and joined by OR; "" if it has none.

    Stop words are left out unless there is nothing else. A run of CJK characters counts by its pairs.
    """
    words = dict.fromkeys(term for run in _RUN.findall(clean(query).lower()) for term in _terms(run))
    telling = [word for word in words if word not in STOP_WORDS] or list(words)
    return " OR ".join(f'"{word}"' for word in telling[:MAX_TERMS])


def _terms(run: str) -> list[str]:
    if not _CJK_CHARACTER.match(run) or len(run) == 1:
        return [run]
    return [f"{first} {second}" for first, second in itertools.pairwise(run)]
