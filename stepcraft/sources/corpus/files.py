"""List the text files of a corpus: named files, and folders with everything in them."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

from stepcraft.errors import BadInput
from stepcraft.files import irregular, named_path
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
        BadInput: no path is given, one cannot be a path, or there is no such file or folder.
    """
    roots: dict[Path, Root] = {}
    for given in paths:
        path = named_path(given)
        if not path.is_dir() and not path.is_file():
            what = irregular(path.stat().st_mode) if path.exists() else ""
            raise BadInput(
                f"{os.fspath(given)} is {what}; name a file or folder"
                if what
                else f"there is no file or folder {os.fspath(given)}; check the name"
            )
        roots.setdefault(path.resolve(), Root(str(path), path.resolve()))
    if not roots:
        raise BadInput("a corpus needs a file or folder; write corpus:docs or corpus:docs,notes.md")
    return list(roots.values())


def shown(path: str, roots: Sequence[Root]) -> str:
    """A path of a file below the path that the corpus was named with, as in sources and messages; ValueError for another."""
    file = Path(path)
    root = next((root for root in roots if file.is_relative_to(root.real)), None)
    if root is None:
        raise ValueError(path)
    return clean(str(Path(root.given, file.relative_to(root.real))))


def files_of(
    roots: Sequence[Root], problems: dict[str, str], *, follow_symlinks: bool = False
) -> Iterator[File]:
    """Yield each file once, in the order of the names. Files that are named themselves are always included.

    Left out of folders are hidden files, installed packages (node_modules, virtual environments) and files whose
    suffixes stand for other content than text. No folder is entered twice.

    Args:
        roots: the files and folders.
        problems: takes the reason why a folder cannot be listed, or a link is not followed, by its path.
        follow_symlinks: whether links that lead out of all roots are followed; those within always are.
    """
    given: set[str] = set()
    for root in roots:
        if root.real.is_file():
            given.add(str(root.real))
            yield _file(str(root.real), root.real.stat())
    tree = _Tree(roots, problems, follow_symlinks=follow_symlinks)
    for root in roots:
        if root.real.is_dir():
            yield from (file for file in tree.files(str(root.real)) if file.path not in given)


class _Tree:
    """The folders of a corpus, as far as they were entered."""

    def __init__(
        self, roots: Sequence[Root], problems: dict[str, str], *, follow_symlinks: bool
    ) -> None:
        self._roots = roots
        self._problems = problems
        self._follows = follow_symlinks
        self._entered: set[tuple[int, int]] = set()

    def files(self, folder: str) -> Iterator[File]:
        """The files of a folder and of the folders in it."""
        waiting = [folder]
        while waiting:
            current = waiting.pop()
            try:
                found = os.stat(current)  # noqa: PTH116 - strings all the way: a tree may have very many files
                with os.scandir(current) as listing:
                    entries = sorted(listing, key=lambda entry: entry.name)
            except OSError as error:
                self._problems[current] = f"it cannot be read: {error.strerror}"
                continue
            known = (found.st_dev, found.st_ino) in self._entered
            if known or any(entry.name == "pyvenv.cfg" for entry in entries):
                continue
            self._entered.add((found.st_dev, found.st_ino))
            seen = [entry for entry in entries if not entry.name.startswith(".")]
            folders = [
                entry for entry in seen if _is_folder(entry) and entry.name not in _SKIPPED_FOLDERS
            ]
            texts = [(entry, file) for entry in seen if (file := _text_file(entry))]
            yield from (file for entry, file in texts if self._stays(entry))
            waiting += [entry.path for entry in reversed(folders) if self._stays(entry)]

    def _stays(self, entry: os.DirEntry[str]) -> bool:
        """Whether an entry is no link out of the corpus, or such links are followed."""
        if self._follows or not entry.is_symlink():
            return True
        target = Path(os.path.realpath(entry.path))
        if any(
            target == root.real or (root.real.is_dir() and target.is_relative_to(root.real))
            for root in self._roots
        ):
            return True
        self._problems[entry.path] = (
            "it is a link out of the corpus, which open_corpus(follow_symlinks=True) follows"
        )
        return False


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
