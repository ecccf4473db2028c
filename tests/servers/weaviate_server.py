"""A real Weaviate on loopback, in a process of its own; needs nothing but the standard library."""

from __future__ import annotations

import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self
from urllib.parse import urlencode, urlsplit, urlunsplit

from tests.servers.ports import ServerPorts, listens, program

ROOT = Path(__file__).resolve().parents[2]
FOLDER_VARIABLE = "STEPCRAFT_TEST_WEAVIATE_BIN"
URL_VARIABLE = "STEPCRAFT_TEST_WEAVIATE_URL"

_SETTINGS = {
    "AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED": "true",
    "AUTOSCHEMA_ENABLED": "false",
    "CLUSTER_ADVERTISE_ADDR": "127.0.0.1",
    "CLUSTER_BIND_ADDR": "127.0.0.1",
    "CLUSTER_HOSTNAME": "node1",
    "CLUSTER_IN_LOCALHOST": "true",
    "DEFAULT_VECTORIZER_MODULE": "none",
    "DISABLE_TELEMETRY": "true",
    "GO_PROFILING_DISABLE": "true",
    "GOMEMLIMIT": "4GiB",
    "LOG_LEVEL": "warning",
    "RAFT_BOOTSTRAP_EXPECT": "1",
    "RAFT_TIMEOUTS_MULTIPLIER": "1",
}


def folder() -> Path:
    """Where `scripts/weaviate install` puts the binary."""
    return Path(os.environ.get(FOLDER_VARIABLE) or ROOT / ".weaviate")


def binary() -> Path:
    """The program of the server."""
    return program(folder())


@contextmanager
def found_weaviate(data: Path) -> Iterator[str]:
    """The URL of the server that the environment names, or of the binary; else why there is none."""
    if named := os.environ.get(URL_VARIABLE):
        yield named
    elif binary().exists():
        with WeaviateServer(data) as server:
            yield server.url("")
    else:
        yield f"run scripts/weaviate install, or set {URL_VARIABLE}"


def own_collection(base: str, **options: str) -> str:
    """The URL of a new collection in the server of a URL."""
    parts = urlsplit(base)
    query = "&".join(filter(None, [parts.query, urlencode(options)]))
    return urlunsplit(parts._replace(path=f"/Test{uuid.uuid4().hex}", query=query))


def collection_of(url: str) -> str:
    """The name of the collection that a URL speaks of."""
    return urlsplit(url).path.rpartition("/")[2]


class WeaviateServer:
    """Starts on entering, is ended on leaving; the data stays in the folder given.

    Args:
        data: where the server keeps its data and writes `server.log`.
        settings: environment variables of the server, over those of one local node.
        ports: of HTTP and gRPC; free ones where 0. They stay the same when it is started again.
    """

    def __init__(
        self, data: Path, settings: dict[str, str] | None = None, ports: tuple[int, int] = (0, 0)
    ) -> None:
        self.data = data
        self.log = data / "server.log"
        self._settings = settings or {}
        self._ports = ServerPorts()
        self.port, self.grpc_port = ports[0] or self._ports.http, ports[1] or self._ports.grpc
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._ports.close()

    @property
    def pid(self) -> int:
        """Of the process; 0 if there is none."""
        return self._process.pid if self._process else 0

    def url(self, collection: str) -> str:
        """The URL of a memory in this server."""
        return f"weaviate://127.0.0.1:{self.port}/{collection}?grpc={self.grpc_port}"

    def start(self) -> None:
        """Start the process and wait until it serves."""
        self.data.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    str(binary()),
                    "--host",
                    "127.0.0.1",
                    "--port",
                    str(self.port),
                    "--scheme",
                    "http",
                ],
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._wait(time.monotonic() + 60)

    def stop(self) -> None:
        """End the process in good order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the process at once."""
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """Let the process answer nothing, though it is there."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOWAIT)

    def thaw(self) -> None:
        """Let a frozen process go on."""
        os.kill(self.pid, signal.SIGCONT)

    def _environment(self) -> dict[str, str]:
        places = {
            "PERSISTENCE_DATA_PATH": str(self.data / "data"),
            "GRPC_PORT": str(self.grpc_port),
        }
        return {**os.environ, **_SETTINGS, **self._ports.settings, **places, **self._settings}

    def _wait(self, deadline: float) -> None:
        while not _ready(self.port) or not listens(self.grpc_port):
            if self._process and self._process.poll() is not None:
                raise RuntimeError(
                    f"Weaviate ended with {self._process.returncode}:\n{self._tail()}"
                )
            if time.monotonic() > deadline:
                self.kill()
                raise TimeoutError(f"Weaviate was not ready in time:\n{self._tail()}")
            time.sleep(0.1)

    def _tail(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")[-4000:]

    def _end(self, number: signal.Signals) -> None:
        if not self._process:
            return
        for each in (number, signal.SIGKILL):
            try:
                self._process.send_signal(each)
                self._process.send_signal(signal.SIGCONT)
                self._process.wait(timeout=30)
                break
            except subprocess.TimeoutExpired:
                continue
        self._process = None


def _ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(
            f"http://127.0.0.1:{port}/v1/.well-known/ready", timeout=2
        ) as response:
            return bool(response.status == 200)
    except urllib.error.HTTPError as refusal:
        refusal.close()
        return False
    except OSError:
        return False
