"""Detect the encoding of text from its byte-order mark, its declaration or its bytes."""

import codecs
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from charset_normalizer import from_bytes

from stepcraft.errors import SourceFailure

_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark is a prefix of it
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_LABELS = {
    **dict.fromkeys(("ascii", "iso8859-1"), "cp1252"),
    "iso8859-9": "cp1254",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    **dict.fromkeys(("gb2312", "gbk"), "gb18030"),
    **dict.fromkeys(("iso8859-11", "tis-620"), "cp874"),
}
"""The encodings that declared labels really stand for (WHATWG's Encoding Standard)."""
_TEXT = re.compile(
    r"ascii|utf-(?:8|16|16-[bl]e)|iso8859-\d+|tis-620|cp\d+|koi8-\w|mac-\w+|gb\w+|big5\w*"
    r"|(?:shift_jis|euc|iso2022)_?\w*"
)
"""The encodings accepted in a declaration; some of Python's others are slow on hostile input."""
_DECLARATION = re.compile(
    rb"""<(?:\?xml\b[^>]*?\sencoding|meta\b[^>]*?\bcharset)\s*=\s*["']?\s*([\w.:-]+)""",
    re.IGNORECASE,
)
_LIKELY = [
    *("cp1252", "cp1250", "cp1251", "koi8_r", "iso8859_2", "cp1253", "cp1254", "cp1255", "cp1256"),
    *("cp932", "euc_jp", "gb18030", "big5", "euc_kr"),
]
"""Encodings of non-Unicode texts, most common first."""
_SAMPLE = 100_000
"""The number of bytes examined to detect the encoding."""
_MOST_WRONG = 0.1
"""The maximum share of bytes, of all that are not ASCII, that the declared encoding may lack."""
_SHORTEST = 8
"""The minimum number of bytes that can be taken for UTF-16 without a byte-order mark."""
_CODING = re.compile(
    rb"(?:[^\n]{0,200}\n)?[ \t]*(?:#|//|;|%|--|/\*|<!--)[^\n]{0,200}?coding[:=][ \t]*([\w.-]+)"
)
_ESCAPES = {b"\x1b$B": "iso2022_jp", b"\x1b$@": "iso2022_jp", b"\x1b$)C": "iso2022_kr"}
"""The escape sequences that switch mail to Japanese or Korean."""


class Unreadable(SourceFailure):
    """A document, or part of it, cannot be read. The message is a clause: "it is binary"."""


class NotOpened(Unreadable):
    """The operating system cannot open or read a file, perhaps only temporarily."""


class Encoding(NamedTuple):
    """How to decode bytes as text."""

    name: str
    note: str = ""
    """A remark for users about the encoding, or "" if the encoding is certain."""


def encoding_of(data: bytes, declared: str = "") -> Encoding:
    """Return the encoding of a text, given the text or its first lines.

    Args:
        data: The bytes.
        declared: The encoding that the text itself declares, if any.

    Raises:
        Unreadable: It is not text.
    """
    for mark, name in _MARKS.items():
        if data.startswith(mark):
            strays = _strays(data) if name == "utf-8-sig" else 0
            return Encoding(name, f"{strays:,} bytes of it are not UTF-8" if strays else "")
    meant = _meant(declared or _named(data))
    has_zeros = b"\0" in data[:8192]
    for name in meant:
        if (has_zeros and "utf-16" in name) or (b"\x1b" in data and "iso2022" in name):
            return Encoding(name)
    if has_zeros:
        return Encoding(_wide(data[:8192]), "it was taken for UTF-16, without a byte-order mark")
    if not (strays := _strays(data)) or _characters(data) >= strays:
        return Encoding("utf-8", f"{strays:,} bytes of it are not UTF-8" if strays else "")
    if declared_one := _fitting(data, [name for name in meant if "utf-16" not in name]):
        return declared_one
    name = _likeliest(data) or "cp1252"
    return Encoding(name, f"it is not UTF-8; it was read as {name}")


