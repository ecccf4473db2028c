"""List the text files in a corpus: named files, and folders with everything in them."""

import os
import re
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple

from stepcraft.errors import BadInput
from stepcraft.files import named_path
from stepcraft.sources.corpus.content import OFFICE
from stepcraft.sources.corpus.remote import copy_files, folder_of, is_url, url_below
from stepcraft.text.clean import clean

_PACKAGES = {"node_modules", "__pycache__", "site-packages"}
_LEFT_OUT = re.compile(
    r"""~\$.* | .*\.(
    7z | a | avi | avif | bin | bmp | bz2 | class | db | dll | dmg | dylib | eot | exe | flac | gif
    | gz | icns | ico | iso | jar | jpe?g | lib | lock | m4a | mkv | mov | mp[34] | mpeg | np[yz]
    | map | o | obj | ogg | otf | parquet | pickle | pkl | png | psd | py[cd] | rar | rlib | so
    | sqlite3? | tar | tgz | tiff? | ttf | wasm | wav | webm | webp | woff2? | xz | zip | zst
    ) | searchindex.*\.js(on)? | search_index\.json | print\.html | .*[.-]min\.(js|css)""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
"""Files without text, and files that repeat the pages of a built site: its search index and the
page for printing the whole site.
"""


Roots = dict[Path, str]
"""Maps the resolved path of each file or folder to its path or URL as given."""


class File(NamedTuple):
    """A file, with the size and time used to detect changes."""

    path: str
    size: int
    changed: int
    """The time of the last change, including permissions, in nanoseconds."""


def roots_of(paths: Iterable[str | os.PathLike[str]]) -> Roots:
    """Resolve the paths of a corpus, expanding `~`; a URL resolves to the folder with its copies.

    Raises:
        BadInput: There are no paths, one is not valid, or there is no such file or folder.
    """
    roots: Roots = {}
    for path_or_url in paths:
        name = os.fspath(path_or_url)
        if is_url(name):
            roots.setdefault(folder_of(name), name)
            continue
        path = named_path(name)
        if not (path.is_file() or path.is_dir()):
            raise BadInput(f"there is no file or folder {name}; check the name")
        roots.setdefault(path.resolve(), str(path))
    if not roots:
        raise BadInput("a corpus needs a file or folder; write corpus:docs or corpus:docs,notes.md")
    return roots


def shown_path(path: str, roots: Roots, *, escape: bool = False) -> str:
    """Return a file's path as shown in sources, starting with the path given for the corpus.

    Bytes of a name that are not UTF-8 become U+FFFD, or escapes if different names must differ.
    """
    for root, name in roots.items():
        if Path(path).is_relative_to(root):
            below = Path(path).relative_to(root)
            path = url_below(name, below.as_posix()) if is_url(name) else str(Path(name, below))
            break
    return clean(path.encode(errors="backslashreplace").decode() if escape else path)


def above(path: str) -> list[Path]:
    """Return a path and the folders that contain it, from the inside out."""
    return [Path(path), *Path(path).parents]


class Files(NamedTuple):
    """The files in a corpus, and why others are not among them."""

    files: list[File]
    problems: dict[str, str]
    """By path, the reason why a folder cannot be listed, a file cannot be copied, a link is not
    followed or leads nowhere, or an Office file is not read.
    """
    left_out: dict[str, str]
    """The reasons why files or folders are left out, by path."""
    notes: dict[str, str]
    """What copies of remote files lack, by path."""


def files_of(roots: Roots, *, copied_s: float = 0) -> Files:
    """List each file once: files given by name first, then those in folders, sorted by name.

    Hidden files, installed packages (node_modules, virtual environments) and files without text are
    skipped in folders. No folder is entered twice.

    Args:
        roots: The files and folders.
        copied_s: The minimum number of seconds before this process copies remote files again.

    Raises:
        BadInput: A package that a URL needs is missing.
    """
    listing = Files([], {}, {}, {})
    for root, name in roots.items():
        if is_url(name):
            copied = copy_files(name, root, _of_path, copied_s)
            listing.problems.update(copied.problems)
            listing.notes.update(copied.notes)
    for path in dict.fromkeys(_paths(roots, listing)):
        reader = "openpyxl" if path.lower().endswith(".xlsx") else "markitdown"
        if path.lower().endswith(OFFICE) and not find_spec(reader):
            listing.problems[path] = (
                'Office files are not read without pip install "stepcraft[office]"'
            )
            continue
        try:
            status = os.stat(path)
        except FileNotFoundError:
            if os.path.islink(path):  # otherwise it has just been deleted
                listing.problems[path] = "it is a link to a file that does not exist"
        except OSError:  # reading it will report the reason
            listing.files.append(File(path, 0, 0))
        else:
            if S_ISREG(status.st_mode):
                changed = max(status.st_mtime_ns, status.st_ctime_ns)
                listing.files.append(File(path, status.st_size, changed))
    return listing


def empty_folders(files: Iterable[File], roots: Roots) -> dict[str, str]:
    """Map each named folder with none of the files to the reason why its earlier files stay.

    Another folder may have been mounted in it.
    """
    parents = {Path(file.path).parent for file in files}
    folders = {*parents, *(folder.resolve() for folder in parents)}
    return {
        str(root): "there is no file in it, so its earlier files stay; leave it out to delete them"
        for root, name in roots.items()
        if not (is_url(name) or root.is_file() or any(it.is_relative_to(root) for it in folders))
    }


def _paths(roots: Roots, listing: Files) -> Iterator[str]:
    def unlisted(error: OSError) -> None:
        listing.problems[error.filename] = f"it cannot be read: {error.strerror}"

    def stays(path: str, reason: str) -> bool:
        if reason:
            listing.left_out[path] = reason
        elif os.path.islink(path) and not any(
            map(Path(os.path.realpath(path)).is_relative_to, roots)
        ):
            listing.problems[path] = "it is a link out of the corpus; name its target too"
        else:
            return True
        return False

    yield from (str(root) for root in roots if root.is_file())
    entered: set[str] = set()
    for root in filter(Path.is_dir, roots):
        for folder, folders, names in os.walk(root, followlinks=True, onerror=unlisted):
            place = os.path.realpath(folder)
            reason = _INSTALLED if "pyvenv.cfg" in names else ""
            if place in entered or not stays(folder, reason):
                folders.clear()
                continue
            entered.add(place)
            folders[:] = [
                name for name in sorted(folders) if stays(f"{folder}/{name}", _of_folder(name))
            ]
            for name in sorted(names):
                if stays(f"{folder}/{name}", _of_file(name)):
                    yield f"{folder}/{name}"


_HIDDEN, _INSTALLED = "it is hidden", "it holds installed packages"


def _of_path(path: str) -> str:
    """Return why a path below a root is left out, or "" if it is not."""
    *folders, name = path.split("/")
    return next(filter(None, [*map(_of_folder, folders), _of_file(name)]), "")


def _of_folder(name: str) -> str:
    """Return why a folder is left out, or "" if it is not."""
    if name.startswith("."):
        return _HIDDEN
    return _INSTALLED if name in _PACKAGES else ""


def _of_file(name: str) -> str:
    """Return why a file is left out, or "" if it is not."""
    if name.startswith("."):
        return _HIDDEN
    return "its name says that it holds no text of its own" if _LEFT_OUT.fullmatch(name) else ""
