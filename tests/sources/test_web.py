"""The web as a source, against a local server that plays SearXNG and the pages that it names."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests
from pydantic import ValidationError

from stepcraft.errors import SourceFailure
from stepcraft.evidence import NOTES
from stepcraft.sources.web import WebSource, open_web
from tests.servers.pages_server import Asked, PagesServer, Route, Served, html

RYE = html(
    "Rye bread is baked from rye flour and a sourdough starter, which makes it keep for a week.",
    "The dough of a rye bread is sticky, since rye flour has little gluten.",
    title="Rye bread",
)
YOGHURT = html(
    "Yoghurt is made of milk that is warmed to forty degrees, with a spoon of old yoghurt in it.",
    "It stands for eight hours in a warm place, and is then put into the fridge.",
    title="Yoghurt",
)
TEA = html(
    "Green tea is brewed with water of eighty degrees, for two minutes and no longer than that.",
    "Black tea takes boiling water and three to five minutes, depending on the leaves.",
    title="Tea",
)


def found(*paths: str) -> Callable[[Asked], Served]:
    """SearXNG's answer; a path stands for a page of the same server."""

    def answer(request: Asked) -> Served:
        base = f"http://{request.headers['host']}"
        rows = [{"url": path if "://" in path else base + path, "title": path} for path in paths]
        return Served(json.dumps({"results": rows}).encode(), type="application/json")

    return answer


@contextmanager
def the_web(*paths: str, k: int = 5, **routes: Route) -> Iterator[tuple[WebSource, PagesServer]]:
    """The pages by their names, found in this order, and a source that reads them."""
    search = {"/searx/search": found(*(path if "://" in path else f"/{path}" for path in paths))}
    with PagesServer(search | {f"/{name}": page for name, page in routes.items()}) as server:
        yield open_web(f"web:searxng+{server.url}/searx/", k=k, allow_hosts=[server.host]), server


class TestWeb(RetrieversIntegrationTests):
    """The suite that LangChain has for retrievers."""

    @pytest.fixture(autouse=True)
    def _source(self):
        with the_web("rye", "yoghurt", "tea", rye=long_page(20), yoghurt=YOGHURT, tea=TEA) as (
            self.source,
            _,
        ):
            yield

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return WebSource

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"search": self.source.search, "reader": self.source.reader}

    @property
    def retriever_query_example(self) -> str:
        return "rye bread"


def long_page(headings: int) -> Served:
    body = "".join(
        f"<h2>Loaf {number}</h2><p>{f'Loaf {number} of the rye bread takes {number} hours in the oven. ' * 8}</p>"
        for number in range(headings)
    )
    page = f"<html><head><title>Loaves</title></head><body><article><h1>Loaves</h1>{body}</article></body></html>"
    return Served(page.encode())


def test_the_passage_that_fits_comes_first_with_its_source():
    with the_web("tea", "rye", "yoghurt", rye=RYE, tea=TEA, yoghurt=YOGHURT) as (source, server):
        first, *rest = source.invoke("why is the dough of rye bread sticky")
    assert "little gluten" in first.page_content
    assert (first.metadata["title"], first.metadata["source"]) == ("Rye bread", f"{server.url}/rye")
    scores = [document.metadata["score"] for document in (first, *rest)]
    assert scores == sorted(scores, reverse=True)
    assert "notes" not in first.metadata


def test_k_may_come_with_the_call():
    with the_web("loaves", loaves=long_page(20), k=2) as (source, _):
        assert len(source.invoke("rye bread")) == 2
        assert len(asyncio.run(source.ainvoke("rye bread", k=7))) == 7
    with pytest.raises(ValidationError):
        open_web("web", k=0)


def test_a_heading_is_in_the_title_and_no_passage_is_long():
    with the_web("loaves", loaves=long_page(20)) as (source, _):
        first, *rest = source.invoke("loaf 7", k=30)
    assert first.metadata["title"] == "Loaves › Loaf 7"
    assert all(0 < len(document.page_content) <= 1000 for document in (first, *rest))


def test_plain_text_and_markdown_are_read():
    text = Served(
        b"# Rye\n\n" + b"Rye bread is made of rye flour and a starter. " * 4, type="text/markdown"
    )
    with the_web("rye.md", **{"rye.md": text}) as (source, _):
        (document,) = source.invoke("rye bread")
    assert document.metadata["title"] == "Rye"


def test_a_page_of_which_only_the_beginning_is_read_is_noted():
    text = Served(b"Rye bread is made of rye flour and a starter.\n\n" * 50_000, type="text/plain")
    with the_web("rye", rye=text) as (source, server):
        first, *_ = source.invoke("rye bread")
    (note,) = first.metadata[NOTES]
    assert note.startswith(f"{server.url}/rye: only its beginning was fetched")


