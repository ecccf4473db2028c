"""The Weaviate program that is started here, and ports for it; scripts/weaviate reads this without the client."""

import hashlib
import random
import socket
import sys
from contextlib import ExitStack
from pathlib import Path

VERSION = "1.39.1"
"""Of the server that is embedded, and that the tests run on."""


def program(folder: Path) -> Path:
    """The program in a folder, under the name by which the client looks for it."""
    tag = f"v{VERSION}"
    return folder / f"weaviate-{tag}-{hashlib.sha256(tag.encode()).hexdigest()}"


class Ports:
    """Free ports, in a row, that nobody else is given until they are closed.

    Each is held by a socket that is bound and does not listen: others that look for a port pass it by, and so does
    the system, while Linux lets a server listen beside it. Elsewhere a server could not, so that nothing is held.

    Raises:
        OSError: no more files can be opened.
    """

    def __init__(self, count: int) -> None:
        self._held = ExitStack()
        while not self._holds(random.randrange(*_NEVER_DEALT), count):  # noqa: S311 - no secret
            pass

    def __enter__(self) -> range:
        return self.numbers

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let others have them; it may be called twice."""
        self._held.close()

    def _holds(self, first: int, count: int) -> bool:
        self.numbers = range(first, first + count)
        with ExitStack() as held:
            for port in self.numbers:
                one = held.enter_context(socket.socket())
                try:
                    one.bind(("", port))
                except OSError:
                    return False
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if sys.platform == "linux":
                self._held = held.pop_all()
        return True


class ServerPorts(Ports):
    """Those of one server.

    Attributes:
        http: where it answers.
        grpc: likewise.
        settings: of the ports by which it talks to itself; two pairs of them must be neighbours.
    """

    def __init__(self) -> None:
        super().__init__(2 + len(_INNER))
        self.http, self.grpc, *inner = self.numbers
        self.settings = dict(zip(_INNER, map(str, inner), strict=True))


_INNER = ("RAFT_PORT", "RAFT_INTERNAL_RPC_PORT", "CLUSTER_GOSSIP_BIND_PORT", "CLUSTER_DATA_BIND_PORT")
_NEVER_DEALT = (20_000, 32_000)
"""Operating systems deal outgoing connections ports above these."""


def listens(port: int) -> bool:
    """Whether anybody listens on a port of loopback."""
    with socket.socket() as probe:
        probe.settimeout(2)
        return probe.connect_ex(("127.0.0.1", port)) == 0
