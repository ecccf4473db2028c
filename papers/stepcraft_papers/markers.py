"""The marks around passages that the writer of a draft is unsure about (AAG §3.2)."""

import re

from stepcraft.text.clean import clean
from stepcraft.text.markdown import replaced

_MARKER = re.compile(
    r"(?<![A-Za-z0-9_)\]\"'])\[\[[ \t]*((?:(?!\[\[).)*?)[ \t]*\]\](?!\])", re.DOTALL
)


def without_markers(text: str) -> str:
    """Return the cleaned text without the `[[` and `]]` that mark doubtful parts (AAG §3.2).

    Brackets in code spans and code blocks are kept, as is a `[[` that directly follows a name
    (`table[["a", "b"]]`).
    """
    return replaced(clean(text), _MARKER, lambda marked: marked[1])
