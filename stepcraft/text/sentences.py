"""The sentences of a retrieved passage: pieces that say something on their own, none too long to be scored."""

import re
from collections.abc import Iterable, Iterator

from stepcraft.text.clean import CJK, clean, sentences

LONGEST = 1000
"""A longer sentence is split between words: a table, a minified page, a text without stops."""

_FENCED = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n]*\n.*?(?:^[ \t]*\1[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_WORD = re.compile(f"[{CJK}]|[^\\W_{CJK}]+")
_ENDED = re.compile("[.!?\u2026:;\u3002\uff01\uff1f]\\W{0,4}$")
_SPACELESS = re.compile(f"[{CJK}\u3000-\u303f\uff00-\uffef\u2018-\u201d]")
_PIECE = re.compile(rf"\S.{{0,{LONGEST - 2}}}(?=\s|$)|\S.{{0,{LONGEST - 1}}}", re.DOTALL)
_FENCES = ("```", "~~~")
_FEW_WORDS = 3
_QUOTED = 4
"""So many sentences may one quotation have; an opening mark without a closing one ends nothing."""


def passage_sentences(text: str) -> list[str]:
    """The sentences in order, blanks folded; fenced code stays whole, a piece of fewer than three words joins another."""
    found = [sentence for block in _blocks(clean(text)) for sentence in block]
    return [piece for sentence in _joined(found) for piece in _pieces(sentence)]


def _pieces(sentence: str) -> list[str]:
    return [sentence] if len(sentence) <= LONGEST else _PIECE.findall(sentence)


def _blocks(text: str) -> Iterator[list[str]]:
    end = 0
    for code in _FENCED.finditer(text):
        yield list(_quoted(sentences(text[end : code.start()])))
        yield [code[0].strip()]
        end = code.end()
    yield list(_quoted(sentences(text[end:])))


def _quoted(found: list[str]) -> Iterator[str]:
    """A quotation of several sentences is one."""
    place = 0
    while place < len(found):
        stop = place + 1
        if _opens(found[place]):
            ends = range(stop + 1, min(place + _QUOTED, len(found)) + 1)
            stop = next((end for end in ends if not _opens("".join(found[place:end]))), stop)
        yield _as_one(found[place:stop])
        place = stop


def _opens(text: str) -> bool:
    return text.count("\u201c") > text.count("\u201d") or text.count('"') % 2 == 1


def _joined(found: Iterable[str]) -> list[str]:
    """A fragment belongs to what it ends, and a heading to what it is above."""
    joined: list[str] = []
    for sentence in found:
        if joined and (_is_short(joined[-1]) or (_is_short(sentence) and _ENDED.search(sentence))):
            joined[-1] = _as_one([joined[-1], sentence])
        else:
            joined.append(sentence)
    if len(joined) > 1 and _is_short(joined[-1]):
        joined[-2:] = [_as_one(joined[-2:])]
    return joined


def _is_short(sentence: str) -> bool:
    if len(sentence) > 30:
        return False
    return len(_WORD.findall(sentence)) < _FEW_WORDS


def _as_one(parts: Iterable[str]) -> str:
    one = ""
    for part in parts:
        if one.startswith(_FENCES) or part.startswith(_FENCES):
            one += "\n" * bool(one) + part
        else:
            spaceless = _SPACELESS.match(one[-1:]) and _SPACELESS.match(part)
            one += ("" if spaceless or not one else " ") + part
    return one