def _fitting(data: bytes, names: Sequence[str]) -> Encoding | None:
    """Return the first encoding for all bytes, or else for all but a few of those not ASCII."""
    for name in names:
        with suppress(ValueError):
            data.decode(name, "replace" if name == "cp1252" else "strict")
            return Encoding(name)
    for name in names:
        text = data.decode(name, "replace")
        wrong = text.count("\ufffd")
        # Text in EUC-JP looks like half-width katakana in Shift_JIS.
        odd = wrong + sum("\uff61" <= character <= "\uff9f" for character in text)
        if odd <= _MOST_WRONG * sum(character > "\x7f" for character in text):
            return Encoding(name, f"{wrong:,} bytes of it are not {name}")
    return None


def _named(data: bytes) -> str:
    """Return the encoding named in the first two lines (PEP 263) or by an escape sequence."""
    if coding := _CODING.match(data):
        return coding[1].decode()
    return next((name for sign, name in _ESCAPES.items() if sign in data), "")


def _meant(declared: str) -> list[str]:
    """Return the encodings that a declaration can stand for, most likely first."""
    label = declared.lower().removeprefix("x-").replace("windows-31j", "cp932")
    try:
        name = codecs.lookup(label.replace("windows-", "cp")).name
    except (LookupError, ValueError):
        return []
    return [] if not _TEXT.fullmatch(name) else [*filter(None, [_LABELS.get(name)]), name]


def decoded(data: bytes, declared: str = "") -> tuple[str, str]:
    """Return the decoded text and a note for users about its encoding; see `encoding_of`.

    Raises:
        Unreadable: It is not text.
    """
    encoding = encoding_of(data, declared)
    return data.decode(encoding.name, "replace"), encoding.note


def decoded_markup(data: bytes, declared: str = "") -> tuple[str, str]:
    """Decode HTML or XML as `decoded` does, using its own declaration if `declared` is ""."""
    match = _DECLARATION.search(data[:4096])
    declared = declared or (match[1].decode("latin-1") if match else "")
    try:
        return decoded(data, declared)
    except Unreadable:  # stray zeros, which browsers ignore
        if data.count(b"\0") > len(data) // 10:
            raise
        return decoded(data.replace(b"\0", b""), declared)


def _strays(data: bytes) -> int:
    """Return the number of bytes that are not valid UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        text = data.decode(errors="surrogateescape")
        return sum("\udc80" <= character <= "\udcff" for character in text)
    return 0


def _characters(data: bytes) -> int:
    """Return the number of non-ASCII characters in the bytes that are valid UTF-8.

    Bytes in other encodings rarely form such a character by chance.
    """
    return sum(character > "\x7f" for character in data.decode(errors="ignore"))


def _wide(data: bytes) -> str:
    """Return the UTF-16 variant, judged by which byte of each pair is zero in alphabetic text.

    Raises:
        Unreadable: The zero bytes do not indicate UTF-16.
    """
    even, odd = data[::2].count(0), data[1::2].count(0)
    if len(data) >= _SHORTEST and odd > len(data) // 5 and not even:
        return "utf-16-le"
    if len(data) >= _SHORTEST and even > len(data) // 5 and not odd:
        return "utf-16-be"
    raise Unreadable("it is binary")


def _likeliest(data: bytes) -> str:
    """Return the most likely encoding of a text, or "" if none is plausible."""
    lines = [line for line in data.splitlines() if not line.isascii()]
    sample = b"\n".join(lines)
    if len(sample) > _SAMPLE:  # cut after a whole line, and so after a whole character
        sample = sample[:_SAMPLE].rpartition(b"\n")[0] or sample[:_SAMPLE]
    candidates = [*from_bytes(sample, cp_isolation=_LIKELY)]
    # At some text lengths, the right encoding looks chaotic, but the language is recognised.
    fits = [each.coherence - each.chaos for each in candidates]
    best = [
        name
        for each, fit in zip(candidates, fits, strict=True)
        if fit == max(fits)
        for name in each.could_be_from_charset  # which decode the sample as the same text
    ]
    return min(best, key=_LIKELY.index, default="")
