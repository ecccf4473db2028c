"""Find names in the code spans and blocks of texts: calls, classes, modules, options and files."""

import builtins
import keyword
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import dropwhile

from stepcraft.text import markdown
from stepcraft.text.clean import MARKS, SPACELESS, WORD_MARKS

_STRING = re.compile(r"\"[^\"\n]*+\"|'[^'\n]*+'")
_COMMENT = re.compile(r"(?:(?<=\s)|^)(?:#|//)[^\n]*", re.MULTILINE)
_TOKEN = re.compile(r"(?<![\w.$/-])(--[a-z][\w-]*+|[A-Za-z_]\w*+(?:\.[A-Za-z_]\w*+)*+)([ \t]?\()?")
_SINGLE = re.compile(r"(?:--?|@|\./)?[A-Za-z_][\w.:/@-]{1,99}(?:\(\))?")
_SHAPED = re.compile(r"[_.]|^--|[a-z0-9][A-Z]|[A-Za-z][0-9]|^[A-Z][a-z]+[A-Z]")
_BOUND = re.compile(
    r"^[ \t]*(?:async )?(?:def|class) (\w+)"
    r"|^[ \t]*([A-Za-z_]\w*)(?:[ \t]?:[^=\n]{1,80})?[ \t]=[ \t]"
    r"|\bas (\w+)|\bfor (\w+) in\b",
    re.MULTILINE,
)
_COMPOUNDED = re.compile(r"[A-Za-z]\w*[A-Z_]\w*")
"""A name that still counts in a compound such as "StateGraph-based"."""
_FILE = re.compile(
    r"\.(?:ya?ml|json|toml|ini|cfg|conf|lock|env|txt|md|rst|csv|tsv|xml|html?|css|pdf|png|svg|jpe?g"
    r"|py|pyi|ipynb|[jt]sx?|sh|rb|go|rs|java|sql|db|zip|gz|tar|whl|exe)$"
)
_SPACED = re.compile(rf"[^\W\d_{SPACELESS}\u0000-\u007f\u0590-\u07ff]|[{WORD_MARKS}]")
"""A letter or mark of a script with spaces, except ASCII, and Arabic and Hebrew, whose articles and
prepositions are attached to words.
"""
_ANYWHERE = ("self", "cls", "args", "kwargs", "--help", "--version")
COMMON = frozenset({*keyword.kwlist, *keyword.softkwlist, *dir(builtins), *_ANYWHERE})
"""Names that belong to Python itself, and options that any command may have."""


def names_in(texts: Iterable[str]) -> dict[str, int]:
    """Return each name in the code in texts, with the number (from 1) of the first such text.

    A code span of one word is a name. In other code, only words that look like names count: those
    with a dot, an underscore or inner capitals, options, and calls. Names that the code itself
    defines, names from Python and its standard library, and options that any command may have are
    excluded.
    """
    pieces = [(number, code) for number, text in enumerate(texts, 1) for code in codes(text)]
    defined = COMMON | bound_in(code for _, code in pieces)
    numbers: dict[str, int] = {}
    for number, code in pieces:
        for name in _names(code):
            parts = [*dropwhile(defined.__contains__, name.split("."))]
            rest = ".".join(parts)
            if len(rest) > 2 and parts[0] not in sys.stdlib_module_names:
                numbers.setdefault(rest, number)
    return numbers


def bound_in(codes: Iterable[str]) -> set[str]:
    """Return the names that code defines itself: functions, classes, variables and imports."""
    return {name for code in codes for names in _BOUND.findall(code) for name in names if name}


def codes(text: str) -> Iterator[str]:
    """Yield the code spans and blocks in a text, without backticks and fences, in order."""
    for start, stop in markdown.code(text):
        code = text[start:stop]
        is_block = "\n" in code
        yield code[code.find("\n") + 1 : code.rfind("\n")] if is_block else code.strip("` ")


def mentions(text: str, name: str) -> bool:
    """Return whether a text contains a name as a whole word, or all parts of a dotted name.

    File names are not split into parts.
    """
    if has_word(text, name):
        return True
    parts = [*filter(None, name.split("."))]
    return not _FILE.search(name) and all(has_word(text, part) for part in parts)


def has_word(text: str, name: str) -> bool:
    """Return whether a text contains a name, option or number as a whole word.

    `--force` is not in `--force-recreate`, nor `app.yaml` in `app.yaml.example`, but `Graph` is in
    `Graph-based`. In scripts that use no spaces, letters may be directly next to it.
    """
    before, after = r"(?<![A-Za-z0-9_])", r"(?![A-Za-z0-9_])"
    if name[0].isdigit():
        before, after = r"(?<![0-9])(?<![0-9]\.)", r"(?!\.?[0-9])"
    elif not _COMPOUNDED.fullmatch(name):
        before, after = rf"{before}(?<!-)", rf"{after}(?!-[A-Za-z0-9_])"
    if "-" in name or _FILE.search(name):
        before, after = rf"{before}(?<![A-Za-z0-9_]\.)", rf"{after}(?!\.[A-Za-z0-9_])"
    if _SPACED.match(name[0]):
        before = rf"{before}(?<![{MARKS}])(?<![^\W{SPACELESS}])"
    if _SPACED.match(name[-1]):
        after = rf"{after}(?![{MARKS}]|[^\W{SPACELESS}])"
    # Most texts do not contain the name at all, which is quick to determine.
    return name in text and re.search(f"{before}{re.escape(name)}{after}", text) is not None


def _names(code: str) -> Iterator[str]:
    if _SINGLE.fullmatch(code):
        yield code.removesuffix("()")
        return
    for name, call in _TOKEN.findall(_COMMENT.sub("", _STRING.sub('""', code))):
        if call or _SHAPED.search(name):
            yield name
