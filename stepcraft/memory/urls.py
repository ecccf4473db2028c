"""What the URL of a memory speaks of."""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from stepcraft.errors import BadInput

KNOWN = "a .db, .jsonl, .json or .csv file, weaviate://host:8080/Collection, or store: for LangGraph's store"

_TEXT_FILES = {".jsonl", ".ndjson", ".json", ".csv"}
_DATABASES = {".db", ".sqlite", ".sqlite3"}


def scheme_of(where: str) -> str:
    """What stands before the colon; "" for a path, a drive letter included."""
    scheme, colon, _ = where.partition(":")
    return scheme.lower() if colon and re.fullmatch(r"[A-Za-z][\w+.-]+", scheme) else ""


def path_of(where: str) -> Path:
    """The file that a URL without scheme, or with file://, speaks of.

    Raises:
        BadInput: the scheme or the kind of file is not known.
    """
    scheme = scheme_of(where)
    if scheme not in ("", "file"):
        raise BadInput(f"no memory goes by {scheme}: in {where!r}; name {KNOWN}")
    path = Path(unquote(urlsplit(where).path) if scheme else where).expanduser()
    if path.suffix.lower() not in _TEXT_FILES | _DATABASES and not path.is_dir():
        raise BadInput(f"{where!r} does not say what kind of memory it is; name {KNOWN}")
    return path


def is_text(path: Path) -> bool:
    """Whether the file is text that is read into memory, and no database."""
    return path.suffix.lower() in _TEXT_FILES


def fingerprint(where: str) -> object:
    """What changes when a file has to be opened anew: of a database which file it is, of a text also its content."""
    if not where or scheme_of(where) not in ("", "file"):
        return None
    path = path_of(where)
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino, *((found.st_mtime_ns, found.st_size) if is_text(path) else ()))
