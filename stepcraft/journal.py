"""Append-only files of JSON lines that survive a killed run, in a folder locked by one process.

Each line is stored as a whole or not at all: a line that was cut off is removed. Lines are synced
to disk every second; if the machine itself fails, later ones are lost.
"""

import errno
import json
import os
import time
from collections.abc import Iterator, Mapping
from io import FileIO
from pathlib import Path
from typing import Any, Self

from stepcraft.errors import BadInput, RunStopped

LOCK = "lock"
"""The name of the file that is locked to hold a folder."""

_BLOCK = 65_536

_SYNC_S = 1.0
"""The interval between syncs to disk: syncing each line would take longer than a fast answer."""


class FolderLock:
    """Holds a folder for this process until the lock is closed or the process ends.

    Args:
        path: The folder, created if missing.
        refusal: The start of the error message if another process holds the folder, such as "an
            evaluation is running into".

    Raises:
        BadInput: Another process holds the folder.
        OSError: The folder cannot be created or written to.
    """

    def __init__(self, path: Path, refusal: str) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self._file = (path / LOCK).open("ab")
        try:
            import fcntl  # noqa: PLC0415 - not on Windows
        except ImportError:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self.close()
            raise BadInput(f"{refusal} {path}; wait for it or name another directory") from error
        except OSError as error:
            self.close()
            raise BadInput(
                f"{path} cannot be locked: {error.strerror}; name a directory on a local disk"
            ) from error

    def close(self) -> None:
        """Release the folder."""
        self._file.close()


def _end_of_lines(file: FileIO) -> int:
    """Return the position after the last line break, reading from the end."""
    end = file.seek(0, os.SEEK_END)
    while end:
        begin = max(0, end - _BLOCK)
        file.seek(begin)
        if found := file.read(end - begin).rfind(b"\n") + 1:
            return begin + found
        end = begin
    return 0


class LineFile:
    """An append-only file of JSON lines.

    If the last line was cut off, it is removed when the file is opened.

    Args:
        path: The file, created if missing.

    Raises:
        BadInput: The file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._sync_at = 0.0
        try:
            path.touch()
            # Unbuffered, so that closing the file does not retry a failed write.
            self._file: FileIO = path.open("r+b", buffering=0)
            self._file.truncate(_end_of_lines(self._file))
        except OSError as error:
            raise BadInput(
                f"{path} cannot be written: {error.strerror}; name another directory"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Force the lines to disk and close the file.

        Raises:
            RunStopped: The lines cannot be written.
        """
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._stopped(str(error.strerror)) from error
        finally:
            self._file.close()

    def add(self, value: Mapping[str, Any]) -> None:
        """Append a line; once this returns, the line is kept even if the process ends.

        Raises:
            RunStopped: The line cannot be written, for example because the disk is full.
        """
        line = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        end = self._file.seek(0, os.SEEK_END)
        try:
            written = self._file.write(line)
            if time.monotonic() >= self._sync_at:
                os.fsync(self._file.fileno())
                self._sync_at = time.monotonic() + _SYNC_S
            reason = os.strerror(errno.ENOSPC) if written < len(line) else ""
        except OSError as error:
            reason = error.strerror or str(error)
        if reason:
            self._file.truncate(end)
            raise self._stopped(reason)

    def _stopped(self, reason: str) -> RunStopped:
        return RunStopped(
            f"{self.path} cannot be written: {reason}; make room and start the same command again"
        )


def read_lines(path: Path) -> Iterator[Any]:
    """Yield the values in a file of JSON lines, ignoring a last line that was cut off.

    Raises:
        BadInput: A line is damaged.
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.endswith(b"\n"):
                try:
                    yield json.loads(line)
                except ValueError as error:
                    raise BadInput(f"{path}:{number} is damaged: {error}") from error
