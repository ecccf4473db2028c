"""Cleaning of text from outside, the words of a text, and what chat models put around an answer."""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from stepcraft.text.markdown import fences, outside_code

_CONTROLS = dict.fromkeys((*range(9), *range(11, 32), 127))
_UNSAFE = re.compile(
    "[\ud800-\udfff"  # lone surrogates, which UTF-8 cannot encode
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters except tab and newline
    "\u202a-\u202e\u2066-\u2069"  # overrides of the writing direction: the text shown is not the text read
    "\ufeff]"  # byte order mark
)
_MARK_RUN = re.compile(
    r"[^\x00-\u02ff\w\s][^\x00-\u02ff\w\s]{31,}+"
)  # the first class is for speed alone
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064]")

STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """a about above after again all also am an and any are as at be because been before being below between both
    but by can could did do does doing down during each few for from further had has have having he her here hers
    him his how i if in into is it its itself just me more most my no nor not now of off on once one only or other
    our ours out over own s same she should so some such t than that the their theirs them then there these they
    this those through to too under until up us use used uses using very via was we were what when where which
    while who whom whose why will with within without would you your yours""",
    )
)
"""English words that do not tell what a text is about."""

CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Characters written without spaces between words, for use in a regular expression's class."""
CAPITALS = "".join(filter(str.isupper, map(chr, range(0x2000))))
"""The capital letters of all alphabets that have them, for use in a regular expression's class."""
STOPS = ".!?\u2026\u0589\u061f\u06d4\u0964\u0965\u1362"
"""What ends a sentence before a blank, in all scripts, for use in a regular expression's class."""
SPACELESS_STOPS = "\u3002\uff01\uff1f"
"""What ends a sentence in scripts without blanks, for use in a regular expression's class."""
_TERM = re.compile(f"[{CJK}]|[^\\W_{CJK}]+")
_ENDING = re.compile(r"(?:(?<=...)(?:ing|ed)|es|(?<!s)s|e)$")

_MARKED_WORDS = re.compile(r"\[\[[^\W\d_][\w'\u2019/-]*(?: [\w'\u2019/-]+)+\]\]")
"""Several words between `[[` and `]]`, which no language has."""
_BRACKET = re.compile(r"\[\[[ \t]*|\[|\]")

_OPENER = re.compile(
    r"(?:(?:sure|certainly|of course|absolutely|okay|ok|great|got it)\b[^\n]{0,200}[:!.\uff1a]"
    r"|(?:here(?:'s| is| are)|below (?:is|are))\b[^\n]{0,200}[:\uff1a]"
    r"|(?:\u597d\u7684|\u5f53\u7136|\u4ee5\u4e0b)[^\n]{0,100}[:!\uff1a\uff01])[ \t]*\n",
    re.IGNORECASE,
)
_EXCLAIMED = re.compile(
    r"(?:sure(?: thing)?|certainly|of course|absolutely)!\s+(?=\S)", re.IGNORECASE
)

