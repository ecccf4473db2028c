"""Pages that were read, kept for a while: those who ask for one at the same time share the reading."""

import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from urllib.parse import urlsplit

from stepcraft.concurrency import in_thread
from stepcraft.sources.web.readable import Page

_FAILURES_S = 60
"""How long a page that failed is not asked for again."""


@dataclass
class _Kept:
    page: Future[Page]
    until: float = float("inf")
    size: int = 0


class Pages:
    """Reads pages in threads: so many at once, and fewer from one host. Any thread and any event loop may ask.

    Args:
        read: what reads the page at a URL, in bounded time.
        at_once: how many pages are read at the same time.
        per_host: how many of them from one host.
        minutes: how long a page is kept.
        size: how many characters are kept in all; the oldest pages go first.
        clock: what tells the time, in seconds.
    """

    def __init__(
        self,
        read: Callable[[str], Page],
        *,
        at_once: int = 16,
        per_host: int = 2,
        minutes: float = 15,
        size: int = 20_000_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._turns = threading.BoundedSemaphore(at_once)
        self._per_host = per_host
        self._hosts: weakref.WeakValueDictionary[str, threading.BoundedSemaphore] = (
            weakref.WeakValueDictionary()
        )
        self._minutes = minutes
        self._size = size
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: dict[str, _Kept] = {}

    def get(self, url: str) -> Future[Page]:
        """The page at a URL, now or soon."""
        with self._lock:
            self._forget()
            kept = self._kept.get(url)
            if kept:
                return kept.page
            kept = self._kept[url] = _Kept(in_thread(lambda: self._in_turn(url)))
        return kept.page

    def _in_turn(self, url: str) -> Page:
        host = urlsplit(url).netloc
        with self._lock:
            of_host = self._hosts.setdefault(host, threading.BoundedSemaphore(self._per_host))
        seconds, size = float(_FAILURES_S), 0
        try:
            with of_host, self._turns:
                page = self._read(url)
            seconds, size = self._minutes * 60, len(page.text)
        finally:
            # Before anybody has the page: whoever asks next finds it kept.
            with self._lock:
                kept = self._kept[url]
                kept.until, kept.size = self._clock() + seconds, size
        return page

    def _forget(self) -> None:
        now = self._clock()
        for url in [url for url, kept in self._kept.items() if kept.until <= now]:
            del self._kept[url]
        total = sum(kept.size for kept in self._kept.values())
        for url, kept in list(self._kept.items()):
            if total <= self._size:
                break
            if kept.size:
                total -= kept.size
                del self._kept[url]
