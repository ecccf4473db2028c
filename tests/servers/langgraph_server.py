"""The real `langgraph dev` on this repository's langgraph.json, in a folder of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from tests.servers.openai_server import OpenAIServer
from tests.servers.ports import Ports

ROOT = Path(__file__).resolve().parents[2]

_SETTINGS = {
    "LANGGRAPH_CLI_NO_ANALYTICS": "1",
    "LANGGRAPH_NO_VERSION_CHECK": "1",
    "LANGSMITH_TRACING": "false",
    "LOG_LEVEL": "WARNING",
}


def models_from(server: OpenAIServer) -> dict[str, str]:
    """The settings of a LangGraph server whose models named "openai:…" are those of a local server."""
    return {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "of-no-use"}


class LangGraphServer:
    """Starts on entering, serves at `url`, ends with all its children on leaving.

    Args:
        config: A langgraph.json.
        settings: Environment variables of the server, beside those of this process.
    """

    def __init__(
        self,
        config: Path = ROOT / "langgraph.json",
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.config = config
        self.settings = settings or {}
        self._ports = Ports(1)
        self.url = f"http://127.0.0.1:{self._ports.numbers[0]}"

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="langgraph-", ignore_cleanup_errors=True)
        self._log = Path(self._folder.name, "server.log")
        try:
            self._start()
            self._wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if process := getattr(self, "_process", None):
            _end(process)
        self._folder.cleanup()
        self._ports.close()

    @property
    def log(self) -> str:
        """What the server has written so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def _start(self) -> None:
        """Its folder is not the checkout: no state lands there, and no developer's .env is read.

        The package stands in it by a link, because langgraph.json names a file of it.
        """
        Path(self._folder.name, "stepcraft").symlink_to(ROOT / "stepcraft")
        port = self.url.rpartition(":")[2]
        options = [
            "--no-browser",
            "--no-reload",
            "--port",
            port,
            "--config",
            str(self.config),
            "--n-jobs-per-worker",
            "10",
        ]
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "langgraph_cli", "dev", *options],
                cwd=self._folder.name,
                env={
                    **os.environ,
                    **_SETTINGS,
                    **self.settings,
                    "PYTHONPATH": os.pathsep.join(paths),
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _wait(self) -> None:
        deadline = time.monotonic() + 60
        while not _answers(f"{self.url}/ok"):
            if self._process.poll() is not None:
                raise RuntimeError(
                    f"langgraph dev ended with {self._process.returncode}:\n{self.log}"
                )
            if time.monotonic() > deadline:
                raise TimeoutError(f"langgraph dev was not up in time:\n{self.log}")
            time.sleep(0.1)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1) as response:
            return bool(response.status == 200)
    except urllib.error.HTTPError as refusal:
        refusal.close()
        return False
    except OSError:
        return False


def _end(process: subprocess.Popen[bytes]) -> None:
    """The group was made for this process: nothing else is in it."""
    for number in (signal.SIGINT, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(timeout=10)
        except ProcessLookupError:
            break
        except subprocess.TimeoutExpired:
            continue
    process.wait(timeout=10)
