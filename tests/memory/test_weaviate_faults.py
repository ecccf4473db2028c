"""What a user sees when Weaviate is not there, refuses, or goes away: a clear error within five seconds."""

import asyncio
import json
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import islice

import pytest

from stepcraft import Procedure, open_memory
from stepcraft.errors import AddStopped, StepcraftError
from stepcraft.memory.weaviate.memory import WeaviateMemory
from stepcraft.memory.weaviate.program import Ports
from tests.servers.weaviate_server import WeaviateServer

LIMIT_S = 5.0


def procedures(count: int) -> Iterator[Procedure]:
    return (
        Procedure(output=f"dish {n}", input="flour", steps=[f"Mix {n}.", "Bake."])
        for n in range(count)
    )


@contextmanager
def fails_soon(match: str) -> Iterator[None]:
    start = time.monotonic()
    with pytest.raises(StepcraftError, match=match):
        yield
    assert time.monotonic() - start < LIMIT_S


@contextmanager
def serving(version: str) -> Iterator[int]:
    """Something that answers as a Weaviate of another version."""

    class Meta(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"version": version} if version else []).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with HTTPServer(("127.0.0.1", 0), Meta) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.fixture
def url(own_weaviate: WeaviateServer) -> Iterator[str]:
    yield own_weaviate.url(f"Test{uuid.uuid4().hex}")
    if not own_weaviate.pid:
        own_weaviate.start()


def test_nobody_listens():
    with Ports(1) as (port,), fails_soon("Connection refused"):
        open_memory(f"weaviate://127.0.0.1:{port}/Dishes")


def test_no_such_host():
    with fails_soon("cannot be reached"):
        open_memory("weaviate://no-such-host.invalid/Dishes")
    with fails_soon("cannot be reached"):
        open_memory("weaviate+cloud://no-such-cluster.invalid/Dishes")


def test_a_server_that_does_not_answer():
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        with fails_soon("did not answer within"):
            open_memory(f"weaviate://127.0.0.1:{mute.getsockname()[1]}/Dishes")


@pytest.mark.parametrize(
    ("version", "reason"),
    [("1.26.4", r"is Weaviate 1\.26\.4, which is too old; it takes 1\.27"), ("", "no Weaviate")],
)
def test_a_server_too_old_or_of_something_else(version, reason):
    with serving(version) as port, fails_soon(reason):
        open_memory(f"weaviate://127.0.0.1:{port}/Dishes")


def test_wrong_ports_and_tls(own_weaviate: WeaviateServer):
    http, grpc = own_weaviate.port, own_weaviate.grpc_port
    with Ports(1) as (closed,), fails_soon("its gRPC port does not"):
        open_memory(f"weaviate://127.0.0.1:{http}/Dishes?grpc={closed}")
    with fails_soon("its gRPC port does not"):
        open_memory(f"weaviate://127.0.0.1:{http}/Dishes?grpc={http}")
    with fails_soon("does not speak plain HTTP"):
        open_memory(f"weaviate://127.0.0.1:{grpc}/Dishes?grpc={grpc}")
    with fails_soon("over TLS"):
        open_memory(f"weaviate://127.0.0.1:{http}/Dishes?grpc={grpc}&tls=true")


def test_keys(own_weaviate: WeaviateServer, tmp_path, monkeypatch):
    settings = {
        "AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED": "false",
        "AUTHENTICATION_APIKEY_ENABLED": "true",
        "AUTHENTICATION_APIKEY_ALLOWED_KEYS": "right-secret",
        "AUTHENTICATION_APIKEY_USERS": "cook",
    }
    with WeaviateServer(tmp_path, settings) as server:
        with fails_soon("asks for a key; set WEAVIATE_API_KEY"):
            open_memory(server.url("Dishes"))
        monkeypatch.setenv("WEAVIATE_API_KEY", "wrong-secret")
        with fails_soon("refuses the key; set WEAVIATE_API_KEY"):
            open_memory(server.url("Dishes"))
        monkeypatch.setenv("WEAVIATE_API_KEY", "right-secret")
        with open_memory(server.url("Dishes"), embeddings="none") as memory:
            assert memory.add(procedures(3)).added == 3
            assert "secret" not in memory.name


