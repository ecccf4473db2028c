"""A model's reply that never ends, and one that comes when nobody waits for it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from stepcraft.errors import NoAnswer
from stepcraft.graphs.baselines import build_rag
from stepcraft.models.http import MAX_REPLY
from tests.kitchen import small_memory

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


class Endless:
    """Answers each request with a body without end, until the client hangs up."""

    def __init__(self, part: bytes, pause: float) -> None:
        self.part, self.pause = part, pause
        self.sent: list[int] = []
        """Bytes of each reply that has ended."""
        self.ended = threading.Event()
        self.socket = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self.serve, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.socket.getsockname()[1]}/v1"

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.reply, args=(connection,), daemon=True).start()

    def reply(self, connection: socket.socket) -> None:
        sent, chunk = 0, b"%x\r\n%b\r\n" % (len(self.part), self.part)
        with connection:
            connection.recv(65_536)
            connection.sendall(HEAD)
            try:
                while True:
                    connection.sendall(chunk)
                    sent += len(self.part)
                    time.sleep(self.pause)
            except OSError:
                self.sent.append(sent)
                self.ended.set()


@pytest.fixture
def flood() -> Iterator[Endless]:
    served = Endless(b" " * 1_000_000, 0)
    yield served
    served.socket.close()


@pytest.fixture
def drip() -> Iterator[Endless]:
    served = Endless(b" ", 0.02)
    yield served
    served.socket.close()


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sesame")


async def answer(way: str, model: str, **context: float) -> None:
    graph = build_rag(model=model, memory=small_memory())
    question = {"question": "How is tea made?"}
    if way == "sync":
        graph.invoke(question, context=context)
    else:
        await graph.ainvoke(question, context=context)


@pytest.mark.parametrize("way", ["sync", "async"])
async def test_an_endless_reply_is_cut_off(flood: Endless, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", flood.url)
    with pytest.raises(NoAnswer, match="the model could not be asked"):
        await answer(way, f"openai:endless-{way}", retry_wait_s=0)
    assert len(flood.sent) >= 2
    assert max(flood.sent) < MAX_REPLY + 20_000_000, "the buffers of the sockets are filled as well"


@pytest.mark.parametrize("way", ["sync", "async"])
async def test_a_reply_after_the_deadline_is_let_go(
    drip: Endless, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", drip.url)
    began = time.monotonic()
    with pytest.raises(NoAnswer, match="the deadline of 1 s has passed"):
        await answer(way, f"openai:late-{way}", deadline_s=1.0)
    assert time.monotonic() - began < 3
    assert drip.ended.wait(5), "the connection is still open"
