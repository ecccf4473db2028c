"""Weaviate servers embedded in this process: one for each folder, whoever uses it."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import httpx
from weaviate.embedded import DEFAULT_BINARY_PATH, EmbeddedOptions, EmbeddedV4
from weaviate.exceptions import WeaviateBaseError, WeaviateStartUpError

from stepcraft.errors import BadInput, MemoryFailure, without_secrets
from stepcraft.memory.weaviate.claim import Claim
from stepcraft.memory.weaviate.probe import ready, unreachable
from stepcraft.memory.weaviate.program import VERSION, ServerPorts, program
from stepcraft.memory.weaviate.url import Place, Server

_RELEASES = "https://github.com/weaviate/weaviate/releases"
_DOWNLOAD_S = 4
"""How long the place that the client downloads from may take to answer, in seconds."""

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


class _Program(EmbeddedV4):
    """The client's embedded server, with ports of its own; one that ends while it starts is not waited for."""

    def __init__(self, folder: Path, binary: Path | None, ports: ServerPorts) -> None:
        self.ports = ports
        self.server = Server("127.0.0.1", ports.http, "127.0.0.1", ports.grpc)
        settings = {
            **_SETTINGS,
            **ports.settings,
            "PERSISTENCE_DATA_PATH": str(folder),
            "RAFT_JOIN": f"node1:{ports.settings['RAFT_INTERNAL_RPC_PORT']}",
        }
        super().__init__(
            EmbeddedOptions(
                version=VERSION,
                persistence_data_path=str(folder),
                binary_path=str(binary or DEFAULT_BINARY_PATH),
                port=ports.http,
                grpc_port=ports.grpc,
                additional_env_vars=settings,
            )
        )

    @property
    def ended(self) -> int | None:
        """What the process ended with, if it has."""
        return self.process.poll() if self.process else None

    def is_listening(self) -> bool:
        """Whether it serves; somebody else at its ports does not count."""
        serves = super().is_listening() and not unreachable(self.server) and ready(self.server)
        if self.ended is not None:
            raise _EndedEarly(f"it ended with {self.ended} while it started")
        return serves

    def started(self) -> Self:
        """This, once it serves; if it does not come to that it is stopped."""
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End the process and let others have the ports."""
        super().stop()
        self.ports.close()


class _EndedEarly(WeaviateStartUpError):
    pass


@dataclass
class _Running:
    program: _Program
    claim: Claim
    users: int = 0

    def end(self) -> None:
        self.program.stop()
        self.claim.give_up()


_running: dict[Path, _Running] = {}
_lock = threading.RLock()


def borrow(folder: Path, binary: Path | None) -> None:
    """Count one more user of the server of a folder, started if need be.

    Raises:
        MemoryFailure: it cannot be started.
    """
    with _lock:
        server_in(folder, binary)
        _running[folder].users += 1


def server_in(folder: Path, binary: Path | None) -> Server:
    """Where the server of a folder answers; it is started, again if it ended.

    Raises:
        BadInput: the folder named for the program does not hold it.
        MemoryFailure: it cannot be started, or another process serves the folder.
    """
    with _lock:
        held = _running.get(folder)
        if held and held.program.ended is None:
            return held.program.server
        if held:
            held.end()
            del _running[folder]
        _running[folder] = _started(folder, binary)
        _running[folder].users = held.users if held else 0
        return _running[folder].program.server


def server_of(place: Place) -> Callable[[], Server]:
    """What tells where the server of a place is, and starts an embedded one that does not run."""
    if place.server:
        server = place.server
        return lambda: server
    folder, binary = place.folder, place.binary
    assert folder  # noqa: S101 - a place has one or the other
    return lambda: server_in(folder, binary)


def give_back(folder: Path) -> None:
    """Count one user less; the last one ends the server."""
    with _lock:
        held = _running.get(folder)
        if held:
            held.users -= 1
            if held.users <= 0:
                del _running[folder]
                held.end()


def _started(folder: Path, binary: Path | None) -> _Running:
    _check_program(binary)
    claim = Claim(folder)
    try:
        started = _program(folder, binary)
    except (WeaviateBaseError, OSError) as error:
        claim.give_up()
        what = " ".join(without_secrets(str(error)).split())[:300]
        raise MemoryFailure(
            f"an embedded Weaviate {VERSION} cannot be started in {folder}: {what}; "
            "see whether there is room and memory for it, or run a server and name weaviate://host:8080/Collection"
        ) from error
    claim.note(started.process.pid if started.process else 0, started.server)
    return _Running(started, claim)


def _program(folder: Path, binary: Path | None) -> _Program:
    """One that ended gets a second try at other ports: somebody may have taken one since it was found free."""
    try:
        return _Program(folder, binary, ServerPorts()).started()
    except _EndedEarly:
        return _Program(folder, binary, ServerPorts()).started()


def _check_program(binary: Path | None) -> None:
    """The client would download without end, or into the folder named, where the program is missing."""
    if program(binary or Path(DEFAULT_BINARY_PATH)).exists():
        return
    if binary:
        raise BadInput(
            f"there is no Weaviate {VERSION} in {binary} ({program(binary).name}); "
            "name the folder that `scripts/weaviate install` filled, or leave out binary= to have it downloaded"
        )
    try:
        httpx.head(_RELEASES, timeout=_DOWNLOAD_S)
    except httpx.TransportError as error:
        raise MemoryFailure(
            f"the embedded Weaviate {VERSION} is not here yet, and cannot be downloaded from {_RELEASES} "
            f"({without_secrets(str(error)) or type(error).__name__}); name the folder of the program as "
            "?binary=FOLDER, or run a server (docker compose up) and name weaviate://localhost:8080/Collection"
        ) from error
