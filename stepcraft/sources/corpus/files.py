"""List the text files of a corpus: named files, and folders with everything in them."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

from stepcraft.errors import BadInput
from stepcraft.text.clean import clean

_SKIPPED_FOLDERS = {"node_modules", "__pycache__", "site-packages"}
_NO_TEXT = (
    ".7z", ".a", ".avi", ".avif", ".bin", ".bmp", ".bz2", ".class", ".db", ".dll", ".dmg", ".doc", ".docx",
    ".dylib", ".eot", ".exe", ".flac", ".gif", ".gz", ".ico", ".icns", ".iso", ".jar", ".jpeg", ".jpg",
    ".lib", ".lock", ".m4a", ".mkv", ".mov", ".mp3", ".mp4", ".mpeg", ".npy", ".npz", ".o", ".obj", ".ogg",
    ".otf", ".parquet", ".pickle", ".pkl", ".png", ".ppt", ".pptx", ".psd", ".pyc", ".pyd", ".rar", ".rlib",
    ".so", ".sqlite", ".sqlite3", ".tar", ".tgz", ".tif", ".tiff", ".ttf", ".wasm", ".wav", ".webm",
    ".webp", ".woff", ".woff2", ".xls", ".xlsx", ".xz", ".zip", ".zst",
)  # fmt: skip
"""Suffixes of files without text, or without text that a person wrote, which are left out of folders."""


@dataclass(frozen=True)
class Root:
    """A file or folder as it was named, and its resolved path."""

    given: str
    real: Path


@dataclass(frozen=True)
class File:
    """A file with its size and time, by which a change is noticed."""

    path: str
    size: int
    mtime: int
    """In nanoseconds."""


def roots_of(paths: Iterable[str | os.PathLike[str]]) -> list[Root]:
    """Resolve the paths of a corpus, `~` included.

    Raises:
        BadInput: no path is given, or there is no such file or folder.
    """
    roots: dict[Path, Root] = {}
    for given in paths:
        path = Path(given).expanduser()
        if not path.is_dir() and not path.is_file():
            raise BadInput(f"there is no file or folder {os.fspath(given)}; check the name")
        roots.setdefault(path.resolve(), Root(str(path), path.resolve()))
    if not roots:
        raise BadInput("a corpus needs a file or folder; write corpus:docs or corpus:docs,notes.md")
    return list(roots.values())


def shown(path: str, roots: Sequence[Root]) -> str:
    """A path of a file below the path that the corpus was named with, as in sources and messages."""
    file = Path(path)
    root = next(root for root in roots if file.is_relative_to(root.real))
    return clean(str(Path(root.given, file.relative_to(root.real))))


def files_of(roots: Sequence[Root], problems: dict[str, str]) -> Iterator[File]:
    """Yield each file once, in the order of the names. Files that are named themselves are always included.

    Left out of folders are hidden files, installed packages (node_modules, virtual environments) and files whose
    suffixes stand for other content than text. Links to folders are followed, but no folder is entered twice.

    Args:
        roots: the files and folders.
        problems: takes the reason why a folder cannot be listed, by its path.
    """
    given: set[str] = set()
    entered: set[tuple[int, int]] = set()
    for root in roots:
        if root.real.is_file():
            given.add(str(root.real))
            yield _file(str(root.real), root.real.stat())
    for root in roots:
        if root.real.is_dir():
            yield from (file for file in _inside(str(root.real), entered, problems) if file.path not in given)


def _inside(folder: str, entered: set[tuple[int, int]], problems: dict[str, str]) -> Iterator[File]:
    """The files of a folder and of the folders in it."""
    waiting = [folder]
    while waiting:
        current = waiting.pop()
        try:
            found = os.stat(current)  # noqa: PTH116 - strings all the way: a tree may have very many files
            with os.scandir(current) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            problems[current] = f"it cannot be read: {error.strerror}"
            continue
        if (found.st_dev, found.st_ino) in entered or any(entry.name == "pyvenv.cfg" for entry in entries):
            continue
        entered.add((found.st_dev, found.st_ino))
        seen = [entry for entry in entries if not entry.name.startswith(".")]
        folders = [entry for entry in seen if _is_folder(entry)]
        yield from filter(None, map(_text_file, seen))
        waiting += [entry.path for entry in reversed(folders) if entry.name not in _SKIPPED_FOLDERS]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _text_file(entry: os.DirEntry[str]) -> File | None:
    if entry.name.lower().endswith(_NO_TEXT):
        return None
    try:
        found = entry.stat()
    except OSError:
        return None
    return _file(entry.path, found) if S_ISREG(found.st_mode) else None


def _file(path: str, found: os.stat_result) -> File:
    return File(path, found.st_size, found.st_mtime_ns)
