"""A headless Chromium that reaches nothing but loopback, driven over the DevTools protocol.

It needs nothing but the standard library and pypdfium2: the protocol runs over Chromium's own pipe.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any

from pypdfium2 import PdfDocument

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
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
    """Return the path of the installed browser, or None."""
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


DRAWN = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
"""Resolves when the page has been drawn as it is: a mouse that moves before hits the old places."""


def _sandbox_flags() -> list[str]:
    """Chromium does not start as root with its sandbox."""
    return ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []


@dataclass
class Shown:
    """The DOM of a page after loading, and the lines it logged to the console."""

    dom: str
    console: list[str]


def shown(page: Path, profile: Path) -> Shown:
    """Load a file in a new browser and return what became of it."""
    command = [
        str(chromium()),
        *_FLAGS,
        *_sandbox_flags(),
        f"--user-data-dir={profile}",
        "--dump-dom",
        page.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)
    return Shown(done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line])


@contextmanager
def listener() -> Iterator[tuple[int, list[str]]]:
    """Listen on a loopback port; yield the port and the paths requested from it."""
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


_EXEC_WITH_PIPE = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""
"""Chromium reads commands from file descriptor 3 and writes replies to 4."""

_KEYS = {"Tab": 9, "Enter": 13, "Escape": 27}


class Tab:
    """An open page, with the actions of a reader."""

    def __init__(self, commands: IO[bytes], replies: IO[bytes], session: str) -> None:
        self._commands, self._replies, self._session = commands, replies, session

    def ask(self, method: str, **given: Any) -> Any:
        """Send a DevTools command and return its result."""
        return _ask(self._commands, self._replies, method, given, self._session)

    def js(self, expression: str) -> Any:
        """Evaluate an expression in the page; its content security policy does not apply to this."""
        told = self.ask(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def go(self, url: str) -> None:
        """Load a page."""
        self.ask("Page.navigate", url=url)
        self.js(
            "new Promise(done => document.readyState === 'complete' ? done() : addEventListener('load', () => done()))"
        )

    def resize(self, width: int, height: int) -> None:
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def colours(self, scheme: str) -> None:
        self.ask(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )

    def point(self, selector: str, number: int = 0) -> tuple[float, float]:
        """Move the mouse over the first line of an element and return the position."""
        found = f"document.querySelectorAll({json.dumps(selector)})[{number}]"
        self.js(f"{found}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        self.js(DRAWN)
        box = f"(b => [b.x + Math.min(b.width / 2, 20), b.y + b.height / 2])({found}.getClientRects()[0])"
        x, y = self.js(box)
        self._mouse("mouseMoved", x, y)
        self.js(DRAWN)
        return x, y

    def away(self) -> None:
        """Move the mouse to the corner of the window."""
        self._mouse("mouseMoved", 1, 1)

    def click(self, selector: str, number: int = 0) -> None:
        x, y = self.point(selector, number)
        for kind in ("mousePressed", "mouseReleased"):
            self._mouse(kind, x, y, button="left", clickCount=1)

    def press(self, key: str) -> None:
        code = {"key": key, "code": key, "windowsVirtualKeyCode": _KEYS[key]}
        typed = {"text": "\r"} if key == "Enter" else {}
        self.ask("Input.dispatchKeyEvent", type="keyDown", **code, **typed)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **code)

    def _mouse(self, kind: str, x: float, y: float, **given: Any) -> None:
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **given)
        self.js(DRAWN)

    def picture(self) -> bytes:
        """Return a screenshot as PNG."""
        return base64.b64decode(self.ask("Page.captureScreenshot")["data"])

    def printed(self) -> str:
        """Return the text of the page as printed."""
        pdf = base64.b64decode(self.ask("Page.printToPDF", printBackground=True)["data"])
        return "\n".join(page.get_textpage().get_text_range() for page in PdfDocument(pdf))


def _ask(
    commands: IO[bytes], replies: IO[bytes], method: str, given: dict[str, Any], session: str = ""
) -> Any:
    named = {"sessionId": session} if session else {}
    commands.write(
        json.dumps({"id": 1, "method": method, "params": given, **named}).encode() + b"\0"
    )
    commands.flush()
    while True:
        told = json.loads(_message(replies))
        if told.get("id") == 1:
            assert "result" in told, told
            return told["result"]


def _message(replies: IO[bytes]) -> bytes:
    pieces: list[bytes] = []
    while (piece := replies.read(1)) != b"\0":
        assert piece, "the browser is gone"
        pieces.append(piece)
    return b"".join(pieces)


@contextmanager
def opened(page: Path | str, profile: Path) -> Iterator[Tab]:
    """Open a file, or a URL on loopback, in a new browser."""
    to_read, commands = os.pipe()
    replies, to_write = os.pipe()
    command = [
        str(chromium()),
        *_FLAGS,
        *_sandbox_flags(),
        f"--user-data-dir={profile}",
        "--remote-debugging-pipe",
    ]
    browser = subprocess.Popen(
        [
            sys.executable,
            "-c",
            _EXEC_WITH_PIPE,
            str(to_read),
            str(to_write),
            *command,
            "about:blank",
        ],
        pass_fds=(to_read, to_write),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_read)
    os.close(to_write)
    with os.fdopen(commands, "wb") as out, os.fdopen(replies, "rb") as back:
        try:
            yield _loaded(page if isinstance(page, str) else page.as_uri(), out, back)
        finally:
            browser.terminate()
            browser.wait()


def _loaded(url: str, out: IO[bytes], back: IO[bytes]) -> Tab:
    target = _ask(out, back, "Target.createTarget", {"url": "about:blank"})["targetId"]
    session = _ask(out, back, "Target.attachToTarget", {"targetId": target, "flatten": True})[
        "sessionId"
    ]
    tab = Tab(out, back, session)
    tab.go(url)
    return tab
