"""A page in a real browser that is pointed at, clicked, typed into and printed, through Chromium's own pipe."""

from __future__ import annotations

import base64
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from pypdf import PdfReader

from tests.servers.chromium import QUIET, chromium, sandboxed

_AT_3_AND_4 = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""
"""Chromium reads its commands there and writes its replies here."""

_KEYS = {"Tab": 9, "Enter": 13, "Escape": 27}


class Tab:
    """One page, and the hands of who reads it."""

    def __init__(self, commands: IO[bytes], replies: IO[bytes], session: str) -> None:
        self._commands, self._replies, self._session = commands, replies, session

    def ask(self, method: str, **given: Any) -> Any:
        """A command of the DevTools protocol, and what it gives."""
        return _ask(self._commands, self._replies, method, given, self._session)

    def js(self, expression: str) -> Any:
        """What an expression gives in the page; the page's policy does not bind it."""
        told = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def resize(self, width: int, height: int) -> None:
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def colours(self, scheme: str) -> None:
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def point(self, selector: str, number: int = 0) -> tuple[float, float]:
        """Move the mouse onto the first line of an element."""
        found = f"document.querySelectorAll({json.dumps(selector)})[{number}]"
        self.js(f"{found}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        box = f"(b => [b.x + Math.min(b.width / 2, 20), b.y + b.height / 2])({found}.getClientRects()[0])"
        x, y = self.js(box)
        self._mouse("mouseMoved", x, y)
        return x, y

    def away(self) -> None:
        """Move the mouse into the corner."""
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
        self.js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def picture(self) -> bytes:
        """What is seen, as PNG."""
        return base64.b64decode(self.ask("Page.captureScreenshot")["data"])

    def printed(self) -> str:
        """The text of the page on paper."""
        pdf = base64.b64decode(self.ask("Page.printToPDF", printBackground=True)["data"])
        return "\n".join(page.extract_text() for page in PdfReader(io.BytesIO(pdf)).pages)


def _ask(
    commands: IO[bytes], replies: IO[bytes], method: str, given: dict[str, Any], session: str = ""
) -> Any:
    named = {"sessionId": session} if session else {}
    commands.write(json.dumps({"id": 1, "method": method, "params": given, **named}).encode() + b"\0")
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
def opened(page: Path, profile: Path) -> Iterator[Tab]:
    """The file in a browser of its own."""
    to_read, commands = os.pipe()
    replies, to_write = os.pipe()
    command = [str(chromium()), *QUIET, *sandboxed(), f"--user-data-dir={profile}", "--remote-debugging-pipe"]
    browser = subprocess.Popen(
        [sys.executable, "-c", _AT_3_AND_4, str(to_read), str(to_write), *command, "about:blank"],
        pass_fds=(to_read, to_write),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_read)
    os.close(to_write)
    with os.fdopen(commands, "wb") as out, os.fdopen(replies, "rb") as back:
        try:
            yield _loaded(page, out, back)
        finally:
            browser.terminate()
            browser.wait()


def _loaded(page: Path, out: IO[bytes], back: IO[bytes]) -> Tab:
    target = _ask(out, back, "Target.createTarget", {"url": "about:blank"})["targetId"]
    session = _ask(out, back, "Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
    tab = Tab(out, back, session)
    tab.ask("Page.navigate", url=page.as_uri())
    tab.js(
        "new Promise(done => document.readyState === 'complete' ? done() : addEventListener('load', () => done()))"
    )
    return tab
