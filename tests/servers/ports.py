"""The Weaviate program that is started here, its ports, and its process; needs nothing but the standard library."""

import random
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from stepcraft.memory.weaviate.url import VERSION

_INTERNAL_PORTS = (
    "RAFT_PORT",
    "RAFT_INTERNAL_RPC_PORT",
    "CLUSTER_GOSSIP_BIND_PORT",
    "CLUSTER_DATA_BIND_PORT",
)
_PORT_RANGE = (20_000, 32_000)
"""Operating systems choose the ports of outgoing connections above these."""


def program(folder: Path) -> Path:
    """The path of the program in a folder."""
    return folder / f"weaviate-v{VERSION}"


def start_time(pid: int) -> str:
    """When a process was started, in the operating system's form; "" if there is none or it has ended.

    A process id is given to another process some time after the first one has ended. Id and start time together name
    one process.
    """
    if sys.platform == "linux":
        try:
            # The name of the program comes second, in brackets, and may hold anything.
            state, *numbers = (
                Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
            )
        except OSError:
            return ""
        return "" if state in "ZX" else numbers[18]
    command = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    found = listed.stdout.split(maxsplit=1)
    return found[1].strip() if found and not found[0].startswith("Z") else ""


def listens(port: int) -> bool:
    """Whether a process listens on a port of the loopback address."""
    with socket.socket() as probe:
        probe.settimeout(2)
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Ports:
    """Consecutive free ports, reserved until they are closed.

    Each is bound by a socket that does not listen: others that look for a port pass it over, and so does the system,
    while Linux lets a server listen beside it. Elsewhere a server could not, so that nothing is reserved.

    Raises:
        OSError: no more files can be opened.
    """

    def __init__(self, count: int) -> None:
        self._held = ExitStack()
        while not self._reserve(random.randrange(*_PORT_RANGE), count):
            pass

    def __enter__(self) -> range:
        return self.numbers

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the ports; it may be called twice."""
        self._held.close()

    def _reserve(self, first: int, count: int) -> bool:
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
    """The ports of one server.

    Attributes:
        http: the port of its HTTP API.
        grpc: the port of its gRPC API.
        settings: environment variables with its internal ports; two pairs of them must be consecutive.
    """

    def __init__(self) -> None:
        super().__init__(2 + len(_INTERNAL_PORTS))
        self.http, self.grpc, *inner = self.numbers
        self.settings = dict(zip(_INTERNAL_PORTS, map(str, inner), strict=True))
