"""Names in the code of texts: calls, classes, modules, options and files, as they are written in backticks or blocks."""

import builtins
import keyword
import re
import sys
from collections.abc import Iterable, Iterator

from stepcraft.text import markdown
from stepcraft.text.clean import stems

_STRING = re.compile(r"\"[^\"\n]*+\"|'[^'\n]*+'")
_COMMENT = re.compile(r"(?:(?<=\s)|^)(?:#|//)[^\n]*", re.MULTILINE)
_TOKEN = re.compile(
    r"(?<![\w.$/-])(?:--[a-z][\w-]*+|[A-Za-z_]\w*+(?:\.[A-Za-z_]\w*+)*+)(?P<call>[ \t]?\()?"
)
_SINGLE = re.compile(r"(?:--?|@|\./)?[A-Za-z_][\w.:/@-]{1,99}(?:\(\))?")
_SHAPED = re.compile(r"[_.]|^--|[a-z0-9][A-Z]|[A-Za-z][0-9]|^[A-Z][a-z]+[A-Z]")
BOUND = re.compile(
    r"^[ \t]*(?:async )?(?:def|class) (\w+)|^[ \t]*([A-Za-z_]\w*)(?:[ \t]?:[^=\n]{1,80})?[ \t]=[ \t]|\bas (\w+)|\bfor (\w+) in\b",
    re.MULTILINE,
)
_NAMED = re.compile(
    r"(?<![\w.-])(?![A-Z]{2,4}s?\b)"
    r"(?:[A-Za-z][a-z0-9]*+[A-Z_]\w*+|(?<=[a-z,] )[A-Z][\w-]++)(?:\.[A-Za-z_]\w*+)*+(?![\w-])"
)
_SEPARATOR = re.compile(r"[,;\n\uff0c\u3001]")
_ANYWHERE = ("self", "cls", "args", "kwargs", "--help", "--version")
COMMON = frozenset({*keyword.kwlist, *keyword.softkwlist, *dir(builtins), *_ANYWHERE})
"""Names that belong to Python itself, or to any command."""


def names_in(texts: Iterable[str]) -> dict[str, int]:
    """Return the names in the code of texts, each with the number (from 1) of the first text that has it.

    A code span of one word is a name; in other code only words that look like one: with a dot, an underscore or inner
    capitals, an option, or a call. Names that the code itself defines, names of Python and its library, and options of any
    command are none.
    """
    pieces = [list(codes(text)) for text in texts]
    own = {
        name
        for code in pieces
        for piece in code
        for bound in BOUND.findall(piece)
        for name in bound
        if name
    }
    found: dict[str, int] = {}
    for number, code in enumerate(pieces, 1):
        for piece in code:
            for name in _names(piece):
                parts = name.split(".")
                while len(parts) > 1 and parts[0] in own | COMMON:
                    del parts[0]
                rest = ".".join(parts)
                if (
                    len(rest) > 2
                    and rest not in own | COMMON
                    and parts[0] not in sys.stdlib_module_names
                ):
                    found.setdefault(rest, number)
    return found


def codes(text: str) -> Iterator[str]:
    """Yield the code spans and blocks of a text, without backticks and fences, in order."""
    if "`" not in text and "~~~" not in text:
        return
    end = 0
    for start, stop in [*markdown.outside_code(text), (len(text), len(text))]:
        code = text[end:start]
        if "\n" in code:
            yield code.partition("\n")[2].rpartition("\n")[0]
        elif code:
            yield code.strip("`").strip()
        end = stop


def unused(asked: str, resources: str, text: str) -> list[str]:
    """Return the names in a goal, and the resources, that a text does not mention.

    Names are words that look like one (see `names_in`) and capitalised words inside a sentence, but not short acronyms such
    as LLM or API. A resource is mentioned
    by half of its words.
    """
    plain = text.casefold()
    words = stems(plain)
    things = [" ".join(thing.split()).strip(" .`") for thing in _SEPARATOR.split(resources)]
    missing = [
        thing for thing in things if thing and 2 * len(stems(thing) & words) < len(stems(thing))
    ]
    names = dict.fromkeys([*names_in([asked]), *(name[0] for name in _NAMED.finditer(asked))])
    missing += [name for name in names if name.casefold() not in plain]
    return list(dict.fromkeys(missing))


def mentions(text: str, name: str) -> bool:
    """Tell whether a text has a name, exactly and as a word; of a dotted name each part counts on its own."""
    return _has(text, name) or (
        "." in name and all(_has(text, part) for part in name.split(".") if part)
    )


def _has(text: str, name: str) -> bool:
    start = text.find(name)
    while start >= 0:
        before, after = text[start - 1 : start], text[start + len(name) : start + len(name) + 1]
        if not (_continues(before) or _continues(after)):
            return True
        start = text.find(name, start + len(name))
    return False


def _continues(character: str) -> bool:
    return character == "_" or character.isalnum()


def _names(code: str) -> Iterator[str]:
    if _SINGLE.fullmatch(code):
        yield code.removesuffix("()")
        return
    plain = _COMMENT.sub("", _STRING.sub('""', code))
    for token in _TOKEN.finditer(plain):
        name = token[0].rstrip(" \t(")
        if token["call"] or _SHAPED.search(name):
            yield name
