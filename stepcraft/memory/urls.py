"""URLs of memories."""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from stepcraft.errors import BadInput
from stepcraft.files import named_path
from stepcraft.secrets import excerpt

KNOWN = (
    "a .db, .jsonl, .json or .csv file, weaviate://host:8080/Collection, store+postgresql://host/database/name, "
    "or store: for LangGraph's store"
)

REMOTE_STORES = frozenset({"store+http", "store+https"})
"""The schemes of the store of a LangGraph server."""

_TEXT_FILES = {".jsonl", ".ndjson", ".json", ".csv"}
_DATABASES = {".db", ".sqlite", ".sqlite3"}


def scheme_of(where: str) -> str:
    """The scheme of a URL in lower case; "" for a path, also for one with a drive letter."""
    scheme, colon, _ = where.partition(":")
    return scheme.lower() if colon and re.fullmatch(r"[A-Za-z][\w+.-]+", scheme) else ""


def path_of(where: str) -> Path:
    """The file of a path or a file:// URL.

    Raises:
        BadInput: the scheme or the kind of file is unknown, or no file can have this path.
    """
    path = named_path(_file_path(where))
    if path.suffix.lower() not in _TEXT_FILES | _DATABASES and not path.is_dir():
        raise BadInput(f"{excerpt(where)} does not say what kind of memory it is; name {KNOWN}")
    return path


def _file_path(where: str) -> Path:
    scheme = scheme_of(where)
    if scheme not in ("", "file"):
        raise BadInput(f"no memory goes by {scheme[:100]}: in {where[:100]!r}; name {KNOWN}")
    try:
        return Path(unquote(urlsplit(where).path) if scheme else where)
    except ValueError as error:
        raise BadInput(f"{where[:100]!r} is no URL: {error}") from error


def is_text(path: Path) -> bool:
    """Whether a file is a text file, which is read into memory, and not a database."""
    return path.suffix.lower() in _TEXT_FILES


def fingerprint(where: str) -> object:
    """A value that changes when a file must be opened anew: another file or, of a text file, other content."""
    if not where or scheme_of(where) not in ("", "file"):
        return None
    path = path_of(where)
    try:
        found = path.stat()
    except OSError:
        return None
    return (
        found.st_dev,
        found.st_ino,
        *((found.st_mtime_ns, found.st_size) if is_text(path) else ()),
    )
