"""What is asked of the search engines, and what becomes of their answers."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from stepcraft.errors import BadInput, SourceFailure
from stepcraft.sources.web.engines import Search, searxng, tavily
from stepcraft.sources.web.retriever import open_web
from tests.servers.pages_server import PagesServer, Served

ROWS = [
    {"url": "https://a.test/1", "title": "One"},
    {"url": "https://a.test/2"},
]
FOUND = ["https://a.test/1", "https://a.test/2"]


def answer(found: object) -> Served:
    return Served(json.dumps(found).encode(), type="application/json")


def test_what_tavily_is_asked():
    with PagesServer({"/search": answer({"results": ROWS})}) as server:
        assert tavily("tvly-sesame", server.url)("rye " * 200, 12) == FOUND
        (request,) = server.asked
    assert (request.method, request.path) == ("POST", "/search")
    assert request.headers["authorization"] == "Bearer tvly-sesame"
    assert json.loads(request.body) == {"query": "rye " * 100, "max_results": 12}


@pytest.mark.parametrize("path", ["", "/", "/search"])
def test_what_searxng_is_asked(path: str):
    with PagesServer({"/search": answer({"results": ROWS})}) as server:
        assert searxng(server.url + path)("rye & bread", 1) == FOUND[:1]
        (request,) = server.asked
    assert (request.method, request.path) == ("GET", "/search?q=rye+%26+bread&format=json")


def engines(url: str) -> list[Search]:
    return [tavily("tvly-sesame", url), searxng(url)]


@pytest.mark.parametrize("place", range(2))
@pytest.mark.parametrize(
    ("served", "why"),
    [
        (Served(b"", 401), r"answered 401 .*; check "),
        (Served(b"", 429), r"answered 429 \(too many requests\); check "),
        (Served(status=302, headers={"Location": "http://127.0.0.1:1/"}), "redirects more than 0"),
        (Served(b"<html>"), "it is 'text/html', and only application/json is read"),
        (Served(b"[" * 100_000, type="application/json"), "did not answer with results in JSON"),
        *(
            (answer(rows), "did not answer with results in JSON")
            for rows in ("x" * 2_100_000, [], {}, {"results": ["a"]})
        ),
    ],
)
def test_an_engine_that_fails(place: int, served: Served, why: str):
    with (
        PagesServer({"/search": served}) as server,
        pytest.raises(SourceFailure, match=why) as caught,
    ):
        engines(server.url)[place]("rye bread", 3)
    assert "sesame" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_engine_that_cannot_be_reached():
    with PagesServer({}) as server:
        url = server.url
    for engine in engines(url):
        with pytest.raises(SourceFailure, match=r"cannot be fetched: ConnectError"):
            engine("rye bread", 3)


def test_ddgs_without_a_network(monkeypatch: pytest.MonkeyPatch):
    with PagesServer({}) as server:
        monkeypatch.setenv("DDGS_PROXY", server.url)
    with pytest.raises(SourceFailure, match=r"^ddgs: no search engine answered: ") as caught:
        open_web("web").invoke("rye bread")
    assert "\n" not in str(caught.value)


def test_a_key_is_asked_for_before_any_work(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("TAVILY_API_KEY", raising=False)
    with pytest.raises(BadInput, match=r"^web:tavily needs a key: set TAVILY_API_KEY$"):
        open_web("web:tavily")
    monkeypatch.setenv("TAVILY_API_KEY", "open-sesame-now")
    source = open_web("web:tavily")
    assert "sesame" not in f"{source!r} {source.search!r}"


@pytest.mark.parametrize(
    "spec", ["web:bing", "web:searxng", "web:searxng+file:///etc", "web:ddgs+http://a.b"]
)
def test_a_spec_that_is_none(spec: str):
    with pytest.raises(BadInput, match=r"no web source goes by .*; name web, web:ddgs, "):
        open_web(spec)


def test_a_password_in_a_spec_is_not_shown():
    with pytest.raises(BadInput) as caught:
        open_web("web:searx+http://cook:sesame@a.test/")
    assert "sesame" not in str(caught.value)
    source = open_web("web:searxng+http://cook:sesame@a.test/")
    with pytest.raises(SourceFailure, match="without user and password") as failed:
        source.invoke("rye bread")
    assert "sesame" not in str(failed.value)


@pytest.mark.parametrize("spec", ["web", "web:ddgs", "web:searxng+http://a.test/"])
def test_opening_asks_nobody(spec: str):
    assert open_web(spec, k=7).k == 7


def test_packages_that_are_missing_are_named():
    """As where only the core is installed: the process finds all packages but these."""
    code = """
import sys
import importlib.machinery
real = importlib.machinery.PathFinder.find_spec

class Core:
    find_distributions = importlib.machinery.PathFinder.find_distributions

    @staticmethod
    def find_spec(name, path=None, target=None):
        return None if name in ("ddgs", "trafilatura") else real(name, path, target)

sys.meta_path[:] = [f for f in sys.meta_path if f is not importlib.machinery.PathFinder] + [Core]
from stepcraft.errors import BadInput
from stepcraft.sources.web.retriever import open_web
try:
    open_web("web")
except BadInput as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == (
        'web needs ddgs, trafilatura: pip install "stepcraft[web]"\n',
        "",
    )
