"""What a user sees when Weaviate is not there, refuses, or goes away: a clear error."""

import asyncio
import json
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import combinations, islice

import pytest

from stepcraft import Procedure, open_memory
from stepcraft.errors import AddStopped, StepcraftError
from stepcraft.memory.weaviate.url import parse_url
from tests.servers.ports import Ports
from tests.servers.weaviate_server import WeaviateServer

FOODS = """
    apple barley carrot dill eel fennel ginger honey jam kale lemon mint nut olive
    pepper quail rice salmon tomato vanilla walnut yeast butter cheese
"""


def procedures(count: int) -> Iterator[Procedure]:
    return (
        Procedure(output=f"dish {n}", input="flour", steps=[f"Mix {n}.", "Bake."])
        for n in range(count)
    )


def fails(match: str) -> AbstractContextManager[object]:
    return pytest.raises(StepcraftError, match=match)


@contextmanager
def serving(version: str, host: str = "127.0.0.1") -> Iterator[int]:
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

    class Server(HTTPServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

    with Server((host, 0), Meta) as server:
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
    with Ports(1) as (port,), fails("cannot be reached"):
        open_memory(f"weaviate://127.0.0.1:{port}/Dishes")


def test_no_such_host():
    with fails("cannot be reached"):
        open_memory("weaviate://no-such-host.invalid/Dishes")
    with fails("cannot be reached"):
        open_memory("weaviate+cloud://no-such-cluster.invalid/Dishes")


def test_a_server_that_does_not_answer():
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        with fails("did not answer within"):
            open_memory(f"weaviate://127.0.0.1:{mute.getsockname()[1]}/Dishes")


@pytest.mark.parametrize(
    ("version", "reason"),
    [("1.26.4", r"1\.26\.4 is not supported.*1\.27"), ("", "/Dishes failed: ")],
)
def test_a_server_too_old_or_of_something_else(version, reason):
    with serving(version) as port, fails(reason):
        open_memory(f"weaviate://127.0.0.1:{port}/Dishes")


def has_ipv6() -> bool:
    """Whether this machine has an IPv6 loopback."""
    with suppress(OSError), socket.create_server(("::1", 0), family=socket.AF_INET6):
        return True
    return False


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
def test_a_server_at_an_ipv6_address(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WEAVIATE_API_KEY", "secret")
    with serving("1.26.4", "::1") as port, fails(r"1\.26\.4 is not supported.*1\.27"):
        open_memory(f"weaviate://[::1]:{port}/Dishes")
    with (
        serving("1.39.1", "::1") as port,
        Ports(1) as (closed,),
        fails(rf"its gRPC port does not at \[::1\]:{closed}"),
    ):
        open_memory(f"weaviate://[::1]:{port}/Dishes?grpc={closed}")


@pytest.mark.parametrize("listed", ["kitchen,fd00::7", "[FD00::7]"])
def test_a_key_is_sent_to_an_ipv6_address_that_is_declared_private(
    listed: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("WEAVIATE_API_KEY", "secret")
    with fails(r"in the clear to \[?fd00::7"):
        parse_url("weaviate://[fd00::7]:8080/Dishes").key()
    monkeypatch.setenv("STEPCRAFT_KEY_HOSTS", listed)
    assert parse_url("weaviate://[fd00::7]:8080/Dishes").key() == "secret"
    with fails("in the clear to fd00"):
        parse_url("weaviate://fd00/Dishes").key()


def test_wrong_ports_and_tls(own_weaviate: WeaviateServer):
    http, grpc = own_weaviate.port, own_weaviate.grpc_port
    with Ports(1) as (closed,), fails("its gRPC port does not"):
        open_memory(f"weaviate://127.0.0.1:{http}/Dishes?grpc={closed}")
    with fails("Dishes.* failed: .*must be different"):
        open_memory(f"weaviate://127.0.0.1:{http}/Dishes?grpc={http}")
    with fails("cannot be reached.*check host, port"):
        open_memory(f"weaviate://127.0.0.1:{grpc}/Dishes?grpc={http}")
    with fails("cannot be reached.*tls="):
        open_memory(f"weaviate://127.0.0.1:{http}/Dishes?grpc={grpc}&tls=true")


def test_keys(own_weaviate: WeaviateServer, tmp_path, monkeypatch):
    settings = {
        "AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED": "false",
        "AUTHENTICATION_APIKEY_ENABLED": "true",
        "AUTHENTICATION_APIKEY_ALLOWED_KEYS": "right-secret",
        "AUTHENTICATION_APIKEY_USERS": "cook",
    }
    with WeaviateServer(tmp_path, settings) as server:
        with fails("refuses access; set WEAVIATE_API_KEY"):
            open_memory(server.url("Dishes"))
        monkeypatch.setenv("WEAVIATE_API_KEY", "wrong-secret")
        with fails("refuses access; set WEAVIATE_API_KEY"):
            open_memory(server.url("Dishes"))
        monkeypatch.setenv("WEAVIATE_API_KEY", "right-secret")
        with open_memory(server.url("Dishes"), embeddings="none") as memory:
            assert memory.add(procedures(3)).added == 3
            assert "secret" not in memory.name


def test_a_server_killed_and_started_again(own_weaviate: WeaviateServer, url: str):
    with open_memory(url, embeddings="wordllama") as memory:
        memory.add(procedures(3000))
        before = memory.search("dish 7", 5, alpha=0)
        reading = iter(memory)
        first = list(islice(reading, 1000))
        own_weaviate.kill()
        for attempt in (lambda: memory.search("dish 7"), memory.count, lambda: next(reading)):
            with fails("cannot be reached|failed"):
                attempt()
        with fails("cannot be reached|failed"):
            memory.add(procedures(1))
        with fails("cannot be reached|failed"):
            asyncio.run(memory.as_retriever().ainvoke("dish 7"))
        own_weaviate.start()
        after = memory.search("dish 7", 5, alpha=0)
        assert [hit.procedure for hit in after] == [hit.procedure for hit in before]
        # The words of what it reads from its log again weigh a little more or less.
        assert [hit.score for hit in after] == pytest.approx(
            [hit.score for hit in before], rel=0.01
        )
        assert len({item.id for item in memory}) == memory.count() == 3000
        assert len(first) == 1000
        # A killed server may lose what it had not yet written of its graph of neighbours.
        assert memory.search(next(procedures(1)).text(), 1, alpha=1)


def test_a_server_that_hangs(own_weaviate: WeaviateServer, url: str):
    with open_memory(url, embeddings="wordllama") as memory:
        memory.add(procedures(10))
        own_weaviate.freeze()
        try:
            with fails("did not answer"):
                memory.search("dish 7")
            with fails("did not answer"):
                open_memory(url)
        finally:
            own_weaviate.thaw()
        assert memory.add(procedures(11)).failed == []
        assert memory.count() == 11


def test_an_import_into_a_server_that_is_killed_is_completed_by_a_second_one(
    own_weaviate: WeaviateServer, url: str
):
    """Also what the server had taken and had not written when it was killed.

    Each dish has words of its own: numbers in digits give many equal vectors, among which a graph
    of neighbours does not find every one.
    """

    def kill_at(count: int) -> None:
        if count == 4000:
            own_weaviate.kill()

    names = islice(combinations(FOODS.split(), 4), 8000)
    known = [
        Procedure(output=" ".join(name), input="flour", steps=["Mix all.", "Bake."])
        for name in names
    ]
    changed = [replace(item, source="a book") for item in known]
    with open_memory(url, embeddings="wordllama") as memory:
        with pytest.raises(AddStopped, match="the first 4,000 procedures were processed") as stop:
            memory.add(known, progress=kill_at)
        assert (stop.value.done, stop.value.report.added) == (4000, 4000)
        own_weaviate.start()
        again = memory.add(known)
        assert again.failed == []
        assert again.added + again.present + again.updated == memory.count() == 8000
        # A killed server may lose what it had not yet written of its graph of neighbours, so some
        # of what it held before is not found by vectors.
        nearest = [
            memory.search(item.text(), 1, alpha=1)[0] for item in islice(known, 4000, None, 97)
        ]
        assert sum(hit.score > 0.999 for hit in nearest) >= 0.9 * len(nearest)
        with pytest.raises(AddStopped):
            memory.add(changed, progress=kill_at)
        own_weaviate.start()
        assert memory.add(changed).failed == []
        assert {item.id: item.source for item in memory} == {item.id: "a book" for item in known}
