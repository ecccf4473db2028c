"""The Weaviate program that is started here, and ports for it; scripts/weaviate reads this without the client."""

import hashlib
import socket
from contextlib import ExitStack, suppress
from pathlib import Path

VERSION = "1.39.1"
"""Of the server that is embedded, and that the tests run on."""


def program(folder: Path) -> Path:
    """The program in a folder, under the name by which the client looks for it."""
    tag = f"v{VERSION}"
    return folder / f"weaviate-{tag}-{hashlib.sha256(tag.encode()).hexdigest()}"


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody listens on now."""
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def inner_ports() -> dict[str, str]:
    """Settings of the ports by which a server talks to itself: free ones in a row, since two pairs must be neighbours."""
    first = _row_of(4)
    names = ("RAFT_PORT", "RAFT_INTERNAL_RPC_PORT", "CLUSTER_GOSSIP_BIND_PORT", "CLUSTER_DATA_BIND_PORT")
    return {name: str(first + place) for place, name in enumerate(names)}


def _row_of(count: int) -> int:
    """The first of as many free ports in a row."""
    while True:
        (first,) = free_ports(1)
        with ExitStack() as probes, suppress(OSError, OverflowError):
            for port in range(first, first + count):
                probes.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first


def listens(port: int) -> bool:
    """Whether anybody listens on a port of loopback."""
    with socket.socket() as probe:
        probe.settimeout(2)
        return probe.connect_ex(("127.0.0.1", port)) == 0
