"""Check paths and files given by callers before opening them, and keep files in a cache."""

import errno
import os
from io import BufferedReader
from pathlib import Path
from stat import S_ISBLK, S_ISCHR, S_ISFIFO, S_ISREG, S_ISSOCK

from platformdirs import user_cache_path

from stepcraft.errors import BadInput

_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NONBLOCK", 0)
)
"""Flags for opening a file without blocking: if a pipe replaced the file after the check, opening
it would otherwise wait forever for a writer.
"""


def named_path(given: str | os.PathLike[str]) -> Path:
    """Return the path given by a caller, with `~` expanded; the path need not exist.

    Raises:
        BadInput: The path is not valid for a file: it contains a NUL byte, is too long, or names a
            user who does not exist.
    """
    shown = f"{os.fspath(given)!r:.80}"
    try:
        path = Path(given).expanduser()
    except RuntimeError as error:
        raise BadInput(f"the path {shown} cannot be used: {error}".rstrip(".")) from error
    try:
        path.stat()
    except ValueError as error:
        raise BadInput(f"the path {shown} cannot be used: it holds a NUL byte") from error
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise BadInput(f"the path {shown} cannot be used: it is too long") from error
    return path


def cache_folder(*names: str) -> Path:
    """Create and return a folder in the user's cache folder.

    Only that user can access it, since cached data contains text from the user's files.
    """
    folder = user_cache_path("stepcraft", appauthor=False).joinpath(*names)
    folder.mkdir(0o700, parents=True, exist_ok=True)
    return folder


def irregular(mode: int) -> str:
    """Return the type of a file from its mode, or "" if it is a regular file or a folder."""
    kinds = (
        (S_ISFIFO, "a pipe"), (S_ISSOCK, "a socket"), (S_ISCHR, "a device"), (S_ISBLK, "a device")
    )  # fmt: skip
    return next((name for is_kind, name in kinds if is_kind(mode)), "")


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file to read its bytes; refuse anything else, since opening it could block.

    Raises:
        OSError: It cannot be opened, or is not a regular file.
    """
    _check_regular(path.stat(), path)
    descriptor = os.open(path, _FLAGS)
    try:
        _check_regular(os.fstat(descriptor), path)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _check_regular(found: os.stat_result, path: Path) -> None:
    if not S_ISREG(found.st_mode):
        what = irregular(found.st_mode) or "a folder"
        raise OSError(errno.EINVAL, f"it is {what}, not a file", str(path))
    blocks = getattr(found, "st_blocks", None)  # Windows cannot tell
    if blocks is not None and found.st_size > _HOLLOW_BYTES and blocks * 512 * 100 < found.st_size:
        raise OSError(errno.EINVAL, "nearly all of it is a hole without data", str(path))


_HOLLOW_BYTES = 200_000_000
"""The size above which a file is refused if less than a hundredth of it is on disk, since reading
it would take hours and yield little but zeros.
"""
