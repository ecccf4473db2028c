"""How many pages are read at once, and how long they are kept."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from stepcraft.errors import FetchFailed
from stepcraft.sources.web.pages import Page, Pages


class Site:
    """Counts who reads, and lets nobody finish before it is told to."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.reads: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self._here: Counter[str] = Counter()
        self._changed = threading.Condition()

    def read(self, url: str) -> Page:
        host = url.split("/")[2]
        with self._changed:
            self.reads[url] += 1
            self._here.update([host, "all"])
            for place in (host, "all"):
                self.most[place] = max(self.most[place], self._here[place])
            self._changed.notify_all()
        assert self.open.wait(10)
        with self._changed:
            self._here.subtract([host, "all"])
        if "bad" in url:
            raise FetchFailed(f"{url} is bad")
        return Page(url, "title", "text" * 25)

    def wait_for(self, readers: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self._here["all"] == readers, 10)


@pytest.fixture
def site() -> Site:
    return Site()


def test_one_page_of_a_host_at_a_time(site: Site):
    pages = Pages(site.read)
    found = [pages.get(f"http://{host}.test/{number}") for host in "abcd" for number in range(5)]
    site.wait_for(4)
    site.open.set()
    assert len({future.result(10).url for future in found}) == 20
    assert max(site.most[f"{host}.test"] for host in "abcd") == 1


def test_those_who_ask_at_the_same_time_share_a_reading(site: Site):
    pages = Pages(site.read)
    found = [pages.get("http://a.test/") for _ in range(10)]
    site.open.set()
    assert len({id(future.result(10)) for future in found}) == 1
    assert site.reads == {"http://a.test/": 1}


def test_pages_are_kept_for_up_to_five_minutes_and_failures_are_not(site: Site):
    site.open.set()
    now = [0.0]
    pages = Pages(site.read, clock=lambda: now[0])
    for at in (0, 299, 301, 599, 601):
        now[0] = at
        assert pages.get("http://a.test/good").exception(10) is None
        assert pages.get("http://a.test/bad").exception(10) is not None
    assert site.reads == {"http://a.test/good": 3, "http://a.test/bad": 5}
