"""The Weaviate program that is started here, and ports for it; scripts/weaviate reads this without the client."""

import hashlib
import socket
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


def listens(port: int) -> bool:
    """Whether anybody listens on a port of loopback."""
    with socket.socket() as probe:
        probe.settimeout(2)
        return probe.connect_ex(("127.0.0.1", port)) == 0
