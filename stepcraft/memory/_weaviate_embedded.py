"""Weaviate servers embedded in this process: one for each folder, whoever uses it."""

import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import weaviate
from weaviate.embedded import DEFAULT_BINARY_PATH, EmbeddedOptions
from weaviate.exceptions import WeaviateBaseError

from stepcraft.errors import MemoryFailure, without_secrets
from stepcraft.memory._weaviate_probe import unreachable
from stepcraft.memory._weaviate_url import Place, Server

VERSION = "1.39.1"
"""Of the server that the client downloads where it finds none."""

_SETTINGS = {
    "AUTOSCHEMA_ENABLED": "false",
    "CLUSTER_ADVERTISE_ADDR": "127.0.0.1",
    "CLUSTER_BIND_ADDR": "127.0.0.1",
    "CLUSTER_HOSTNAME": "node1",
    "DEFAULT_VECTORIZER_MODULE": "none",
    "DISABLE_TELEMETRY": "true",
    "ENABLE_MODULES": "",
    "LOG_LEVEL": "fatal",
}


@dataclass
class _Running:
    client: weaviate.WeaviateClient
    server: Server
    users: int = 0


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
        MemoryFailure: it cannot be started.
    """
    with _lock:
        held = _running.get(folder)
        if held and not _ended(held):
            return held.server
        users = held.users if held else 0
        if held:
            held.client.close()
        _running[folder] = _started(folder, binary)
        _running[folder].users = users
        return _running[folder].server


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
                held.client.close()


def _ended(held: _Running) -> bool:
    """Whether nothing listens any more: the process itself is the client's own affair."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((held.server.host, held.server.port)) != 0 and bool(unreachable(held.server))


def _started(folder: Path, binary: Path | None) -> _Running:
    port, grpc_port, raft, gossip = _free_ports(4)
    inner = {
        "RAFT_PORT": str(raft),
        "RAFT_INTERNAL_RPC_PORT": str(raft + 1),
        "RAFT_JOIN": f"node1:{raft + 1}",
        "CLUSTER_GOSSIP_BIND_PORT": str(gossip),
        "CLUSTER_DATA_BIND_PORT": str(gossip + 1),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        options = EmbeddedOptions(
            version=VERSION,
            persistence_data_path=str(folder),
            binary_path=str(binary or DEFAULT_BINARY_PATH),
            port=port,
            grpc_port=grpc_port,
            additional_env_vars={**_SETTINGS, **inner, "PERSISTENCE_DATA_PATH": str(folder)},
        )
        # Its own checks would look for newer clients on the package index.
        client = weaviate.WeaviateClient(embedded_options=options, skip_init_checks=True)
        client.connect()
    except (WeaviateBaseError, OSError) as error:
        what = " ".join(without_secrets(str(error)).split())[:300]
        raise MemoryFailure(
            f"an embedded Weaviate {VERSION} cannot be started in {folder}: {what}; is another one using the folder?"
        ) from error
    return _Running(client, Server("127.0.0.1", port, "127.0.0.1", grpc_port))


def _free_ports(count: int) -> list[int]:
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]
    finally:
        for probe in probes:
            probe.close()
