"""Find names in a procedure's steps that are missing from its source document."""

import re
import sys
from collections.abc import Iterator, Sequence
from itertools import chain

from stepcraft.text.markdown import code, outside_code
from stepcraft.text.names import COMMON, bound_in, codes, has_word

_TOKEN = re.compile(
    r"(?<![\w-])--?[A-Za-z][\w-]*"  # an option
    r"|[A-Za-z_]\w*(?:[.-]\w+)*"  # a name with any prefix that qualifies it
    r"|\d+(?:[.,]\d+)*\w*"  # a number, with its unit
)
_IN_PROSE = re.compile(
    r"(?<![\w-])--[A-Za-z][\w-]*"
    r"|(?<![\w.@/-])[A-Za-z_]\w*(?:\.\w+)*(?=\()"  # a call
    r"|(?<![\w.@/-])[A-Za-z]\w*_\w+(?:\.\w+)*"
    r"|(?<![\w.,:/#-])(?<!\b[Ss]tep )(?<!\b[Ss]teps )\d+(?:[.,]\d+)*(?![\w:/-])"
)
_PLACEHOLDER = re.compile(r"<[^<>\n]{1,80}>|\b(?:your|my)[-_]\w[\w-]*", re.IGNORECASE)
_PROSE_STRING = re.compile(r"\"[^\"\s]*+[^\S\n][^\"\n]*+\"|'[^'\s]*+[^\S\n][^'\n]*+'")
"""A string literal of several words, which is prose rather than a name."""
_ANYWHERE = COMMON | sys.stdlib_module_names | {"cd", "cp", "echo", "export", "mkdir", "mv", "set"}
_STAND_IN = re.compile(
    r"(?P<name>[\"']?(?<!\w)[A-Za-z_]\w*+[\"']?\s*+[=:]\s*+)"
    r"(?P<quote>[\"']?)(?!(?:True|False|None|true|false|null)\b)"
    r"(?:[A-Za-z_]\w*+|\$\{?\w++\}?|\{\{?[^{}\n]{1,80}\}?\})(?P=quote)"
    r"(?=\s*+(?:[,)}\]]|\Z)|[ \t]*+$)",
    re.MULTILINE,
)
"""An argument whose value is a bare name or a placeholder in braces."""
_VARIABLE = re.compile(
    r"[\"']?(?:[a-z]+(?:_[a-z0-9]+)+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*|\$.*|\{.*)[\"']?", re.DOTALL
)
"""A quoted value that counts as a placeholder because it is written like a variable."""
_NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve"
_COUNTS = {str(number): word for number, word in enumerate(_NUMBERS.split())}


class Grounds:
    """A document against which the names in steps are checked.

    Args:
        text: The text of the document.
    """

    def __init__(self, text: str) -> None:
        # In JSON, "\n" separates words; in LaTeX, it may begin one: the text is read in both ways.
        spaced = re.sub(r"\\[nrt]", " ", text)
        text = text if spaced == text else f"{text}\n{spaced}"
        # In Markdown, an escape such as "checkpoint\_id" stands for "checkpoint_id".
        self._text = re.sub(r"\\(?=_|[^\w\s])", "", text)
        self._words = frozenset(re.findall("[A-Za-z0-9_]+", self._text))
        self._folded = frozenset(word.lower() for word in self._words if _is_ordinary(word))

    def missing(self, steps: Sequence[str]) -> dict[int, list[str]]:
        """Return the names in each step that are not in the document, by step number from 1.

        In code, every name, option and number is checked token by token, so whitespace and quotes
        do not matter; in prose, only options, calls, names with an underscore, and numbers are
        checked. Names from Python and its standard library, names that the code itself defines,
        placeholders such as `<your key>`, and strings of several words are skipped. A dotted name
        is checked part by part.
        """
        defined = bound_in(piece for step in steps for piece in codes(step))
        missing: dict[int, list[str]] = {}
        for number, step in enumerate(steps, 1):
            if names := [name for name in _named(step) if not self._has(name, defined)]:
                missing[number] = list(dict.fromkeys(names))
        return missing

    def missing_names(self, texts: Sequence[str]) -> list[str]:
        """Return the names in texts that are not in the document, without duplicates."""
        return list(dict.fromkeys(chain(*self.missing(texts).values())))

    def _has(self, name: str, defined: set[str]) -> bool:
        if name[0].isdigit():
            return self._has_number(name)
        if re.split("[.-]", name)[0] in defined | _ANYWHERE:
            return True
        if "-" in name:
            return has_word(self._text, name)
        return all(part in defined or self._has_word(part) for part in name.split("."))

    def _has_word(self, word: str) -> bool:
        if word.isdigit():
            return self._has_number(word)
        return word in self._words or (_is_ordinary(word) and word.lower() in self._folded)

    def _has_number(self, number: str) -> bool:
        plain = number.replace(",", "")
        if has_word(self._text, number) or has_word(self._text.replace(",", ""), plain):
            return True
        return _COUNTS.get(plain.lstrip("0") or plain[:1]) in self._folded


def _is_ordinary(word: str) -> bool:
    """Return whether a word may be capitalised differently, as in a button's label."""
    return word.isalpha() and (word.islower() or word.istitle() or word.isupper())


def _named(step: str) -> Iterator[str]:
    """Yield the names in a step, in code and in prose."""
    for piece in codes(step):
        yield from _TOKEN.findall(_PLACEHOLDER.sub(" ", _PROSE_STRING.sub(" ", piece)))
    for start, stop in outside_code(step):
        yield from _IN_PROSE.findall(step[start:stop])


def without_stand_ins(step: str) -> str:
    """Return a step without placeholder values in its calls, such as `customer=the_name`.

    The names of tools and arguments are kept, and so are literal values: `search(limit=5)`.
    """

    def emptied(match: re.Match[str]) -> str:
        value = match[0][len(match["name"]) :]
        return match["name"] if not match["quote"] or _VARIABLE.fullmatch(value) else match[0]

    pieces: list[str] = []
    end = 0
    for start, stop in code(step):
        pieces += [step[end:start], _STAND_IN.sub(emptied, step[start:stop])]
        end = stop
    return "".join([*pieces, step[end:]])
