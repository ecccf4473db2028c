"""Use regular expressions to find headings in non-Markdown markup and text hidden from readers."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator
from html import unescape
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from stepcraft.text.markdown import outside_code, replaced

MAX_HEADING = 200
"""The maximum length of a heading; a longer one is treated as text."""


class Heading(NamedTuple):
    """A heading with its character offsets, which include the underline if it has one."""

    start: int
    stop: int
    level: int
    """1 is the outermost level; 0 stands for a fenced block or a table."""
    text: str
    repeated: str = ""
    """The lines repeated in each part of a block: a table's header or an opening fence."""
    fence: str = ""
    """The line that closes a fenced block."""


_Reader: TypeAlias = Callable[[str], Iterator[Heading]]

_RST = re.compile(
    r"^(?:(?P<above>([^\w\s])\2+)[ \t]*\n)?(?P<title>(?(above)[ \t]*)[^\s][^\n]*)\n"
    r"(?P<below>([^\w\s])\5+)[ \t]*$",
    re.MULTILINE,
)
_RST_LABEL = re.compile(r"^(?:\.\. _[^\n]+:|:(?:orphan|nosearch|nocomments):)[ \t]*$", re.MULTILINE)
_ASCIIDOC = re.compile(
    r"""
    ^(?P<sign>={1,6})[ \t]+(?P<title>[^\n]+)$
    | (?:\A | (?<=\n\n) | (?<=\]\n)) (?![|[./]) (?P<above>[^\n]*+)\n(?P<below>([-=~^+])\5+)[ \t]*$
    | ^(?P<block>-{4,}|\.{4,}|\+{4,}|/{4,})\n .*? (?:^(?P=block)$|\Z)
    """,
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
_ORG = re.compile(
    r"^(?P<sign>\*{1,8})[ \t]+(?:(?:TODO|DONE)[ \t]+)?(?P<title>[^\n]{1,300}?)"
    r"(?:[ \t]+:[\w:@]+:)?[ \t]*$",
    re.MULTILINE,
)
"""An Org heading. Its title excludes Org's own keywords and tags."""
_ORG_BLOCK = re.compile(
    r"^[ \t]*#\+begin_.*?(?:^[ \t]*#\+end_\w+|\Z)", re.DOTALL | re.MULTILINE | re.IGNORECASE
)
_LATEX_WORDS = r"(?:[^\n{}]|\{(?:[^\n{}]|\{[^\n{}]*\})*\})++"
_LATEX = re.compile(
    r"^[ \t]*\\(?P<sign>part|chapter|(?:sub){0,2}section|paragraph)\*?"
    rf"(?:\[[^\]\n]*\])?\{{(?P<title>{_LATEX_WORDS})\}}",
    re.MULTILINE,
)
_LATEX_COMMENT = re.compile(
    r"""
    (?P<shown>
        \\begin\{(?P<name>\w*(?:[Vv]erbatim|[Ll]isting|[Cc]ode|minted|alltt|filecontents)\w*\*?)\}
        .*? (?: \\end\{(?P=name)\} | \Z)
        | \\(?:url|href|nolinkurl|path|lstinline|mintinline\{\w+\}) (?:\[[^]\n]*\])? \{[^{}\n]*\}
        | \\(?:verb|lstinline)\*? (?P<sign>[^\w\s\[{*])[^\n]*?(?P=sign)
        | \\.
    )
    | %[^\n]*
    """,
    re.DOTALL | re.VERBOSE,
)
"""A comment in LaTeX, or else a command or code whose percent signs are shown."""
_LATEX_LEVELS = ["part", "chapter", "section", "subsection", "subsubsection", "paragraph"]
_MAN = re.compile(r'^\.S(?P<sign>[HShs])[ \t]+"?(?P<title>[^\n"]{1,300})"?[ \t]*$', re.MULTILINE)
_NUMBERED = re.compile(
    r"^(?:(?:Appendix[ ])?(?P<sign>(?:\d{1,2}|[A-Z])(?:\.\d{1,3})*)\.?[ \t]{1,4})?"
    r"(?P<title>(?(sign)[A-Z][^\n]{2,70}?(?<!\.)"
    r"|(?:Acknowledge?ments?|Contributors|Index|Authors?'?s? Address(?:es)?)))$",
    re.MULTILINE,
)
_MEMO = re.compile(r"^(?:Request for Comments:|Internet-Draft\b)", re.MULTILINE)
"""A line at the beginning of an RFC or a draft of one."""
_NAMED = {
    ".org": re.compile(r"^#\+title:[ \t]*(.+)$", re.MULTILINE | re.IGNORECASE),
    ".tex": re.compile(rf"\\title(?:\[[^\]\n]*\])?\{{({_LATEX_WORDS})\}}"),
    ".adoc": re.compile(r"\A(?:(?://[^\n]*|)\n)*=[ \t]+([^\n]+)"),
}
"""Patterns for a title that is stated in the file itself."""
_FURNITURE = re.compile(
    r"(?<!\n)\n++(?:[^\n]* {3}\[Page \d+\][ \t]*|\[Page \d+\] {3,}+)\n"
    r"(?:\f?\n*(?=[^\n]*\S {3,}+\S| {20}|[^\n]* {20}\n)[^\n]*\d{4}[ \t]*\n)?"
)
"""A page's footer and the next page's header, set in columns as in RFCs."""
_TIMES = re.compile(
    r"^(?:WEBVTT[^\n]*|(?:\d+|(?<=\n\n)[^\n]++)(?=\n[^\n]*:\d\d[.,]\d{3} +-->)"
    r"|[^\n]*:\d\d[.,]\d{3} +--> [^\n]*)$"
    r"|</?(?:[bciu]|ruby|rt|lang)\b[^<>\n]*>|<(?:\d\d:)?\d\d:\d\d\.\d{3}>"
    r"|</?v\b(?:[.\w]*+(?:[ ]|(?=>)))?([^<>\n]*)>",
    re.MULTILINE,
)
"""Names, times and tags of cues in subtitles; a tag may name the speaker."""
_CUE_NOTES = re.compile(r"(?<=\n\n)(?:NOTE|STYLE|REGION)(?!\S)[^\n]*+(?:\n(?![^\n]*-->)[^\n]++)*+")
_CUE_SIGNS = re.compile("&(?:amp|lt|gt|nbsp|quot|apos|#39);")
_MANUALS = [f".{number}" for number in range(1, 9)]
"""The suffixes of manual pages."""
_ROFF_PAGE = re.compile(r"^\.[ \t]*(?:TH|SH|Dd|Sh|so)\b", re.MULTILINE)
"""A line that distinguishes a manual page from other files whose names end in a digit."""
_ROFF_LINE = re.compile(r"^[.'][ \t]*+(?P<name>\w*+)(?P<rest>[^\n]*)$", re.MULTILINE)
_ROFF_MACRO = re.compile(r"^\.de1?[ \t].*?(?:^\.\.|\Z)", re.MULTILINE | re.DOTALL)
_ROFF_ELSE = re.compile(
    r"^(\.[ \t]*ie[ \t]+n[ \t]*\\\{[^{}]*+\}[ \t]*\n)(\.[ \t]*el[ \t]*\\\{[^{}]*+\})", re.MULTILINE
)
"""Two versions of a text: for a terminal, and for print."""
_ROFF_STRING = re.compile(
    r"^[.'](?:[^\n]*[.'])?[ \t]*ds1?[ \t]+(\S+)[ \t]+\"?([^\n]*)$",
    re.MULTILINE,
)
_ROFF_USED = re.compile(r"\\\*(?:\(([^\n]{2})|\[([^]\n]*)\]|([^\n]))")
_ROFF_ESCAPE = re.compile(
    r"""\\(?: (?P<comment>["#][^\n]*) | [hvwlLDx]'[^'\n]*'
    | s[1-3]\d | [fmsF](?:\[[^]\n\\]*\]|\([^\n]{2}|[+-]?[^\n])
    | (?P<name>\([^\n]{2}|\[[^]\n\\]*\]) | (?P<sign>[^\n]) )""",
    re.VERBOSE,
)
_ROFF_NAMED = """
    aq ' lq " rq " dq " oq \u2018 cq \u2019 em \u2014 en \u2013 bu \u2022 sc \u00a7 co \u00a9
    rg \u00ae tm \u2122 de \u00b0 pc \u00b7 +- \u00b1 mu \u00d7 di \u00f7 <= \u2264 >= \u2265
    != \u2260 == \u2261 -> \u2192 <- \u2190 12 \u00bd 14 \u00bc 34 \u00be Eu \u20ac Po \u00a3
    ss \u00df ha ^ ti ~ rs \\ ga ` Lt < Gt > mi - hy - mc \u00b5 *m \u03bc at @ sh # Do $ sl / ul _
    ba | bv | or | lB [ rB ] lC { rC } la < ra > *W - Am &
    Fo \u00ab Fc \u00bb fo \u2039 fc \u203a S1 \u00b9 S2 \u00b2 S3 \u00b3
"""
_ROFF_SIGNS: dict[str, str] = {
    **{sign: sign for sign in "-.'`_\\"},
    "e": "\\",
    **dict.fromkeys(" ~0t", " "),
    **{f"({name}": sign for name, sign in re.findall(r"(\S+) (\S+)", _ROFF_NAMED)},
}
_ROFF_ACCENTS = dict(zip("'`^~:,", "\u0301\u0300\u0302\u0303\u0308\u0327", strict=True))
_ROFF_UNICODE = re.compile(r"\[u([0-9A-F]{4,5}(?:_[0-9A-F]{4,5})*)\]")
_ROFF_ARGUMENT = re.compile(r'"([^"\n]*)"?|([^\s"]\S*)')
_ROFF_FONTS = {"BR", "RB", "BI", "IB", "IR", "RI"}
"""Macros that set their arguments in two alternating fonts."""
_MDOC_CALLED = re.compile(
    r"A[pr]|Brq|[BDPQS]q|Cm|D[lv]|E[mrv]|F[an]|Ic|Li|Nm|O[cop]|Pa|Q[cl]|Sy|Ta|V[at]|X[cor]"
)
"""The mdoc macros that can appear among the arguments of others, except `Fl`, `No` and `Ns`."""
_MDOC_NAME = re.compile(r"^\.[ \t]*Nm[ \t]+(\S+)", re.MULTILINE)
_MDOC_UNNAMED = re.compile(r"^\.[ \t]*Nm(?=[ \t]*$)", re.MULTILINE)
"""A line that stands for the name of the program."""
_MDOC_OPTIONAL = {"Oo": "[", "Oc": "]"}
_COMPONENTS = re.compile(
    r"""
    ^import[ \t]++ (?:
        (?:type[ \t]++)? (?:
            (?:[\w$]++ | \*[ \t]++as[ \t]++[\w$]++ | \{[^"';{}]{1,1000}\})
            [ \t]*+ (?:,[ \t]*+ | (?=from\b))
        ){1,2} from[ \t]*+ | (?=[^\n]+/)
    ) (["'])[^"'\n]+\1 ;? [ \t]*$
    | ^[ \t]*+ <[A-Z](?:[^\W_]|\.)*+ (?:
        (?:[ \t] | \n(?![ \t]*\n))++ (?:
            (?:[\w:-]++=)? \{(?:[^{}]|\{[^{}]*+\})*+\}
            | (?!\d)[\w:@#-]++ (?:\.\w++)*+ (?:= (?:"[^"]*+" | '[^']*+' | [^\s"'<>{}=]++))?
        )
    )*+ \s*+ /? > | </[A-Z][\w.]*+>
    | ^[ \t]*+ :{3,}+
    | \{\{ (?: <[^{}]*?> | %[^{}]*?% ) \}\}
    """,
    re.MULTILINE | re.VERBOSE,
)
"""MDX imports and components, the markers of admonitions, and Hugo shortcodes."""
_IN_COMPONENT = re.compile(
    r"""
    \b(?:alt|caption|description|heading|label|summary|text|title
        |question|answer|subtitle|message
        |name|path|body|query|header|type|default)=\{?(?:"(?P<value>[^"]*)"|'(?P<other>[^']*)')
    | (?<=\s)(?P<mark>required)(?=[\s/>]|=\{true\})
    | (?<=\{\{[<%]) [ ]? (?P<call>[\w.-]+ (?:[ ][^\s={}<>%]+)+?) [ ]*/? (?=[>%]\}\})
    """,
    re.VERBOSE,
)
"""The visible parts of components and shortcodes: text attributes, those that describe a parameter
of an interface, and unnamed arguments.
"""
_ARGUMENT = re.compile(
    r"(?<![\w-])(?!(?:src|href|url|link|class|style|width|height|align|icon|target|rel|lang)=)"
    r'[\w-]+="(?P<value>[^"/]*)"'
)
"""An argument of a shortcode that is no path, shown if nothing else in the shortcode is."""
_HIGHLIGHT = re.compile(
    r"(?:^(?P<margin>[ ]{0,3}))?(?:\{%-?[ ]*(?P<end>end)?highlight\b[^{}\n]*%\}"
    r"|\{\{[<%][ ]*(?P<slash>/)?[ ]*highlight\b[^{}\n]*[%>]\}\})(?P<alone>[ \t]*$)?",
    re.MULTILINE,
)
"""What begins or ends code in Jekyll or Hugo."""
_INDENTED_CODE = re.compile(
    r"^[ ]{0,3}(?![-*+]\s|[<>/:{]|\d{1,9}[.)])\S[^\n]*\n(?:[ \t]*+\n)++"
    r"((?:(?:[ ]{4}|\t)[^\n]*+\n?|[ \t]*+\n)++)",
    re.MULTILINE,
)
"""Code below a paragraph; what is indented below a list item or a component may not be code."""


def without_components(text: str) -> str:
    """Return Markdown with fences or spaces in place of anything meant for a site generator."""
    text = _with_fences(text)
    spans = [match.span(1) for match in _INDENTED_CODE.finditer(text)]

    def shown(match: re.Match[str]) -> str:
        place = bisect_right(spans, (match.start(), len(text))) - 1
        is_code = place >= 0 and match.start() < spans[place][1]
        return match[0] if is_code else _texts_in(match)

    return replaced(text, _COMPONENTS, shown)


def _with_fences(text: str) -> str:
    """Return Markdown with fences around highlighted code, if both marks have their own lines."""
    spans = outside_code(text)
    marks = [mark for span in spans for mark in _HIGHLIGHT.finditer(text, *span)]

    def is_alone(mark: re.Match[str]) -> bool:
        return mark["margin"] is not None and mark["alone"] is not None

    def is_end(mark: re.Match[str]) -> bool:
        return bool(mark["end"] or mark["slash"])

    places = {
        mark.start()
        for first, last in pairwise(marks)
        if not is_end(first) and is_end(last) and is_alone(first) and is_alone(last)
        for mark in (first, last)
    }

    def fence(mark: re.Match[str]) -> str:
        is_fence = mark.start() in places
        return f"{mark['margin']}````".ljust(len(mark[0])) if is_fence else mark[0]

    return replaced(text, _HIGHLIGHT, fence)


def _texts_in(match: re.Match[str]) -> str:
    shown, found = [*blanks(match)], [*_IN_COMPONENT.finditer(match[0])]
    if not found and match[0].startswith("{{"):
        found = [*_ARGUMENT.finditer(match[0])]
    for each in found:
        start, stop = each.span(each.lastgroup or 0)
        shown[start:stop] = match[0][start:stop]
    return "".join(shown)


def title_of(text: str, suffix: str) -> str:
    """Return the title stated in a file's text, or "" if there is none."""
    named = _NAMED[suffix].search(text) if suffix in _NAMED else None
    return named[1].strip() if named else ""


def headings_of(text: str, suffix: str) -> list[Heading]:
    """Return the headings in a file's text, or [] if its suffix indicates no known markup."""
    reader = _READERS.get(suffix)
    return [each for each in reader(text) if len(each.text) <= MAX_HEADING] if reader else []


def without_furniture(text: str) -> str:
    """Return plain text with spaces in place of text repeated on every page."""
    return _FURNITURE.sub(blanks, text)


def without_commands(text: str, suffix: str) -> str:
    """Return text without what readers do not see, with the same number of lines.

    These are the times of subtitles, commands of manual pages, labels of rst and LaTeX's comments.
    """
    if suffix == ".rst":
        return _RST_LABEL.sub("", text)
    if suffix == ".tex":
        return _LATEX_COMMENT.sub(lambda each: each["shown"] or blanks(each), text)
    if suffix == ".vtt":
        text = _CUE_NOTES.sub(blanks, text)
    if suffix in {".srt", ".vtt"}:
        text = _TIMES.sub(lambda tag: f"{tag[1]}: " if tag[1] else "", text)
        return _CUE_SIGNS.sub(lambda sign: unescape(sign[0]), text)
    if suffix not in _MANUALS or not _ROFF_PAGE.search(text):
        return text
    text = _ROFF_MACRO.sub(blanks, text)
    text = _ROFF_ELSE.sub(lambda match: match[1] + "\n" * match[2].count("\n"), text)
    # The first value of a string is for a terminal.
    strings: dict[str, str] = {
        name: value.partition('\\"')[0].rstrip()
        for name, value in reversed(_ROFF_STRING.findall(text))
    }
    if named := _MDOC_NAME.search(text):
        text = _MDOC_UNNAMED.sub(lambda line: f"{line[0]} {named[1]}", text)

    def value(used: re.Match[str]) -> str:
        name = used[used.lastindex or 0]
        return strings.get(name, f"\\[{name}]")

    text = _ROFF_USED.sub(value, _ROFF_LINE.sub(_roff_words, text))
    return _ROFF_ESCAPE.sub(_roff_sign, text)


def _roff_words(line: re.Match[str]) -> str:
    """Return the words on a macro's line, or "" if the macro only affects the layout."""
    name, rest = line["name"], line["rest"]
    if name.upper() in {"SH", "SS"}:
        return line[0]
    if not name or name.islower() or name in {"TH", "RS", "RE", "TP", "HP", "Bl"}:
        return ""
    arguments: list[tuple[str, str]] = _ROFF_ARGUMENT.findall(rest)
    if name[1:].islower():  # a macro of mdoc
        shown = [quoted or _MDOC_OPTIONAL.get(word, word) for quoted, word in arguments]
        words = [word for word in shown if not _MDOC_CALLED.fullmatch(word)]
        words = words or (["file ..."] if name == "Ar" else [])
        text = " ".join(["Fl", *words] if name == "Fl" else words)
        text = re.sub(r"(?<!\S)Fl (?:Ns )?", "-", text).replace(" Ns ", "")
        return f"[{text}]" if name == "Op" else _MDOC_OPTIONAL.get(name, "") + text
    words = [quoted or word for quoted, word in arguments]
    if name == "IP":  # its other arguments are the indentation
        words = words[:1]
    return ("" if name in _ROFF_FONTS else " ").join(words)


def _roff_sign(escape: re.Match[str]) -> str:
    name = escape["sign"] or escape["name"] or ""
    if unicode := _ROFF_UNICODE.fullmatch(name):
        return "".join(chr(int(each, 16)) for each in unicode[1].split("_"))
    bare = name[1:-1] if name.startswith("[") else name[1:]
    if len(bare) == 2 and bare[0] in _ROFF_ACCENTS and bare[1].isalpha():
        return unicodedata.normalize("NFC", bare[1] + _ROFF_ACCENTS[bare[0]])
    return _ROFF_SIGNS.get(f"({bare}" if bare else name, f"[{bare}]" if bare else "")


def blanks(match: re.Match[str]) -> str:
    """Return spaces in place of a match, so that all offsets are preserved."""
    return re.sub(r"[^\n]", " ", match[0])


def _rst(text: str) -> Iterator[Heading]:
    """Yield reStructuredText titles; the first kind of underline or overline is the outermost."""
    levels: dict[tuple[bool, str], int] = {}
    for match in _RST.finditer(text):
        above, below, title = match["above"], match["below"], match["title"]
        # A rule of at least four signs may be a little too short, as for docutils.
        too_short = len(title.rstrip()) - len(below)
        if (above and above[0] != below[0]) or too_short > (2 if len(below) > 3 else 0):
            continue
        if not any(map(str.isalnum, title)) or title.startswith(".. "):
            continue
        level = levels.setdefault((bool(above), below[0]), len(levels) + 1)
        yield Heading(*match.span(), level, title.strip())


def _asciidoc(text: str) -> Iterator[Heading]:
    """Yield titles prefixed with `=`, and those with an underline of about the same length."""
    position = 0
    while match := _ASCIIDOC.search(text, position):
        position, above = match.end(), match["above"]
        if match["sign"]:
            title = match["title"].strip()
            yield Heading(*match.span(), len(match["sign"]), title)
        elif above is not None and abs(len(match["below"]) - len(above.rstrip())) > 1:
            position = match.start("below")  # not an underline: it opens a block
        elif above:
            level = "=-~^+".index(match["below"][0]) + 1
            yield Heading(*match.span(), level, above.strip())


def _by(
    pattern: re.Pattern[str], level: Callable[[str], int], block: re.Pattern[str] | None = None
) -> _Reader:
    """Return a function that finds headings on lines of their own, outside of blocks."""

    def read(text: str) -> Iterator[Heading]:
        shown = block.sub(blanks, text) if block else text
        for match in pattern.finditer(shown):
            yield Heading(*match.span(), level(match["sign"]), match["title"].strip())

    return read


_numbered = _by(_NUMBERED, lambda sign: (sign or "").count(".") + 1)


def _memo(text: str) -> Iterator[Heading]:
    """Yield the headings in an RFC, most of which are numbered; other plain text has none."""
    is_memo = _FURNITURE.search(text) or _MEMO.search(text[:5000])
    return _numbered(text) if is_memo else iter(())


_READERS: dict[str, _Reader] = {
    ".rst": _rst,
    ".adoc": _asciidoc,
    ".org": _by(_ORG, len, _ORG_BLOCK),
    ".tex": _by(_LATEX, lambda sign: _LATEX_LEVELS.index(sign) + 1),
    # Level 1 is left for the name of the manual page.
    **dict.fromkeys(_MANUALS, _by(_MAN, lambda sign: "HS".index(sign.upper()) + 2)),
    ".txt": _memo,
}
