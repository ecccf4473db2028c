"""Calls of tools in the steps of a procedure, and values in them that stand for others."""

import re

from stepcraft.text.markdown import code

_STAND_IN = re.compile(
    r"(?P<name>[\"']?(?<!\w)[A-Za-z_]\w*+[\"']?\s*+[=:]\s*+)"
    r"(?P<quote>[\"']?)(?!(?:True|False|None|true|false|null)\b)"
    r"(?:[A-Za-z_]\w*+|\$\{?\w++\}?|\{\{?[^{}\n]{1,80}\}?\})(?P=quote)"
    r"(?=\s*+(?:[,)}\]]|\Z)|[ \t]*+$)",
    re.MULTILINE,
)
"""An argument whose value is a bare name or in braces."""
_VARIABLE = re.compile(
    r"[\"']?(?:[a-z]+(?:_[a-z0-9]+)+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*|\$.*|\{.*)[\"']?", re.DOTALL
)
"""A value in quotes that counts all the same, because it is written like a variable."""


def without_stand_ins(step: str) -> str:
    """Return a step without the values in its calls that stand for others: `customer=the_name`.

    The names of tools and arguments stay, and values that are written out: `search(limit=5)`.
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
