"""Detect the encoding of texts: by byte-order mark, as UTF-8, or as the most likely one."""

import codecs
from typing import NamedTuple

from charset_normalizer import from_bytes

_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # it begins like that of UTF-16
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
}
"""What texts that declare an encoding are really written in (WHATWG's Encoding Standard)."""
_LIKELY = [
    *("cp1252", "cp1250", "cp1251", "koi8_r", "iso8859_2", "cp1253", "cp1254", "cp1255", "cp1256"),
    *("cp932", "euc_jp", "gb18030", "big5", "euc_kr"),
]
"""Encodings of non-Unicode texts, most common first."""
_SAMPLE = 100_000
"""The number of bytes examined to detect the encoding."""
_SHORTEST = 8
"""The minimum number of bytes that can be taken for UTF-16 without a byte-order mark."""


class Binary(ValueError):
    """The bytes are not text."""


class Encoding(NamedTuple):
    """How to decode bytes as text."""

    name: str
    note: str = ""
    """A clause for readers about the encoding, or "" if it is certain."""


def encoding_of(data: bytes, declared: str = "") -> Encoding:
    """Return the encoding of a text, given the text or its first lines.

    Args:
        data: The bytes.
        declared: The encoding that the text itself declares, if any.

    Raises:
        Binary: It is not text.
    """
    for mark, name in _MARKS.items():
        if data.startswith(mark):
            return Encoding(name)
    if b"\0" in data[:8192]:
        return Encoding(_wide(data[:8192]), "it was taken for UTF-16, without a byte-order mark")
    if not (strays := _strays(data)):
        return Encoding("utf-8")
    if _characters(data) >= strays:
        return Encoding("utf-8", f"{strays:,} bytes of it are not UTF-8")
    for name in filter(None, [*_meant(declared), _likeliest(data), "cp1252"]):
        is_declared = name in _meant(declared)
        try:
            codecs.decode(b"x", name)
            data.decode(name, "strict" if is_declared else "replace")
        except (LookupError, ValueError):
            continue
        return Encoding(name, "" if is_declared else f"it is not UTF-8; it was read as {name}")
    return Encoding("latin-1", "it is not UTF-8; it was read as latin-1")


def _meant(declared: str) -> list[str]:
    """Return the encodings that a declaration can stand for, most likely first."""
    try:
        name = codecs.lookup(declared).name
    except (LookupError, ValueError):
        return []
    return [*filter(None, [_LABELS.get(name)]), name]


def decoded(data: bytes, declared: str = "") -> tuple[str, str]:
    """Return a text, and a note for readers about its encoding; see `encoding_of`.

    Raises:
        Binary: It is not text.
    """
    encoding = encoding_of(data, declared)
    return data.decode(encoding.name, "replace"), encoding.note


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
        Binary: The zero bytes do not indicate UTF-16.
    """
    even, odd = data[::2].count(0), data[1::2].count(0)
    if len(data) >= _SHORTEST and odd > len(data) // 5 and not even:
        return "utf-16-le"
    if len(data) >= _SHORTEST and even > len(data) // 5 and not odd:
        return "utf-16-be"
    raise Binary("it is binary")


def _likeliest(data: bytes) -> str:
    """Return the most likely encoding of a text, or "" if none is plausible."""
    lines = [line for line in data.splitlines() if not line.isascii()]
    sample = b"\n".join(lines)[:_SAMPLE]
    candidates = [*from_bytes(sample, cp_isolation=_LIKELY)]
    best = [
        each.encoding
        for each in candidates
        if (each.chaos, each.coherence) == (candidates[0].chaos, candidates[0].coherence)
    ]
    return min(best, key=_LIKELY.index, default="")
