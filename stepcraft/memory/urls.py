"""URLs of memories."""

import re
from pathlib import Path
from urllib.parse import unquote

from stepcraft.errors import BadInput
from stepcraft.files import named_path
from stepcraft.secrets import excerpt

POSTGRES = "store+postgresql"
"""The scheme of a memory in Postgres."""

_KNOWN = (
    "a .db, .jsonl or .csv file, weaviate://host:8080/Collection, "
    f"{POSTGRES}://host/database/name, or store: for LangGraph's store"
)
_TEXT_FILES = {".jsonl", ".csv"}
_DATABASES = {".db", ".sqlite", ".sqlite3"}


def scheme_of(url: str) -> str:
    """Return a URL's scheme in lower case, or "" for a path, even one with a drive letter."""
    scheme, colon, _ = url.partition(":")
    return scheme.lower() if colon and re.fullmatch(r"[A-Za-z][\w+.-]+", scheme) else ""


def path_of(url: str) -> Path:
    """Return the path from a path string or a file:// URL.

    Raises:
        BadInput: The scheme or the kind of file is unknown, or the path is not valid for a file.
    """
    scheme = scheme_of(url)
    path = named_path(unquote(url.partition("://")[2]) if scheme == "file" else url)
    if scheme not in ("", "file") or path.suffix.lower() not in _TEXT_FILES | _DATABASES:
        raise BadInput(f"{excerpt(url)} does not say what kind of memory it is; name {_KNOWN}")
    return path


def is_text(path: Path) -> bool:
    """Return whether a file is a text file, which is read into memory, rather than a database."""
    return path.suffix.lower() in _TEXT_FILES


def fingerprint(url: str) -> object:
    """Return a value that changes whenever a file must be opened again.

    That happens if the path leads to another file or, for a text file, if its content changes.
    """
    if not url or scheme_of(url) not in ("", "file"):
        return None
    path = path_of(url)
    try:
        status = path.stat()
    except OSError:
        return None
    content = (status.st_mtime_ns, status.st_size) if is_text(path) else ()
    return (status.st_dev, status.st_ino, *content)
