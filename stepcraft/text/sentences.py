"""Split whole texts, and passages scored by a reranker, into sentences.

This is our own code because the maintained libraries either have to download a model (NLTK, spaCy)
or break up code and Chinese text.
"""

import re

from stepcraft.text.clean import CAPITALS, CJK, SPACELESS_STOPS, STOP_WORDS, STOPS, WORD, clean
from stepcraft.text.markdown import code_blocks

LONGEST = 1000
"""The length above which a sentence is split between words, as in a table or a minified page."""

_MARK = (
    r"(?:\[(?:\^|[ \t]?(?:passages?|sources?|refs?|docs?)[ \t:#]{0,3})?"
    r"[ \t]?(?:p[ \t]?)?\d[^\[\]\n]{0,20}\]"
    r"(?:\([^()\s]{0,200}\))?|\u3010[ \t]?p?\d[^\u3011\n]{0,20}\u3011)"
)
_MARKS = (
    rf"(?:[(*_\[]{{1,3}}|<sup>)?(?:(?:see|sources?|refs?|cf)[.:]?)?[ \t]{{0,2}}{_MARK}"
    rf"(?:[ \t,;]{{0,3}}{_MARK}){{0,9}}(?:[)*_\]]{{1,3}}|</sup>)?"
)
"""Citation marks, including those in parentheses, in emphasis, or after a word such as "see"."""
_CLOSER = (
    r"(?:[\"'\u2018\u2019\u201c\u201d\u2039\u203a\u00ab\u00bb)\]*_~$\\\u2020\u2021]"
    r"|[\u00b2\u00b3\u00b9\u2070-\u207e]|\^[^\s^]{1,20}\^|<!--[^\n]{0,200}?-->"
    r"|[ \u00a0\u202f]\u00bb(?=\s)"
    rf"|\[[^\[\]\n]{{1,40}}\](?:\([^()\s]{{0,200}}\))?|\[{_MARK}\]"
    r"|\((?:[^()\n]|\([^()\s]{0,200}\)){1,200}+\)(?!\w)"
    rf"|\[\[[^\[\]\n]{{1,40}}\]\](?:\([^()\s]{{0,200}}\))?|\u3010[^\u3011\n]{{1,40}}\u3011"
    r"|<(sup|ref)\b[^\n]{0,200}?(?:/>|</\1>)|</(?:[abisu]|em|strong|del|ins|mark|span|q|cite)>)"
)
"""Quotes, emphasis, footnote marks and tags that belong to the sentence that they follow."""
_BREAK = r"<(?:br[ /]{0,2}|/?(?:p|li|dd|dt|div|td|th|tr|h[1-6]|blockquote|summary))>"
_STOP = re.compile(
    f"[{STOPS}{SPACELESS_STOPS}\n`<]"
    f"(?:(?<![{STOPS}]{{2}})(?<=[{STOPS}])[{STOPS}]*{_CLOSER}{{0,6}}+"
    rf"(?:[ \t]+{_MARKS}(?=\s|$)|[ \t]+{_MARK}(?:[ \t]*{_MARK}){{0,9}}"
    rf"|(?=[\s{CJK}]|&nbsp;|{_BREAK}))"
    f"|(?<=[{SPACELESS_STOPS}])[{SPACELESS_STOPS}]*(?:[\u201d\u2019\uff09\u300d\u300f]|{_MARK})*"
    r"(?:[*_~]{1,3}(?=\s))?"
    rf"|(?<=\n)\n*|(?<=<){_BREAK[1:]}|(?<=`)(?:(?<!``)`+[^`\n]+`{{2,}}|[^`\n]*`))",
    re.IGNORECASE,
)
"""A code span, or a possible sentence end. It begins with a single character class, which makes it
much faster.
"""
_TITLED = "Lt|Gen|Col|Maj|Capt|Cmdr|Sgt|Rev|Hon|Gov|Sen|Rep|Pres"
_NO_STOP = re.compile(
    r"(?:\b(?:e\.?g|i\.?e|cf|vs|dr|mrs?|ms|prof|figs?|eq|sec|ch|vol|pp?|ca|approx|incl|resp"
    r"|bzw|vgl|evtl|ggf|inkl|zzgl|sog|hrsg|dipl|ing|dott|sig|sra|srta|dra|bijv|dhr|mevr|tzn"
    r"|z\.[ ]?b|d\.[ ]?h|p\.[ ]?(?:ex|ej|es)|u\.[ ]?a|av|\u0443\u043b|\u0438\u043c"
    r"|\u0442\.[ ]?[\u0435\u043a])"
    rf"|\b(?-i:v|{_TITLED}|Abs|Nr|Hr"
    r"|Fr|MM|Mlle|apr|[Gg]em|med|phil|Fa|Ud|Uds|\u043f\u0440\u043e\u0444)"
    r"|\b(?-i:(?<!\bI )[Aa]m|[Vv]om|[Zz]um|[Ii]m|[Bb]eim|[Bb]is|[Ss]eit|[Aa]b|und"
    r"|[Dd](?:er|ie|as|en|em|es))[ ]\d{1,2}"
    rf"|^\W{{0,3}}(?:\d{{1,3}}|(?-i:[{CAPITALS}])))\.$",
    re.IGNORECASE,
)
_UNIT = re.compile(
    r"(?:[\u00b0\u00ba][ ]?|(?<![\w.,])(?!(?:1[5-9]|20)\d\d[ ])\d[\d.,]*[ \u00a0]?)"
    rf"(?:ms|secs?|(?-i:(?!S)[{CAPITALS}]))\.$"
    rf"|\b(?:vitamin|plan|type|class|group|option|grade|hepatitis|appendix|annex|case|part|drive"
    rf"|typ|klasse|gruppe|anhang)[ ][{CAPITALS}]\.$",
    re.IGNORECASE,
)
"""Units and labels that look like an initial or an abbreviation."""
_ZONE = re.compile(r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|Eastern|Central|Mountain|Pacific")
_MAYBE_STOP = re.compile(
    rf"\b(?:[{CAPITALS}]|[ap]\.m|Inc|Ltd|Corp|Co|Bros|Jr|Sr|etc|al|usw|Mio|Mrd"
    r"|Chr|St|Mt|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.$"
)
"""Abbreviations that end a sentence only before a word that begins a new one."""
_NUMBER = re.compile(
    r"\b(?:[Nn]os?|[Aa]rts?|Abb|Bd|[Kk]ap|[Cc](?:h?ap|it)|S|Ziff|Rn|Tab|[Nn]r|[Nn]\u00fam"
    r"|[Pp][\u00e1a]gs?|[Pp]ara?|env|aprox|janv|f\u00e9vr|juil"
    r"|(?:[Ll]egge|[Dd]ecreto|[Ll]gs\.)[ ]n|Rs|[Mm](?:ax|in)|[Tt]el|ust|poz|odst|\u010d"
    r"|(?<!\b(?:in|of|to|my)[ ])(?<!\b(?:his|her|our)[ ])(?<!(?:your|heir|ever|on['\u2019]t)[ ])"
    r"[Mm]ind"
    r"|\u0440\u0438\u0441|\u0441\u0442\u0440?|\u0442\u0430\u0431\u043b|\u043f{1,2}|\u0433\u043b)\.$"
)
"""Abbreviations before a number."""
_MEASURED = re.compile(
    r"\d[^\s,;]*[ \u00a0-](?:(?!(?:and|or|und|oder|et)[ ])[^\s,;]+[ \u00a0]){0,3}"
    r"(?:max|[Mm]in|Rs)\.$"
)
"""A quantity, as in "20 min." or "5 GB max.", whose full stop can end a sentence."""
_DAY = re.compile(r"(?<![\w.,])(?:[0-2]?\d|3[01])\.$")
_AFTER_DAY = re.compile(
    r"(?:Januar|J\u00e4nner|Februar|M\u00e4rz|April|Mai|Juni|Juli|August|September|Oktober|November"
    r"|Dezember|Jahrhundert|Jh|Quartal|Auflage|Kapitel|Klasse|Weltkrieg|Platz|Stock|Etage)"
    r"|\d{1,2}\.[ \u00a0](?:19|20)\d\d\b"
)
"""A month, with a year if it is a number, or another word that follows an ordinal in German."""
_MONTH = re.compile(r"\b\d{1,2}\.[ \u00a0]\d{1,2}\.$")
_YEAR = re.compile(r"(?:19|20)\d\d\b")
_LETTER = re.compile(r"\b(?:[^\W\d_]|EE)\.$")
_LETTERS = re.compile(r"[^\W\d_]{1,3}\.")
_STARTERS = STOP_WORDS | set(
    re.findall(r"\w+", "der die das er sie es ein eine dies diese wir dann il elle")
)
_NEW = re.compile(r"[a-z]{1,6}[A-Z]|[a-z]\)")
"""Lower-case beginnings of a sentence: iPhones, "b)"."""
_WORD_BEFORE = re.compile(r"[^\W\d_]{5,}\.$")
_FIRST_WORD = re.compile(r"[^\W\d_]{2,}")

_ENDED = re.compile(f"[{STOPS}{SPACELESS_STOPS}:;]\\W{{0,4}}$")
_SPACELESS = re.compile(f"[{CJK}\u3000-\u303f\uff00-\uffef\u2018-\u201d]")
_PIECE = re.compile(rf"\S.{{0,{LONGEST - 1}}}(?=\s|$)|\S.{{0,{LONGEST - 1}}}", re.DOTALL)
_FENCES = ("```", "~~~")


def sentences(text: str) -> list[str]:
    """Split a text into sentences, each with its whitespace collapsed.

    A line break ends a sentence too, unless the next line continues in lower case. Abbreviations,
    initials, list numbers and dots in code spans do not end a sentence.
    """
    return [folded for sentence in pieces(text) if (folded := " ".join(sentence.split()))]


def pieces(text: str) -> list[str]:
    """Split a text into sentences that, joined together, yield the text again."""
    split: list[str] = []
    start = 0
    for match in _STOP.finditer(text):
        if match[0][0] != "`" and _ends_sentence(text, start, match):
            split.append(text[start : match.end()])
            start = match.end()
    return [*split, text[start:]]


def _ends_sentence(text: str, start: int, match: re.Match[str]) -> bool:
    end = match[0]
    follows = text[match.end() : match.end() + 40].lstrip()
    if end == "\n" and text.startswith(">", text.rfind("\n", 0, match.start()) + 1):
        follows = follows.lstrip("> \t")
    starts = not follows[:1].islower() or (end[0] != "\n" and bool(_NEW.match(follows)))
    before = text[max(start, match.start() - 16) : match.start() + 1].lstrip()
    if end[0] != "." or end.startswith("..") or _UNIT.search(before):
        return starts
    if _is_abbreviated(before, follows):
        return False
    if end == "." and follows and _MAYBE_STOP.search(before):
        word = _FIRST_WORD.match(follows)
        if word is None or not word[0].istitle():
            return False
        is_time = before.endswith(".m.") and not _ZONE.match(follows)
        return is_time or word[0].lower() in _STARTERS
    return starts or (follows[0].isascii() and _WORD_BEFORE.search(before) is not None)


def _is_abbreviated(before: str, follows: str) -> bool:
    """Return whether a full stop belongs to an abbreviation or ordinal and ends no sentence."""
    return bool(
        _NO_STOP.search(before)
        or (follows[:1].isdigit() and _NUMBER.search(before) and not _MEASURED.search(before))
        or (_LETTER.search(before) and _LETTERS.match(follows))
        or (_DAY.search(before) and _AFTER_DAY.match(follows))
        or (_MONTH.search(before) and _YEAR.match(follows))
    )


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
        ends = _is_short(part) and _ENDED.search(part)
        if joined and (_is_short(joined[-1]) or (ends and len(joined[-1]) < LONGEST)):
            joined[-1] = _joined(joined[-1], part)
        else:
            joined.append(part)
    if len(joined) > 1 and _is_short(joined[-1]):
        joined[-2:] = [_joined(*joined[-2:])]
    return [piece for sentence in joined for piece in _PIECE.findall(sentence)]


def _is_short(sentence: str) -> bool:
    return len(sentence) <= 30 and len(WORD.findall(sentence)) < 3


def _joined(text: str, part: str) -> str:
    if text.startswith(_FENCES) or part.startswith(_FENCES):
        return f"{text}\n{part}"
    is_spaceless = _SPACELESS.match(text[-1:]) and _SPACELESS.match(part)
    return f"{text}{part}" if is_spaceless else f"{text} {part}"
