"""The marks around what the writer of a draft doubts (AAG §3.2)."""

import re

from stepcraft.text.clean import clean
from stepcraft.text.markdown import replaced

_MARKER = re.compile(
    r"(?<![A-Za-z0-9_)\]\"'])\[\[[ \t]*((?:(?!\[\[).)*?)[ \t]*\]\](?!\])", re.DOTALL
)


def without_markers(text: str) -> str:
    """Return the text, cleaned, without the `[[` and `]]` around what its writer doubts (AAG §3.2).

    Brackets of code spans and blocks stay, and `[[` that continues a name (`table[["a", "b"]]`).
    """
    return replaced(clean(text), _MARKER, lambda marked: marked[1])
