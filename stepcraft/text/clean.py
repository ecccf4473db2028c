"""Pure functions on text: cleaning, sentences, words, and what models put around an answer."""

import re
import unicodedata

_CONTROLS = dict.fromkeys((*range(9), *range(11, 32), 127))
_UNSAFE = re.compile(
    "[\ud800-\udfff"  # surrogates: UTF-8 has no place for them
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, save tab and newline
    "\u202a-\u202e\u2066-\u2069"  # overrides of the writing direction: what is shown is not what is read
    "\ufeff]"  # byte order mark
)
_MARK_RUN = re.compile(r"[^\x00-\u02ff\w\s][^\x00-\u02ff\w\s]{31,}")
"""It begins with one class of characters, by which the search for it is quicker."""
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
"""English words that say nothing about what a text is about."""

CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Characters that are written without spaces between words, as a part of a regular expression."""
CAPITALS = "".join(filter(str.isupper, map(chr, range(0x2000))))
"""Capital letters of all alphabets that have them, as a part of a regular expression's class."""
_TERM = re.compile(f"[{CJK}]|[^\\W_{CJK}]+")

_STOP = re.compile(
    "[.!?\u2026\u3002\uff01\uff1f\n`]"
    "(?:(?<![.!?\u2026]{2})(?<=[.!?\u2026])[.!?\u2026]*[\"'\u201d\u2019)\\]*]{0,4}(?=\\s)"
    "|(?<=[\u3002\uff01\uff1f])[\u3002\uff01\uff1f]*[\u201d\u2019\uff09\u300d\u300f]*|(?<=\n)\n*|(?<=`))"
)
"""What may end a sentence. It begins with one class of characters, by which the search for it is many times quicker."""
_NO_STOP = re.compile(
    r"(?:\b(?:e\.?g|i\.?e|cf|vs|dr|mrs?|ms|prof|fig|figs|eq|sec|ch|vol|pp?|ca|approx|incl|resp)"
    r"|\b(?-i:St|Lt|Gen|Col|Maj|Capt|Cmdr|Sgt|Rev|Hon|Gov|Sen|Rep|Pres|Mt|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)"
    rf"|^\W{{0,3}}(?:\d{{1,3}}|(?-i:[{CAPITALS}])))\.$",
    re.IGNORECASE,
)
_MAYBE_STOP = re.compile(rf"(?:\b(?:[{CAPITALS}]|[ap]\.m|Inc|Ltd|Corp|Co|Bros|Jr|Sr|etc))\.$")
"""What ends a sentence only before a word that begins one."""
_NUMBER = re.compile(r"\b[Nn]os?\.$")
_FIRST_WORD = re.compile(r"[^\W\d_]{2,}")

_BRACKET = re.compile(r"^[ \t]*```.*?(?:^[ \t]*```|\Z)|`[^`\n]*`|\[\[[ \t]*|\[|\]", re.DOTALL | re.MULTILINE)

_FENCE = re.compile(r"(`{3,}|~{3,})[ \t]*([\w+.-]*)[ \t]*")
_OPENER = re.compile(
    r"(?:(?:sure|certainly|of course|absolutely|okay|ok|great|got it)\b[^\n]{0,200}[:!.\uff1a]"
    r"|(?:here(?:'s| is| are)|below (?:is|are))\b[^\n]{0,200}[:\uff1a]"
    r"|(?:\u597d\u7684|\u5f53\u7136|\u4ee5\u4e0b)[^\n]{0,100}[:!\uff1a\uff01])[ \t]*\n",
    re.IGNORECASE,
)
_EXCLAIMED = re.compile(r"(?:sure(?: thing)?|certainly|of course|absolutely)!\s+(?=\S)", re.IGNORECASE)
_REFUSAL = re.compile(
    r"(?:(?:(?:i(?:'m| am) (?:\w+ )?sorry|sorry|i apologi[sz]e|apologies|unfortunately|as an ai(?: \w+){0,2})[\s,.;:\u2013\u2014-]{0,4}"
    r"(?:but )?)+(?:i|we)(?:'m|'re| am| are)? (?:can't|can ?not|won't|will not|unable|not able|must decline|don't feel comfortable)"
    r"|(?:i|we)(?:'m|'re| am| are)? (?:can't|can ?not|won't|will not|unable to|not able to|must decline to) (?:\w+ )?"
    r"(?:help|assist|comply|fulfil|fulfill|provide|answer|engage|discuss|do that|create|generate|write|support|continue)\b"
    r"|(?:\u62b1\u6b49|\u5bf9\u4e0d\u8d77|\u5f88\u62b1\u6b49)[\uff0c,\u3002 ]{0,2}(?:\u6211|\u4f5c\u4e3a)[^\n]{0,20}?(?:\u4e0d\u80fd|\u65e0\u6cd5))",
    re.IGNORECASE,
)
_LISTED = re.compile(r"^[ \t]{0,8}(?:[-*\u2022]|\d{1,3}[.)\u3001])\s", re.MULTILINE)