_MAX_REFUSAL = 400
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f])\s*|\n+")
_APOLOGY = re.compile(
    r"(?:(?:i(?:'m| am) (?:\w+ )?sorry|sorry|i apologi[sz]e|(?:my )?apologies|unfortunately|as an ai(?: \w+){0,2})"
    r"[\s,.;:!\u2013\u2014-]{0,4}(?:but )?)+"
    r"|(?:\u5f88?\u62b1\u6b49|\u5bf9\u4e0d\u8d77)[\uff0c,\u3002 ]{0,2}",
    re.IGNORECASE,
)
_CANNOT = (
    r"(?:i(?:'m| am)?|we(?:'re| are)?) (?:(?:can't|can ?not|won't|will not|unable to|not able to|must decline to)"
    r" (?:\w+ly )?|not (?:allowed|permitted) to )"
)
_REQUEST = (
    r"(?:(?:this|that|it|these|those|such|your|the)\b(?: (?:kind|type|sort) of)?"
    r"(?: (?:request|question|conversation|topic|task|content|information|\w+ request))?(?=\W*$| (?:for|with|because|as)\b)"
    r"|any(?:thing)?\b|content\b|material\b|instructions?\b|information\b|guidance\b|advice\b|details\b|steps\b"
    r"|procedures?\b|code\b|(?:a|an) (?:response|reply|answer)\b)"
)
_REFUSAL = re.compile(
    rf"{_CANNOT}(?:(?:help|assist|comply|fulfil|fulfill|accommodate|participate)\b|do (?:that|this|so)(?=\W*$| for you))"
    rf"|{_CANNOT}(?:provide|answer|engage in|discuss|create|generate|write|support|continue)(?: (?:with )?{_REQUEST}|\W*$)"
    r"|i(?:'m| am) not comfortable\b|i don't feel comfortable\b|i must decline\b"
    r"|\u6211(?!\u4eec)[^\n]{0,20}?(?:\u4e0d\u80fd|\u65e0\u6cd5)[^\n]{0,8}"
    r"(?:\u5e2e|\u534f|\u7b54|\u63d0\u4f9b|\u6ee1\u8db3|\u5b8c\u6210|\u7ee7\u7eed|\u8ba8\u8bba|\u751f\u6210|\u5904\u7406)",
    re.IGNORECASE,
)
"""What a sentence begins with that declines the request, rather than says what cannot be done with its subject."""
_APOLOGETIC_REFUSAL = re.compile(
    rf"{_CANNOT}(?:provide|answer|engage|discuss|create|generate|write|support|continue)\b(?! (?:to|from|into)\b)"
    r"|i (?:can't|can ?not|won't|will not|am unable|must decline)\W*$",
    re.IGNORECASE,
)
_COURTESY = re.compile(
    r"(?:please\b|let me know|is there|feel free|what else|how else|can i|may i|thank|perhaps|try (?:asking|rephrasing)"
    r"|i(?:'m| am|'d| would| can| could| will)(?: be| only| instead| gladly)? (?:happy|glad|here|suggest|recommend|help|assist|offer)"
    r"|if you\b.{0,80}\b(?:me|questions?|help|else|support)\b"
    r"|(?:it|this|that|doing so|the request|your request) (?:goes|violates|conflicts|involves|is|would|could|may|might)\b"
    r"|i (?:must|need to|have to) (?:decline|refuse|follow)"
    r"|\u8bf7|\u5982\u679c|\u5982\u6709|\u8fd9)",
    re.IGNORECASE,
)
_TURNS = re.compile(r"\b(?:but|however|instead|so|therefore)\b|[;:\uff1b\uff1a]", re.IGNORECASE)
_UNCHANGED = re.compile(
    r"\W{0,6}(?:no[ -]?changes?(?:\s+(?:is |are )?(?:needed|required|necessary))?|(?:(?:stays|remains) )?unchanged)\W*",
    re.IGNORECASE,
)
_LISTED = re.compile(r"^[ \t]{0,8}(?:[-*\u2022]|\d{1,3}[.)\u3001])\s", re.MULTILINE)


def clean(text: str) -> str:
    r"""Return the text in NFC, with "\n" for newlines and without control characters.

    Lone surrogates become U+FFFD. Marks that right-to-left scripts need are kept; overrides of the writing direction
    are dropped.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.isascii():
        return text.translate(_CONTROLS)
    text = _UNSAFE.sub(lambda unsafe: "\ufffd" if "\ud800" <= unsafe[0] <= "\udfff" else "", text)
    return unicodedata.normalize("NFC", _MARK_RUN.sub(_thinned, text))


def _thinned(run: re.Match[str]) -> str:
    """Keep 30 combining marks in a row: normalisation is quadratic in them, and no script needs more."""
    kept: list[str] = []
    marks = 0
    for character in run[0]:
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks <= 30:
            kept.append(character)
    return "".join(kept)


def normalised(text: str) -> str:
    """Return the form by which two texts are compared: clean, blanks folded, invisible marks dropped."""
    return " ".join(_INVISIBLE.sub("", clean(text)).split())


def terms(text: str) -> list[str]:
    """Return the words of a text in lower case and in order, without stop words; CJK text gives its characters."""
    return [word for word in _TERM.findall(text.lower()) if word not in STOP_WORDS]


@lru_cache(maxsize=2048)
def stems(text: str) -> frozenset[str]:
    """Return the terms of a text without their commonest English endings."""
    return frozenset(_ENDING.sub("", term) if len(term) > 4 else term for term in terms(text))


def tokens(text: str) -> int:
    """Estimate the number of tokens: one for four bytes of UTF-8, which holds for English and for Chinese."""
    return len(text.encode("utf-8", "replace")) // 4


def without_markers(text: str) -> str:
    """Return the text, cleaned, without the `[[` and `]]` around what its writer doubts.

    Words in code that are marked become a placeholder: `<name of the table>`. Other brackets of code stay: those in code
    spans and blocks, those that continue a name (`table[["a", "b"]]`), lists of lists, and a `]]` that closes two single
    brackets.
    """
    text = clean(text)
    if "[[" not in text and "]]" not in text:
        return text
    parts, end = [], 0
    for start, stop, instead in sorted(_markers(text)):
        parts.append(text[end:start].rstrip(" \t") if text[start] == "]" else text[end:start])
        parts.append(instead)
        end = stop
    return "".join([*parts, text[end:]])


def marked(text: str) -> list[str]:
    """Return what stands between `[[` and `]]` in a text: what its writer doubts."""
    text = clean(text)
    found: list[str] = []
    opened: int | None = None
    for start, stop, _ in sorted(_markers(text)):
        if text[start] == "[":
            opened = stop if opened is None else opened
        elif opened is not None:
            found.append(text[opened:start])
            opened = None
    if opened is not None:
        found.append(text[opened:])
    return [doubt for part in found if (doubt := " ".join(part.split()))]


def _markers(text: str) -> list[tuple[int, int, str]]:
    """Return the offsets of all markers, each opening one with the blanks that follow it, and what stands instead."""
    prose = list(outside_code(text))
    placeholders = (
        found.span()
        for found in _MARKED_WORDS.finditer(text)
        if not any(start <= found.start() < stop for start, stop in prose)
    )
    in_code = [
        edge
        for start, stop in placeholders
        for edge in ((start, start + 2, "<"), (stop - 2, stop, ">"))
    ]
    return [*in_code, *((start, stop, "") for start, stop in _markers_in(text, prose))]


def _markers_in(text: str, prose: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the offsets of the markers outside code."""
    markers: list[tuple[int, int]] = []
    unclosed: list[tuple[int, int] | None] = []
    done = 0
    for match in (found for span in prose for found in _BRACKET.finditer(text, *span)):
        start, bracket = match.start(), match[0].rstrip()
        if bracket == "[[" and _is_marker(text, *match.span()):
            unclosed.append(match.span())
        elif bracket in {"[", "[["}:
            unclosed += [None] * len(bracket)
        elif start >= done:
            if unclosed and unclosed[-1] is None:
                unclosed.pop()
            elif text.startswith("]]", start):
                done = start + 2
                markers += [(start, done), *(span for span in unclosed[-1:] if span)]
                del unclosed[-1:]
    return markers + [span for span in unclosed if span]


