"""The fetcher against servers that are slow, endless, wrong or hostile."""

from __future__ import annotations

import gzip
import itertools
import socket
import ssl
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
import trustme

from stepcraft.errors import BadInput, FetchFailed, FetchRefused
from stepcraft.sources.web.fetch import Fetched, Fetcher
from tests.servers.pages_server import PagesServer, Route, Served, html, redirect

SHORT, LATE = 0.6, "it did not answer in time"


def fetched(route: Route, total_s: float = 10) -> Fetched:
    with PagesServer({"/page": route}) as server:
        return Fetcher(allow_hosts=[server.host], total_s=total_s).fetch(f"{server.url}/page")


@contextmanager
def fails(match: str, kind: type[Exception] = FetchFailed) -> Iterator[None]:
    with pytest.raises(kind, match=match) as caught:
        yield
    assert "\n" not in str(caught.value)


def test_a_page_comes_with_its_type_and_charset():
    page = fetched(Served("r\u00f8d".encode("latin-1"), type="text/plain; charset=ISO-8859-1"))
    assert (page.body, page.type, page.charset, page.cut) == (
        b"r\xf8d",
        "text/plain",
        "iso-8859-1",
        False,
    )


async def test_a_page_is_fetched_in_a_thread_that_runs_an_event_loop():
    assert fetched(html("Rye.")).type == "text/html"


