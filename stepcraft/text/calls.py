"""Calls of tools in the steps of a procedure: their exact names, and values that stand for others."""

import re

from stepcraft.text.markdown import outside_code

_STAND_IN = re.compile(
    r"(?P<name>[\"']?(?<!\w)[A-Za-z_]\w*+[\"']?\s*+[=:]\s*+)"
    r"(?P<quote>[\"']?)(?!(?:True|False|None|true|false|null)\b)(?:[A-Za-z_]\w*+|\$\{?\w++\}?|\{\{?[^{}\n]{1,80}\}?\})(?P=quote)"
    r"(?=\s*+(?:[,)}\]]|\Z)|[ \t]*+$)",
    re.MULTILINE,
)
"""An argument whose value is a bare name or in braces; one in quotes counts where it is written like a variable."""
_VARIABLE = re.compile(
    r"[\"']?(?:[a-z]+(?:_[a-z0-9]+)+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*|\$.*|\{.*)[\"']?", re.DOTALL
)


def without_stand_ins(step: str) -> str:
    """A step without the values in its calls that stand for others, such as `customer=customer_name`.

    The names of tools and arguments stay, and so do values that are written out: `search(limit=5, status="open")`.
    """

    def emptied(match: re.Match[str]) -> str:
        value = match[0][len(match["name"]) :]
        return match["name"] if not match["quote"] or _VARIABLE.fullmatch(value) else match[0]

    kept: list[str] = []
    end = 0
    for start, stop in [*outside_code(step), (len(step), len(step))]:
        code = step[end:start]
        kept += [
            _STAND_IN.sub(emptied, code) if "(" in code or "{" in code else code,
            step[start:stop],
        ]
        end = stop
    return "".join(kept)
