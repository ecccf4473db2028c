"""A real browser without a window, which reaches nothing but loopback; needs nothing but the standard library."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = (
    "--headless",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--enable-logging=stderr",
)


def chromium() -> str | None:
    """Where it is installed; None if it is not."""
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


def sandboxed() -> list[str]:
    """Its sandbox refuses root."""
    return ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []


@dataclass
class Shown:
    """A page as it is after it was loaded, and what was said on the console."""

    dom: str
    console: list[str]


def shown(page: Path, profile: Path) -> Shown:
    """Open a file in a browser of its own."""
    command = [
        str(chromium()),
        *QUIET,
        *sandboxed(),
        f"--user-data-dir={profile}",
        "--dump-dom",
        page.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)
    return Shown(done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line])


@contextmanager
def listener() -> Iterator[tuple[int, list[str]]]:
    """A port of loopback, and what was asked for there."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_port, asked
        finally:
            server.shutdown()