def test_a_charset_is_heeded():
    page = html(
        "R\u00f8get laks p\u00e5 rugbr\u00f8d er en god frokost, siger de fleste danskere. " * 3,
        title="Rugbr\u00f8d",
    )
    latin = Served(page.body.decode().encode("latin-1"), type="text/html; charset=iso-8859-1")
    with the_web("rye", rye=latin) as (source, _):
        (document,) = source.invoke("rugbr\u00f8d")
    assert document.metadata["title"] == "Rugbr\u00f8d"
    assert document.page_content.startswith("R\u00f8get laks p\u00e5")


BAD: dict[str, tuple[Served, str]] = {
    "gone": (
        Served(b"no such page", 404),
        r"/gone cannot be fetched: the server answered 404 \(not found\)",
    ),
    "empty": (html(""), "/empty cannot be read: there is no text on it"),
    "inner": (
        Served(status=302, headers={"Location": "http://10.0.0.1/"}),
        r"10\.0\.0\.1, which is not public",
    ),
    "cut": (Served(b"<p>", length=1000), "/cut cannot be fetched: .*peer closed connection"),
}


@pytest.mark.parametrize("name", BAD)
def test_the_next_result_takes_the_place_of_a_bad_page(name: str):
    page, reason = BAD[name]
    with the_web(
        name, "rye", "tea", "yoghurt", "more", rye=RYE, tea=TEA, yoghurt=YOGHURT, **{name: page}
    ) as (
        source,
        server,
    ):
        first, *_ = documents = source.invoke("rye bread")
    assert {document.metadata["title"] for document in documents} == {"Rye bread", "Tea", "Yoghurt"}
    (note,) = first.metadata[NOTES]
    assert re.search(reason, note)
    assert "/more" not in server.paths


def test_nothing_that_can_be_read_is_a_failure_with_the_reasons():
    pages = {name: BAD[name][0] for name in ("gone", "empty")}
    why = r"^no page that the web search names can be read: .*404.*there is no text on it$"
    with the_web(*pages, **pages) as (source, _), pytest.raises(SourceFailure, match=why):
        source.invoke("rye bread")


def test_a_search_that_knows_nothing_gives_nothing_and_one_without_words_asks_nobody():
    with the_web() as (source, server):
        assert source.invoke(" \n ") == []
        assert server.asked == []
        assert source.invoke("rye bread") == []


def test_a_page_is_fetched_once_and_what_failed_once_a_search():
    with the_web("rye", "gone", rye=RYE, gone=BAD["gone"][0]) as (source, server):
        for query in ("rye bread", "sticky dough"):
            source.invoke(query)
        pages = sorted(path for path in server.paths if "search" not in path)
        assert pages == ["/gone", "/gone", "/rye"]


def test_searches_from_threads_and_event_loops_share_pages():
    slow = Served(RYE.body, pause=0.2)
    with the_web("rye", "tea", rye=slow, tea=TEA) as (source, server):

        async def several() -> list[list[Any]]:
            return list(await asyncio.gather(*(source.ainvoke("rye bread") for _ in range(5))))

        with ThreadPoolExecutor() as threads:
            results = [*threads.map(lambda _: asyncio.run(several()), range(4))]
        assert all(documents == results[0][0] for result in results for documents in result)
        assert server.paths.count("/rye") == server.paths.count("/tea") == 1


def test_a_caller_that_gives_up_hears_no_more(caplog: pytest.LogCaptureFixture):
    released = threading.Event()

    def search(query: str, count: int) -> list[str]:
        released.wait(10)
        return []

    async def hasty() -> None:
        async with asyncio.timeout(0.1):
            await open_web("web", search=search).ainvoke("rye bread")

    with pytest.raises(TimeoutError):
        asyncio.run(hasty())
    released.set()
    for thread in threading.enumerate():
        if thread.name == "stepcraft-source":
            thread.join(10)
    assert caplog.records == []


def test_pages_that_do_not_come_in_time_are_left():
    with the_web("slow", "tea", slow=Served(RYE.body, pause=5), tea=TEA) as (source, server):
        hasty = source.model_copy(update={"pages_s": 0.5})
        source.reader.get(f"{server.url}/tea").result()
        first, *_ = hasty.invoke("tea")
    assert re.search("/slow did not come within 0.5 s", *first.metadata[NOTES])


def test_a_search_of_ones_own():
    asked: list[tuple[str, int]] = []

    def search(query: str, count: int) -> list[str]:
        asked.append((query, count))
        return [f"{server.url}/rye#history", f"{server.url}/rye"]

    with PagesServer({"/rye": RYE}) as server:
        open_web("web", search=search, allow_hosts=[server.host]).invoke(
            "  rye \n bread " + "a" * 2000
        )
        assert server.paths == ["/rye"]
    assert asked == [("rye bread " + "a" * 990, 12)]


def test_hosts_may_be_allowed_by_the_environment(monkeypatch: pytest.MonkeyPatch):
    with PagesServer({"/rye": RYE}) as server:
        monkeypatch.setenv("STEPCRAFT_ALLOW_HOSTS", f"wiki.test, {server.host}")
        source = open_web("web", search=lambda query, count: [f"{server.url}/rye"])
        assert source.invoke("rye bread")[0].metadata["source"] == f"{server.url}/rye"
