"""Embedded Weaviate servers: one for each folder, shared by all memories in it, also those of other processes.

A server listens on all addresses of the machine, so it is started with a key that is made for it. The record of who
serves a folder, `stepcraft.json` in it, holds the key and can be read by its owner only.
"""

import json
import os
import secrets
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

_OTHER_TIMEOUT_S = 40
"""How long to wait for another process to start or to end a server in the folder, in seconds."""

_RECORD = "stepcraft.json"
_SETTINGS = {
    "AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED": "false",
    "AUTHENTICATION_APIKEY_ENABLED": "true",
    "AUTHENTICATION_APIKEY_USERS": "stepcraft",
    "AUTHENTICATION_DB_USERS_ENABLED": "false",
    "AUTHENTICATION_OIDC_ENABLED": "false",
    "AUTHORIZATION_ADMINLIST_ENABLED": "true",
    "AUTHORIZATION_ADMINLIST_USERS": "stepcraft",
    "AUTHORIZATION_RBAC_ENABLED": "false",
    "AUTOSCHEMA_ENABLED": "false",
    "CLUSTER_BASIC_AUTH_USERNAME": "stepcraft",
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
        MemoryFailure: the server cannot be started.
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
    """Return where the server of a folder answers: that of another process, or one that is started, again if it ended.

    Raises:
        BadInput: the folder named for the program does not hold it.
        MemoryFailure: the server cannot be started.
    """
    with _lock:
        held = _running.get(folder)
        # A child process after a fork cannot tell whether its parent's server has ended.
        if held and (held.owner != os.getpid() or not held.process.ended):
            return held.process.server
        if held:
            del _running[folder]
            held.end()
        found = _found_or_started(folder, binary)
        found.users = held.users if held else 0
        _running[folder] = found
        return found.process.server


class Claim:
    """The claim of this process to a folder of data, until it is given up or the process ends.

    Two servers must not use the same folder. A server that an earlier process left running because it was killed is
    ended.

    Raises:
        BlockingIOError: another process holds the folder.
        MemoryFailure: the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # The record holds a key; versions before this one made the file readable for everybody.
            record = os.open(folder / _RECORD, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            os.fchmod(record, 0o600)
            self._file = os.fdopen(record, "a+", encoding="utf-8")
        except OSError as error:
            raise MemoryFailure(
                f"an embedded Weaviate cannot be started in {folder}: {error.strerror}; "
                "name a folder that can be written"
            ) from error
        try:
            import fcntl  # noqa: PLC0415 - not on Windows, where there is no embedded Weaviate either

            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._end_left_over(folder)
        except BaseException:
            self._file.close()
            raise

    def record(self, pid: int, server: Server) -> None:
        """Record which process serves the folder, where, and with which key."""
        self._file.truncate(0)
        known = {
            "pid": pid,
            "started": start_time(pid),
            "port": server.port,
            "grpc": server.grpc_port,
            "key": server.key,
        }
        self._file.write(json.dumps(known))
        self._file.flush()

    def give_up(self) -> None:
        """Let others have the folder."""
        self._file.truncate(0)
        self._file.close()

    @staticmethod
    def _end_left_over(folder: Path) -> None:
        left = _Other.recorded(folder)
        if not left or left.ended:
            return
        with suppress(OSError):
            os.kill(left.pid, signal.SIGTERM)
        deadline = time.monotonic() + _END_TIMEOUT_S
        while (not left.ended or listens(left.server.port)) and time.monotonic() < deadline:
            time.sleep(0.1)


@dataclass(frozen=True)
class _Other:
    """A server that another process started, according to the record of its folder."""

    pid: int
    started: str
    server: Server

    @staticmethod
    def recorded(folder: Path) -> "_Other | None":
        """Read the record of a folder; None where it names no server."""
        try:
            known = json.loads((folder / _RECORD).read_text("utf-8"))
            pid, started, port, grpc = (known[name] for name in ("pid", "started", "port", "grpc"))
            server = Server(
                "127.0.0.1", int(port), "127.0.0.1", int(grpc), key=str(known.get("key", ""))
            )
            return _Other(int(pid), str(started), server)
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return None

    @property
    def ended(self) -> bool:
        """Whether the process has ended; its id may be another process's by now."""
        return not self.started or start_time(self.pid) != self.started

    def stop(self) -> None:
        """Leave the server to the process that started it."""


class _Process(EmbeddedV4):
    """The client's embedded server on ports of its own; one that ends while it starts is not waited for."""

    def __init__(self, folder: Path, binary: Path | None) -> None:
        self.ports = ServerPorts()
        key = secrets.token_urlsafe(32)
        self.server = Server("127.0.0.1", self.ports.http, "127.0.0.1", self.ports.grpc, key=key)
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
                    "AUTHENTICATION_APIKEY_ALLOWED_KEYS": key,
                    "CLUSTER_BASIC_AUTH_PASSWORD": key,
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
    process: _Process | _Other
    claim: Claim | None = None
    """None where another process holds the folder."""
    users: int = 0
    owner: int = field(default_factory=os.getpid)

    def end(self) -> None:
        if self.owner == os.getpid():  # a child process after a fork leaves it to the parent
            self.process.stop()
            if self.claim:
                self.claim.give_up()


_running: dict[Path, _Running] = {}
_lock = threading.RLock()


def _found_or_started(folder: Path, binary: Path | None) -> _Running:
    """Use the server that another process has in a folder; start one where there is none."""
    _check_program(binary)
    deadline = time.monotonic() + _OTHER_TIMEOUT_S
    while time.monotonic() < deadline:
        try:
            return _start(folder, binary, Claim(folder))
        except BlockingIOError:
            other = _Other.recorded(folder)
            if other and not other.ended and not unreachable(other.server):
                return _Running(folder, other)
        time.sleep(0.1)  # it is starting, or about to end
    raise MemoryFailure(
        f"another process has an embedded Weaviate in {folder} that does not answer; end that process, "
        "or name another folder"
    )


def _start(folder: Path, binary: Path | None, claim: Claim) -> _Running:
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