def clean(text: str) -> str:
    """The text in NFC, with unix newlines, without control characters; lone surrogates become U+FFFD.

    Marks that right-to-left scripts need are kept; overrides of the direction are dropped.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.isascii():
        return text.translate(_CONTROLS)
    text = _MARK_RUN.sub(_thinned, _UNSAFE.sub(_made_safe, text))
    return unicodedata.normalize("NFC", text)


def _made_safe(unsafe: re.Match[str]) -> str:
    return "\ufffd" if "\ud800" <= unsafe[0] <= "\udfff" else ""


def _thinned(run: re.Match[str]) -> str:
    """At most 30 combining marks in a row: normalisation is quadratic in them, and no script needs more."""
    kept: list[str] = []
    marks = 0
    for character in run[0]:
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks <= 30:
            kept.append(character)
    return "".join(kept)


def normalised(text: str) -> str:
    """The text as it counts for identity: clean, whitespace folded, invisible marks dropped."""
    return " ".join(_INVISIBLE.sub("", clean(text)).split())


def terms(text: str) -> list[str]:
    """The words that say what a text is about, lower-case and in order; CJK texts give their characters."""
    return [word for word in _TERM.findall(text.lower()) if word not in STOP_WORDS]


def tokens(text: str) -> int:
    """About how many tokens: four bytes each, which holds for English and for Chinese."""
    return len(text.encode("utf-8", "replace")) // 4


def sentences(text: str) -> list[str]:
    """The sentences of a text; a line ends one too, unless the next goes on in lower case.

    Abbreviations, initials, list numbers and dots within code spans end none.
    """
    found: list[str] = []
    start, in_code = 0, False
    for match in _STOP.finditer(text):
        if match[0] == "`":
            in_code = not in_code
        elif match[0][0] == "\n":
            in_code = False
        if not in_code and match[0] != "`" and _ends_sentence(text, start, match):
            found.append(text[start : match.end()])
            start = match.end()
    found.append(text[start:])
    return [folded for sentence in found if (folded := " ".join(sentence.split()))]


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


def without_markers(text: str) -> str:
    """The text without `[[` and `]]` around what a writer doubts; what stands between them stays.

    Brackets of code are no such marks: those in code spans and fences, those that continue a name
    (`table[["a", "b"]]`), lists of lists, and a `]]` that closes two single brackets.
    """
    text = clean(text)
    parts, end = [], 0
    for start, stop in sorted(_marks(text)):
        parts.append(text[end:start].rstrip(" \t") if text[start] == "]" else text[end:start])
        end = stop
    return "".join([*parts, text[end:]])


def _marks(text: str) -> list[tuple[int, int]]:
    """Where the marks stand, the blanks after an opening one included."""
    marks: list[tuple[int, int]] = []
    unclosed: list[tuple[int, int] | None] = []
    done = 0
    for match in _BRACKET.finditer(text):
        start, bracket = match.start(), match[0].rstrip()
        if bracket == "[[" and _is_mark(text, *match.span()):
            unclosed.append(match.span())
        elif bracket in {"[", "[["}:
            unclosed += [None] * len(bracket)
        elif bracket == "]" and start >= done:
            if unclosed and unclosed[-1] is None:
                unclosed.pop()
            elif text.startswith("]]", start):
                done = start + 2
                marks += [(start, done), *(span for span in unclosed[-1:] if span)]
                del unclosed[-1:]
    return marks + [span for span in unclosed if span]


def _is_mark(text: str, start: int, stop: int) -> bool:
    """Whether a `[[` marks a doubt: it continues no name and begins no list of lists."""
    before = text[start - 1 : start]
    if before.isascii() and (before.isalnum() or before in {"_", ")", "]", '"', "'"}):
        return False
    leads = text[max(0, start - 2) : start].rstrip()[-1:] in {"=", "(", ",", "[", "{"}
    return not (leads and text[stop : stop + 1] in set("0123456789\"'[-{"))


def unfenced(text: str) -> str:
    """A reply without what models wrap it in: "Sure, here is …:", one code fence around all of it."""
    reply = text
    for _ in range(2):
        plain = reply.replace("\u2019", "'").lstrip()
        opener = _OPENER.match(plain) or _EXCLAIMED.match(plain)
        if opener and (rest := reply.lstrip()[opener.end() :].strip()):
            reply = rest
        reply = _without_fence(reply)
    return reply


def _without_fence(text: str) -> str:
    lines = text.strip().split("\n")
    opening = _FENCE.fullmatch(lines[0])
    if not opening or len(lines) < 3 or lines[-1].strip() != opening[1]:
        return text
    inner = [match for line in lines[1:-1] if (match := _FENCE.fullmatch(line.strip()))]
    if inner and not inner[0][2]:  # the first fence closes there, so it is not around all of the text
        return text
    return "\n".join(lines[1:-1])


def is_refusal(text: str) -> bool:
    """Whether a model declines to do what it was asked. Only short replies that begin so count."""
    reply = text.strip()
    if len(reply) >= 400 or _LISTED.search(reply):
        return False
    return _REFUSAL.match(reply.replace("\u2019", "'")) is not None
