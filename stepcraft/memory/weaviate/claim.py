"""The claim of one process to the folder of an embedded Weaviate: a second server in it would wait without a word."""

import json
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

from stepcraft.errors import MemoryFailure
from stepcraft.memory.weaviate.probe import unreachable
from stepcraft.memory.weaviate.program import listens
from stepcraft.memory.weaviate.url import Server

_NOTE = "stepcraft.json"
_ENDING_S = 20


class Claim:
    """Held from the making on until it is given up, or this process ends.

    A server that an earlier process left running, because it was killed, is ended first.

    Raises:
        MemoryFailure: the folder cannot be written, or another process holds it.
    """

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = (folder / _NOTE).open("a+", encoding="utf-8")
        except OSError as error:
            raise MemoryFailure(
                f"an embedded Weaviate cannot be started in {folder}: {error.strerror}; name a folder that can be written"
            ) from error
        try:
            self._hold(folder)
            _end_left_over(*_noted(self._file))
        except BaseException:
            self._file.close()
            raise

    def note(self, pid: int, server: Server) -> None:
        """Write down which process serves the folder, and where."""
        self._file.truncate(0)
        self._file.write(json.dumps({"pid": pid, "port": server.port, "grpc": server.grpc_port}))
        self._file.flush()

    def give_up(self) -> None:
        """Let others have the folder."""
        self._file.truncate(0)
        self._file.close()

    def _hold(self, folder: Path) -> None:
        import fcntl  # noqa: PLC0415 - not on Windows, where there is no embedded Weaviate either

        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            _, server = _noted(self._file)
            where = (
                f" as weaviate://127.0.0.1:{server.port}/Collection?grpc={server.grpc_port}" if server else ""
            )
            raise MemoryFailure(
                f"another process has an embedded Weaviate in {folder}; use that one{where}, "
                "end that process, or name another folder"
            ) from error


def _noted(file: IO[str]) -> tuple[int, Server | None]:
    file.seek(0)
    try:
        known = json.loads(file.read())
        server = Server("127.0.0.1", int(known["port"]), "127.0.0.1", int(known["grpc"]))
        return int(known["pid"]), server
    except (ValueError, LookupError, TypeError):
        return 0, None


def _end_left_over(pid: int, server: Server | None) -> None:
    if not server or unreachable(server):
        return
    with suppress(OSError):
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + _ENDING_S
    while listens(server.port) and time.monotonic() < deadline:
        time.sleep(0.1)