def test_a_server_killed_and_started_again(own_weaviate: WeaviateServer, url: str):
    with open_memory(url, embeddings="wordllama") as memory:
        memory.add(procedures(3000))
        before = memory.search("dish 7", 5)
        reading = iter(memory)
        first = list(islice(reading, 1000))
        own_weaviate.kill()
        for attempt in (lambda: memory.search("dish 7"), memory.count, lambda: next(reading)):
            with fails_soon("cannot be reached|failed"):
                attempt()
        with fails_soon("cannot be reached|failed"):
            memory.add(procedures(1))
        with fails_soon("cannot be reached|failed"):
            asyncio.run(memory.as_retriever().ainvoke("dish 7"))
        own_weaviate.start()
        assert memory.search("dish 7", 5) == before
        assert len({item.id for item in memory}) == memory.count() == 3000
        assert len(first) == 1000
        assert memory.search(next(procedures(1)).text(), 1, alpha=1)[0].procedure.output == "dish 0"


def test_a_server_that_hangs(own_weaviate: WeaviateServer, url: str):
    with open_memory(url, embeddings="wordllama") as memory:
        memory.add(procedures(10))
        own_weaviate.freeze()
        try:
            with fails_soon("did not answer"):
                memory.search("dish 7")
            with fails_soon("did not answer"):
                memory.add(procedures(11))
            with fails_soon("did not answer"):
                open_memory(url)
        finally:
            own_weaviate.thaw()
        assert memory.add(procedures(11)).failed == []
        assert memory.count() == 11


class Restart:
    """The progress of an import, at a point of which the server is killed and started again."""

    def __init__(self, server: WeaviateServer, count: int) -> None:
        self.server = server
        self.count = count
        self.starting = threading.Thread(target=server.start)

    def __call__(self, count: int) -> None:
        if count == self.count:
            self.server.kill()
            self.starting.start()


def test_an_import_waits_for_a_server_that_was_killed(own_weaviate: WeaviateServer, url: str):
    restart = Restart(own_weaviate, 3000)
    with open_memory(url, embeddings="wordllama") as memory:
        report = memory.add(procedures(6000), progress=restart)
        restart.starting.join()
        assert (report.added, report.present, report.updated, report.failed) == (6000, 0, 0, [])
        assert {item.id for item in memory} == {item.id for item in procedures(6000)}
        for item in islice(procedures(6000), 2950, 5050, 100):
            assert memory.search(item.text(), 1, alpha=1)[0].score > 0.999


def test_updates_that_a_killed_server_forgot_are_sent_again(own_weaviate: WeaviateServer, url: str):
    before = list(procedures(3000))
    changed = [replace(item, source="a book") for item in before]
    again = [replace(item, source="the last book") for item in changed[500:1000]]
    with open_memory(url, embeddings="wordllama") as memory:
        memory.add(before)

        def kill_and_forget(count: int) -> None:
            if count == 1000:
                own_weaviate.kill()
                own_weaviate.start()
                assert memory.add(before[:500]).updated == 500

        given = [*changed[:2000], *again, *changed[2000:]]
        report = memory.add(given, progress=kill_and_forget)
        assert (report.added, report.present, report.updated, report.failed) == (0, 0, 3500, [])
        assert {item.id: item.source for item in memory} == {
            item.id: item.source for item in [*changed, *again]
        }


def test_an_import_whose_server_stays_away_tells_what_is_in(own_weaviate: WeaviateServer, url: str):
    def kill_at(count: int) -> None:
        if count == 4000:
            own_weaviate.kill()

    known = list(procedures(10_000))
    with WeaviateMemory(url, embeddings="wordllama", reconnect_timeout_s=1) as memory:
        with pytest.raises(
            AddStopped, match=r"the first 4,000 procedures were dealt with.*add again"
        ) as stop:
            memory.add(known, progress=kill_at)
        report, sent = stop.value.report, stop.value.report.added + len(stop.value.in_doubt)
        assert (stop.value.done, report.failed) == (4000, [])
        assert {item.id for item in known[4000:sent]} >= set(stop.value.in_doubt)
        own_weaviate.start()
        again = memory.add(known)
        assert (again.updated, again.failed) == (0, [])
        assert again.added + again.present == memory.count() == 10_000
        assert {item.id for item in memory} == {item.id for item in known}
