"""Clean external text, extract its words, and unwrap the answers of chat models."""

import re
import unicodedata
from functools import lru_cache
from itertools import groupby, islice

from stepcraft.text.markdown import fences

_CONTROLS = dict.fromkeys((*range(9), *range(11, 32), 127))
_UNSAFE = re.compile(
    "[\ud800-\udfff"  # lone surrogates, which UTF-8 cannot encode
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters except tab and newline
    "\u202a-\u202e\u2066-\u2069"  # overrides of the writing direction: text is not read as shown
    "\ufeff]"  # byte order mark
)
_COLOUR = re.compile(r"\x1b\[[\d;:]*m")
"""A sequence that sets the colours of a terminal."""
_GLUED = re.compile(r"(?<=\S)[\x0b\x0c\x1c-\x1f\x85]+(?=\S)")
"""Control characters that separate the words around them."""
_SYMBOLS = re.compile(r"[^\w\s!-~]{31,}")
"""Many characters that may be combining marks, which `re` does not count as word characters."""
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064]")

STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """a about above after again all also am an and any are as at be because been before
        being below between both but by can could did do does doing down during each few for
        from further had has have having he her here hers him his how i if in into is it its
        itself just me more most my no nor not now of off on once one only or other our ours
        out over own s same she should so some such t than that the their theirs them then
        there these they this those through to too under until up us use used uses using
        very via was we were what when where which while who whom whose why will with within
        without would you your yours""",
    )
)
"""English words that say nothing about the subject of a text."""

CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Characters of Chinese and Japanese, for a regex character class."""
SPACELESS = rf"{CJK}\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\uac00-\ud7af"
"""Characters of all scripts written without spaces between words, and of Korean, whose particles
are attached to words.
"""
CAPITALS = "".join(filter(str.isupper, map(chr, range(0x2000))))
"""The capital letters of all alphabets that have them, for a regex character class."""
MARKS = "".join(sign for sign in map(chr, range(0x2000)) if unicodedata.category(sign)[0] == "M")
"""Vowel signs and other combining marks, which `\\w` does not match, for a regex class."""
WORD_MARKS = re.sub(f"[{SPACELESS}]", "", MARKS)
"""Such marks of scripts that put spaces between words."""
STOPS = ".!?\u2026\u0589\u061f\u06d4\u0964\u0965\u1362"
"""Punctuation that ends a sentence before whitespace, in all scripts, for a regex class."""
SPACELESS_STOPS = "\u3002\uff01\uff1f"
"""Punctuation that ends a sentence in scripts without spaces, for a regex character class."""
WORD = re.compile(rf"[{CJK}]|[^\W_{CJK}]+(?:[{WORD_MARKS}]+[^\W_{CJK}]*)*+")
"""A word with its vowel signs, or a character of Chinese or Japanese."""
_ENDING = re.compile(r"(?:(?<=...)(?:ing|ed)|es|(?<!s)s|e)$")

_YES = r"(?:sure|certainly|of course|absolutely|okay|ok|great|gladly|all ?right)"
_HERE_IS = r"(?:here(?:['\u2019]s| is| are)|below (?:is|are))"
_OFFER = (
    r"(?:(?:I(?:['\u2019](?:ll|d)| can| will| would)|let me|no problem)\b[^.!:\n\d\[]{0,60}[.,!]"
    r"|(?:based on|using|after|to)\b[^.!:\n\d\[]{0,60},|so\b,?)"
)
"""Words without content between "Sure" and "here is"."""
_INTRODUCTION = re.compile(
    rf"\A\s*+(?:{_YES}(?: thing| question)?[^\w\n\[]{{1,6}}"
    rf"(?:{_OFFER}[^\w\n\[]{{1,4}})?{_HERE_IS}\b"
    rf"|{_HERE_IS} (?:the|your|my|an?) (?:[\w-]+ ){{0,2}}?(?:answer|reply|response|draft|text"
    r"|article|summary|program|code|script|list|steps|plan|quer(?:y|ies)|version|segment)\b)"
    r"(?:[^\n.!?]|[.!?](?=[\w)]|[ \t]+(?-i:[a-z(]))|(?<=\bSt)\.){0,200}:[ \t]*\n\s*+(?=\S)",
    re.IGNORECASE,
)
"""A line that ends with a colon and only announces the answer."""
_TAGGED = re.compile(
    r"<(answer|final_answer|reply|response|result|output|draft|text|steps|plan|queries|list)>"
    r"((?:(?!</?\1>).)*+)</\1>",
    re.DOTALL | re.IGNORECASE,
)
_FENCED = re.compile(
    r"(`{3,}+|~{3,}+)[ \t]*(?:(markdown|md)|(text|txt|plaintext|)|\S+)[ \t]*\n(.+)\n[ \t]*\1",
    re.DOTALL | re.IGNORECASE,
)
_CAPITAL = rf"[{CAPITALS}{CJK}\d]"
_PROSE = re.compile(
    rf"^(?:[-*>] |\*\*)?{_CAPITAL}[^\n]*(?<!\s)[{STOPS}{SPACELESS_STOPS}]"
    r"(?:\s?\[[^\]\n]{1,20}\])*+$"
    rf"|^\d{{1,3}}[.)] |\A(?![A-Z]{{3,}}\b){_CAPITAL}[^\n(){{}};=<>$]*\Z",
    re.MULTILINE,
)
"""A sentence, a numbered item, or a single line that begins with a capital letter."""
_UNCHANGED = re.compile(
    r"\W{0,6}(?:no[ -]?changes?(?:\s+(?:is |are )?(?:needed|required|necessary))?"
    r"|(?:(?:stays|remains) )?unchanged)\W*",
    re.IGNORECASE,
)
_DECLINED = re.compile(
    r"\W*(?:\d\W+)?(?:(?:unfortunately|sorry)\W+(?:but )?)?(?:i(?:['\u2019]m| am) (?:\w+ )?"
    r"(?:sorry(?! to (?:hear|learn|read|see)"
    r"(?![^.!?\n]{0,80}\bbut i (?:can(?:['\u2019]t|not)|won['\u2019]t) "
    r"(?:help|assist|provide|do)\b))"
    r"|unable|not able)"
    r"|i (?:can(?:['\u2019]t|not| not)|won['\u2019]t|will not) (?!only)(?:\w+ )?"
    r"(?:help|assist|provide|comply|do|give|create|write|answer|support|fulfil))\b",
    re.IGNORECASE,
)


def clean(text: str) -> str:
    r"""Return the text in NFC, with "\n" line breaks and without control characters.

    Lone surrogates become U+FFFD. Colours of terminals and directional overrides are dropped;
    marks needed by right-to-left scripts are kept.
    """
    text = _COLOUR.sub("", text) if "\x1b" in text else text
    text = _GLUED.sub(" ", text.replace("\r\n", "\n").replace("\r", "\n"))
    if text.isascii():
        return text.translate(_CONTROLS)
    text = _UNSAFE.sub(lambda unsafe: "\ufffd" if "\ud800" <= unsafe[0] <= "\udfff" else "", text)
    return unicodedata.normalize("NFC", _SYMBOLS.sub(_with_few_marks, text))


def _with_few_marks(symbols: re.Match[str]) -> str:
    """Drop combining marks after the thirtieth in a row, since normalisation is quadratic in them.

    No script needs so many.
    """
    groups = groupby(symbols[0], key=lambda each: unicodedata.combining(each) > 0)
    return "".join(
        "".join(islice(group, 30) if are_marks else group) for are_marks, group in groups
    )


def one_line(text: str) -> str:
    """Return the cleaned text on one line."""
    return " ".join(clean(text).split())


def normalised(text: str) -> str:
    """Return a text as used for comparison: clean, on one line, without invisible marks."""
    return " ".join(_INVISIBLE.sub("", clean(text)).split())


def terms(text: str) -> list[str]:
    """Return the words of a text in lower case without stop words; CJK text yields characters."""
    return [word for word in WORD.findall(text.lower()) if word not in STOP_WORDS]


@lru_cache(maxsize=2048)
def stems(text: str) -> frozenset[str]:
    """Return the terms of a text without the most common English endings."""
    return frozenset(_ENDING.sub("", term) if len(term) > 4 else term for term in terms(text))


def tokens(text: str) -> int:
    """Estimate the number of tokens as one per four UTF-8 bytes."""
    return len(text.encode("utf-8", "replace")) // 4


def unfenced(text: str, *, keep_code: bool = False) -> str:
    """Return a cleaned reply without an introduction ("Sure, here is …:"), tag or fence around it.

    Args:
        text: The reply.
        keep_code: Whether to keep the fence around a program, as in an answer. A Markdown fence is
            always removed, as is a fence around prose if it names no language.
    """
    text = clean(text)
    for _ in range(2):
        text = _INTRODUCTION.sub("", text)
        if tagged := _TAGGED.fullmatch(text.strip()):
            text = tagged[2].strip("\n")
        text = _without_fence(text, keep_code=keep_code)
    return text


def _without_fence(text: str, *, keep_code: bool) -> str:
    fenced = _FENCED.fullmatch(text.strip())
    if not fenced:
        return text
    mark, markdown, plain, inside = fenced.groups()
    if keep_code and not markdown and (plain is None or not _PROSE.search(inside)):
        return text
    # A fence without a language would close the first one, which then does not enclose everything.
    closing = [fence["info"].strip() for fence in fences(inside) if fence["mark"].startswith(mark)]
    if closing and not closing[0] and (not markdown or any(closing[1::2])):
        return text
    return inside


def is_declined(reply: str) -> bool:
    """Return whether a reply begins with words that decline the task."""
    return _DECLINED.match(reply) is not None


def is_unchanged(line: str) -> bool:
    """Return whether a line says only that nothing changes."""
    return _UNCHANGED.fullmatch(line) is not None
