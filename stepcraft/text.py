"""Pure functions on text: cleaning, lists of steps, edits, tokens."""

import re
import unicodedata

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, save tab and newline
    "\u202a-\u202e\u2066-\u2069"  # overrides of the writing direction: what is shown is not what is read
    "\ufeff]"  # byte order mark
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064]")


def clean(text: str) -> str:
    """The text in NFC, with unix newlines, without control characters; lone surrogates become U+FFFD.

    Marks that right-to-left scripts need are kept; overrides of the direction are dropped.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _UNSAFE.sub("", _SURROGATE.sub("\ufffd", text))
    return unicodedata.normalize("NFC", text)


def normalised(text: str) -> str:
    """The text as it counts for identity: clean, whitespace folded, invisible marks dropped."""
    return " ".join(_INVISIBLE.sub("", clean(text)).split())
