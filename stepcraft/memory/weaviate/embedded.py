"""Weaviate servers embedded in this process: one for each folder, shared by all memories in it."""

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from weaviate.embedded import DEFAULT_BINARY_PATH, EmbeddedOptions, EmbeddedV4
from weaviate.exceptions import WeaviateBaseError, WeaviateStartUpError

from stepcraft.errors import BadInput, MemoryFailure
from stepcraft.memory.weaviate.connection import ready, unreachable
from stepcraft.memory.weaviate.program import VERSION, ServerPorts, listens, program, start_time
from stepcraft.memory.weaviate.url import Address, Server
from stepcraft.secrets import without_secrets

_RELEASES = "https://github.com/weaviate/weaviate/releases"
_RELEASES_TIMEOUT_S = 4
_END_TIMEOUT_S = 20
"""How long to wait for a left-over server to end, in seconds."""

_SETTINGS = {
    "AUTOSCHEMA_ENABLED": "false",
    "CLUSTER_ADVERTISE_ADDR": "127.0.0.1",
    "CLUSTER_BIND_ADDR": "127.0.0.1",
    "CLUSTER_HOSTNAME": "node1",
    "DEFAULT_VECTORIZER_MODULE": "none",
    "DISABLE_TELEMETRY": "true",
    "ENABLE_MODULES": "",
    "GO_PROFILING_DISABLE": "true",
    "LOG_LEVEL": "fatal",
    "RAFT_TIMEOUTS_MULTIPLIER": "1",
}


def acquire_server(address: Address) -> None:
    """Count one more user of an embedded server, started if necessary; other servers need none.

    Raises:
        BadInput: the folder named for the program does not hold it.
        MemoryFailure: the server cannot be started, or another process serves the folder.
    """
    if address.folder:
        with _lock:
            server_in(address.folder, address.binary)
            _running[address.folder].users += 1


def release_server(address: Address) -> None:
    """Count one user less of an embedded server; the last one ends it."""
    with _lock:
        held = _running.get(address.folder) if address.folder else None
        if held:
            held.users -= 1
            if held.users <= 0:
                del _running[held.folder]
                held.end()


def locator(address: Address) -> Callable[[], Server]:
    """A function that returns where the server of an address answers, and starts an embedded one that has ended."""
    if address.folder:
        folder, binary = address.folder, address.binary
        return lambda: server_in(folder, binary)
    server = address.server
    assert server  # noqa: S101 - an address has one or the other
    return lambda: server


def server_in(folder: Path, binary: Path | None) -> Server:
    """Return where the server of a folder answers; it is started, again if it has ended.

    Raises:
        BadInput: the folder named for the program does not hold it.
        MemoryFailure: the server cannot be started, or another process serves the folder.
    """
    with _lock:
        held = _running.get(folder)
        # A child process after a fork cannot tell whether its parent's server has ended.
        if held and (held.owner != os.getpid() or not held.process.ended):
            return held.process.server
        if held:
            del _running[folder]
            held.end()
        started = _start(folder, binary)
        started.users = held.users if held else 0
        _running[folder] = started
        return started.process.server


class Claim:
    """The claim of this process to a folder of data, until it is given up or the process ends.

    A second server in the same folder would wait for the first one without a word. A server that an earlier process
    left running because it was killed is ended.

    Raises:
        MemoryFailure: the folder cannot be written, or another process holds it.
    """

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = (folder / "stepcraft.json").open("a+", encoding="utf-8")
        except OSError as error:
            raise MemoryFailure(
                f"an embedded Weaviate cannot be started in {folder}: {error.strerror}; "
                "name a folder that can be written"
            ) from error
        try:
            self._lock(folder)
            self._end_left_over()
        except BaseException:
            self._file.close()
            raise

    def record(self, pid: int, server: Server) -> None:
        """Record which process serves the folder, and where."""
        self._file.truncate(0)
        known = {"pid": pid, "started": start_time(pid), "port": server.port, "grpc": server.grpc_port}
        self._file.write(json.dumps(known))
        self._file.flush()

    def give_up(self) -> None:
        """Let others have the folder."""
        self._file.truncate(0)
        self._file.close()

    def _lock(self, folder: Path) -> None:
        import fcntl  # noqa: PLC0415 - not on Windows, where there is no embedded Weaviate either

        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            _, _, server = self._recorded()
            where = (
                f" as weaviate://127.0.0.1:{server.port}/Collection?grpc={server.grpc_port}" if server else ""
            )
            raise MemoryFailure(
                f"another process has an embedded Weaviate in {folder}; use that one{where}, "
                "end that process, or name another folder"
            ) from error

    def _recorded(self) -> tuple[int, str, Server | None]:
        """The id and start time of the process that served the folder last, and where it answered."""
        self._file.seek(0)
        try:
            known = json.loads(self._file.read())
            server = Server("127.0.0.1", int(known["port"]), "127.0.0.1", int(known["grpc"]))
            return int(known["pid"]), str(known["started"]), server
        except (ValueError, LookupError, TypeError):
            return 0, "", None

    def _end_left_over(self) -> None:
        pid, started, server = self._recorded()
        if not server or not started or start_time(pid) != started:
            return  # it has ended; the id may be another process's by now
        with suppress(OSError):
            os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + _END_TIMEOUT_S
        while (start_time(pid) == started or listens(server.port)) and time.monotonic() < deadline:
            time.sleep(0.1)


