"""The Weaviate program that is started here, and ports for it; scripts/weaviate reads this without the client."""

import hashlib
import random
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
    """Ports of loopback that nobody listens on now, and that no connection is given before they are used."""
    first = _row_of(count)
    return list(range(first, first + count))


def inner_ports() -> dict[str, str]:
    """Settings of the ports by which a server talks to itself: free ones in a row, since two pairs must be neighbours."""
    first = _row_of(4)
    names = ("RAFT_PORT", "RAFT_INTERNAL_RPC_PORT", "CLUSTER_GOSSIP_BIND_PORT", "CLUSTER_DATA_BIND_PORT")
    return {name: str(first + place) for place, name in enumerate(names)}


def _row_of(count: int) -> int:
    """The first of as many free ports in a row."""
    while True:
        first = random.randrange(*_NEVER_DEALT)  # noqa: S311 - no secret
        with ExitStack() as probes, suppress(OSError):
            for port in range(first, first + count):
                probes.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first


_NEVER_DEALT = (20_000, 32_000)
"""Operating systems deal outgoing connections ports above these."""


def listens(port: int) -> bool:
    """Whether anybody listens on a port of loopback."""
    with socket.socket() as probe:
        probe.settimeout(2)
        return probe.connect_ex(("127.0.0.1", port)) == 0