def _is_marker(text: str, start: int, stop: int) -> bool:
    """Tell whether a `[[` marks a doubt: it neither continues a name nor begins a list of lists."""
    before = text[start - 1 : start]
    if before.isascii() and (before.isalnum() or before in {"_", ")", "]", '"', "'"}):
        return False
    leads = text[max(0, start - 2) : start].rstrip()[-1:] in {"=", "(", ",", "[", "{"}
    return not (leads and text[stop : stop + 1] in set("0123456789\"'[-{"))


def unfenced(text: str) -> str:
    """Return a reply without an announcement ("Sure, here is …:") before it or a code fence around all of it."""
    reply = text
    for _ in range(2):
        plain = reply.replace("\u2019", "'").lstrip()
        opener = _OPENER.match(plain) or _EXCLAIMED.match(plain)
        if opener and (rest := reply.lstrip()[opener.end() :].strip()):
            reply = rest
        reply = _without_fence(reply)
    return reply


def _without_fence(text: str) -> str:
    body = text.strip()
    found = list(fences(body))
    if len(found) < 2:
        return text
    first, *inner, last = found
    inside = body[first.stop : last.start].partition("\n")[2]
    around_all = first.start == 0 and last.stop == len(body) and last.mark == first.mark
    if not around_all or not inside or len(first.info.split()) > 1:
        return text
    if (
        inner and not inner[0].info
    ):  # it closes the first fence, which then is not around all of the text
        return text
    return inside.removesuffix("\n")


def is_unchanged(line: str) -> bool:
    """Tell whether a line says no more than that nothing changes."""
    return _UNCHANGED.fullmatch(line) is not None


def is_refusal(text: str) -> bool:
    """Tell whether a reply does nothing but decline the request.

    It is short, is no list, and each of its sentences declines, apologises or offers other help. A sentence about
    what cannot be done ("We cannot write to a memory that is read-only") is no refusal.
    """
    reply = text.strip().replace("\u2019", "'")
    if len(reply) >= _MAX_REFUSAL or _LISTED.search(reply):
        return False
    apology = _APOLOGY.match(reply)
    declines = False
    for sentence in _SENTENCE_END.split(reply[apology.end() :] if apology else reply):
        if _declines(sentence, apologetic=apology is not None):
            declines = True
        elif sentence and not _COURTESY.match(sentence) and not _APOLOGY.fullmatch(sentence):
            return False
    return declines


def _declines(sentence: str, *, apologetic: bool) -> bool:
    refusal = _REFUSAL.match(sentence) or (
        _APOLOGETIC_REFUSAL.match(sentence) if apologetic else None
    )
    if not refusal:
        return False
    turn = _TURNS.search(sentence, refusal.end())
    return turn is None or _COURTESY.match(sentence[turn.end() :].lstrip(" ,")) is not None