def test_the_server_sees_who_asks_and_no_cookie_or_credential(monkeypatch: pytest.MonkeyPatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    routes = {
        "/a": Served(status=302, headers={"Location": "/b", "Set-Cookie": "a=b"}),
        "/b": html("Rye."),
    }
    with PagesServer(routes) as server:
        Fetcher(allow_hosts=[server.host]).fetch(f"{server.url}/a")
        first, second = server.asked
    assert first.headers["user-agent"].startswith("stepcraft/")
    assert first.headers["host"] == server.host
    assert second.headers.keys().isdisjoint({"cookie", "authorization", "referer"})


def test_a_gzip_bomb_is_cut_and_takes_no_memory():
    bomb = gzip.compress(b"a" * 200_000_000)
    tracemalloc.start()
    page = fetched(Served(bomb, headers={"Content-Encoding": "gzip"}))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (len(page.body), page.cut) == (2_000_000, True)
    assert peak < 20_000_000


def test_an_endless_body_is_cut():
    page = fetched(Served(chunks=itertools.repeat(b"rye " * 4096)))
    assert (len(page.body), page.cut) == (2_000_000, True)


ENDLESS = itertools.chain([b"HTTP/1.1 200 OK\r\nX-A: "], itertools.repeat(b"a" * 8192))
DRIP = itertools.chain([b"HTTP/1.1 200 OK\r\n"], itertools.repeat(b"X-A: b\r\n"))
FAILING: dict[str, tuple[Served, str]] = {
    **{
        f"the encoding {encoding:.8}": (
            Served(b"a", headers={"Content-Encoding": encoding}),
            "its encoding '.{2,40}' was not asked for$",
        )
        for encoding in ("br", "gzip, gzip", "x" * 500)
    },
    **{
        f"the type {kind}": (Served(b"{}", type=kind), "it is .*, and only text/html, .* is read")
        for kind in ("application/json", "nonsense", "", None)
    },
    **{
        f"the status {status}": (Served(b"", status), f"the server answered {status}")
        for status in (204, 401, 404, 429, 503)
    },
    "broken compression": (
        Served(b"no gzip", headers={"Content-Encoding": "gzip"}),
        ".*incorrect header check",
    ),
    "a redirect loop": (redirect("/page"), "it redirects more than 5 times"),
    "a cut stream": (Served(b"a" * 5000, length=10_000), ".*peer closed connection"),
    "no HTTP": (Served(b"SSH-2.0-OpenSSH_9.6\r\n", raw=True), ""),
    "an endless header": (Served(chunks=ENDLESS, raw=True), ""),
    "headers that drip": (Served(chunks=DRIP, raw=True, pause=0.05), LATE),
    "a body that drips": (Served(chunks=itertools.repeat(b"a"), pause=0.05), LATE),
    "a server that says nothing": (Served(pause=5), LATE),
    "redirects without end": (Served(status=302, headers={"Location": "/page"}, pause=0.2), LATE),
}


@pytest.mark.parametrize(("route", "why"), FAILING.values(), ids=FAILING)
def test_what_is_no_page_is_one_sentence(route: Served, why: str):
    with fails(f"/page cannot be fetched: {why}"):
        fetched(route, SHORT if why == LATE else 10)


def test_a_name_that_is_never_resolved():
    with fails(r"pages\.test/ cannot be fetched: it did not answer in time"):
        Fetcher(resolve=lambda host, port: time.sleep(5) or [], total_s=SHORT).fetch(
            "http://pages.test/"
        )


def test_a_name_that_has_no_address():
    def resolve(host: str, port: int) -> list[str]:
        raise OSError(-2, "Name or service not known")

    with fails(r"^http://pages\.test/a\?… cannot be fetched: .*Name or service not known"):
        Fetcher(resolve=resolve).fetch("http://pages.test/a?token=sesame")


def test_five_redirects_are_followed():
    routes = {f"/{number}": redirect(f"/{number + 1}") for number in range(5)} | {
        "/5": html("Rye.")
    }
    with PagesServer(routes) as server:
        assert Fetcher(allow_hosts=[server.host]).fetch(f"{server.url}/0").url == f"{server.url}/5"


@pytest.mark.parametrize(
    ("where", "why"),
    [
        (
            "http://169.254.169.254/latest/",
            r"has the address 169\.254\.169\.254, which is not public",
        ),
        ("http://localhost:22/", r"localhost has the address .* is not public"),
        ("http://2130706433/", r"2130706433 has the address 127\.0\.0\.1, which is not public"),
        ("file:///etc/passwd", "no http or https URL"),
        ("http://cook:sesame@example.com/", "without user and password"),
        ("http://example.com:port/", "Invalid port"),
    ],
)
def test_a_redirect_to_where_nothing_is_fetched(where: str, why: str):
    with fails(why):
        fetched(redirect(where))


def test_a_redirect_to_another_port_of_an_allowed_host_is_refused():
    with PagesServer({"/": html("Secret.")}) as inner:
        with fails(r"has the address 127\.0\.0\.1, which is not public", FetchRefused):
            fetched(redirect(f"{inner.url}/"))
        assert inner.asked == []


@pytest.mark.parametrize(
    "host", ["Pages.TEST", "b\u00fccher.test", "xn--bcher-kva.test", "[::1]", "[::1]:80"]
)
def test_an_allowed_host_is_the_same_however_it_is_written(host: str):
    allowed = Fetcher(
        allow_hosts=[host], resolve=lambda *_: ["127.0.0.1"], network=lambda: Detour(1)
    )
    with fails("cannot be fetched: ConnectError"):
        allowed.fetch(f"http://{host.lower()}/")


@pytest.mark.parametrize("host", ["", "http://a.b", "a b", "a.b/path", "cook@a.b", "a.b:port"])
def test_what_is_no_host_cannot_be_allowed(host: str):
    with fails("is no host: allow a name or name:port", BadInput):
        Fetcher(allow_hosts=[host])


class Detour(httpx.AsyncHTTPTransport):
    """Notes the addresses that are connected to, and connects to a local server instead."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self.port = port
        self.addresses: list[str] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.addresses.append(request.url.host)
        request.url = request.url.copy_with(host="127.0.0.1", port=self.port)
        return await super().handle_async_request(request)


def test_a_name_that_changes_its_address_after_the_check():
    answers = iter([["93.184.216.34"], ["127.0.0.1"]])
    with PagesServer({"/page": html("Rye.")}) as server:
        network = Detour(server.port)
        Fetcher(resolve=lambda host, port: next(answers), network=lambda: network).fetch(
            "http://pages.test/page"
        )
        (request,) = server.asked
    assert network.addresses == ["93.184.216.34"]
    assert next(answers) == ["127.0.0.1"]
    assert request.headers["host"] == "pages.test"


def test_a_redirect_to_another_name_is_resolved_and_checked_again():
    addresses = {"pages.test": ["93.184.216.34"], "inner.test": ["10.0.0.7"]}
    with PagesServer({"/page": redirect("http://inner.test/")}) as server:
        network = Detour(server.port)
        with fails(
            r"^http://inner\.test/ cannot be fetched: inner\.test has the address 10\.0\.0\.7"
        ):
            Fetcher(resolve=lambda host, port: addresses[host], network=lambda: network).fetch(
                "http://pages.test/page"
            )
    assert network.addresses == ["93.184.216.34"]


def test_the_next_address_is_tried():
    with PagesServer({"/page": html("Rye.")}) as server:
        url = f"http://pages.test:{server.port}/page"
        addresses = ["127.0.0.99", "127.0.0.1"]
        fetcher = Fetcher(
            resolve=lambda host, port: addresses, allow_hosts=[f"pages.test:{server.port}"]
        )
        assert fetcher.fetch(url).type == "text/html"


@contextmanager
def over_tls(name: str) -> Iterator[tuple[PagesServer, ssl.SSLContext]]:
    """A server whose certificate is for a name, and a context that trusts who signed it."""
    authority = trustme.CA()
    serving, trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert(name).configure_cert(serving)
    authority.configure_trust(trusting)
    with PagesServer({"/page": html("Rye.")}, serving) as server:
        yield server, trusting


def test_the_certificate_is_verified_for_the_name_not_the_address():
    with over_tls("pages.test") as (server, trusting):
        names = ["pages.test", "other.test"]
        fetcher = Fetcher(
            allow_hosts=names,
            resolve=lambda host, port: ["127.0.0.1"],
            network=lambda: httpx.AsyncHTTPTransport(verify=trusting),
        )
        assert fetcher.fetch(f"https://pages.test:{server.port}/page").type == "text/html"
        with fails("certificate verify failed"):
            fetcher.fetch(f"https://other.test:{server.port}/page")
        (request,) = server.asked
    assert request.headers["host"] == f"pages.test:{server.port}"


def test_a_handshake_that_never_comes():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host = f"127.0.0.1:{silent.getsockname()[1]}"
        with fails("did not answer in time"):
            Fetcher(allow_hosts=[host]).fetch(f"https://{host}/")