class _Process(EmbeddedV4):
    """The client's embedded server on ports of its own; one that ends while it starts is not waited for."""

    def __init__(self, folder: Path, binary: Path | None) -> None:
        self.ports = ServerPorts()
        self.server = Server("127.0.0.1", self.ports.http, "127.0.0.1", self.ports.grpc)
        super().__init__(
            EmbeddedOptions(
                version=VERSION,
                persistence_data_path=str(folder),
                binary_path=str(binary or DEFAULT_BINARY_PATH),
                port=self.ports.http,
                grpc_port=self.ports.grpc,
                additional_env_vars={
                    **_SETTINGS,
                    **self.ports.settings,
                    "PERSISTENCE_DATA_PATH": str(folder),
                    "RAFT_JOIN": f"node1:{self.ports.settings['RAFT_INTERNAL_RPC_PORT']}",
                },
            )
        )

    @property
    def ended(self) -> bool:
        """Whether the process was started and has ended."""
        return self.process is not None and self.process.poll() is not None

    def is_listening(self) -> bool:
        """Whether it serves; another process on its ports does not count."""
        serves = super().is_listening() and not unreachable(self.server) and ready(self.server)
        if self.process is not None and (status := self.process.poll()) is not None:
            raise _EndedEarly(f"it ended with {status} while it started")
        return serves

    def start(self) -> None:
        """Start the process and wait until it serves; if it does not, it is stopped."""
        try:
            super().start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the process and release the ports."""
        super().stop()
        self.ports.close()


class _EndedEarly(WeaviateStartUpError):
    pass


@dataclass
class _Running:
    folder: Path
    process: _Process
    claim: Claim
    users: int = 0
    owner: int = field(default_factory=os.getpid)

    def end(self) -> None:
        if self.owner == os.getpid():  # a child process after a fork leaves it to the parent
            self.process.stop()
            self.claim.give_up()


_running: dict[Path, _Running] = {}
_lock = threading.RLock()


def _start(folder: Path, binary: Path | None) -> _Running:
    _check_program(binary)
    claim = Claim(folder)
    try:
        try:
            process = _Process(folder, binary)
            process.start()
        except _EndedEarly:  # somebody may have taken one of its ports since it was found free
            process = _Process(folder, binary)
            process.start()
    except (WeaviateBaseError, OSError) as error:
        claim.give_up()
        what = " ".join(without_secrets(str(error)).split())[:300]
        raise MemoryFailure(
            f"an embedded Weaviate {VERSION} cannot be started in {folder}: {what}; "
            "see whether there is room and memory for it, or run a server and name weaviate://host:8080/Collection"
        ) from error
    claim.record(process.process.pid if process.process else 0, process.server)
    return _Running(folder, process, claim)


def _check_program(binary: Path | None) -> None:
    """Where the program is missing, the client would download without end, or into the folder named."""
    if program(binary or Path(DEFAULT_BINARY_PATH)).exists():
        return
    if binary:
        raise BadInput(
            f"there is no Weaviate {VERSION} in {binary} ({program(binary).name}); "
            "name the folder that `scripts/weaviate install` filled, or leave out binary= to have it downloaded"
        )
    try:
        httpx.head(_RELEASES, timeout=_RELEASES_TIMEOUT_S)
    except httpx.TransportError as error:
        raise MemoryFailure(
            f"the embedded Weaviate {VERSION} is not here yet, and cannot be downloaded from {_RELEASES} "
            f"({str(error) or type(error).__name__}); name the folder of the program as "
            "?binary=FOLDER, or run a server (docker compose up) and name weaviate://localhost:8080/Collection"
        ) from error
