"""Web pages as Markdown: read in threads, kept for a while, and split into passages."""

import codecs
import re
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import islice
from urllib.parse import urlsplit

from langchain_core.documents import Document
from langchain_text_splitters import RecursiveCharacterTextSplitter

from stepcraft.concurrency import in_thread
from stepcraft.errors import FetchFailed
from stepcraft.index import Embedder, Entry, LocalIndex
from stepcraft.sources.isolated import Unparsed, isolated, prepare
from stepcraft.sources.web.fetch import Fetched
from stepcraft.sources.web.urls import shown
from stepcraft.text.clean import clean
from stepcraft.text.markdown import lines

_ALPHA = 0.4
"""The weight of the vectors in the ranking of passages, as in a corpus."""
_CHARACTERS = 1000
"""The most characters of a passage."""
_MAX_PASSAGES = 500
"""The most passages of a page that are ranked, as a whole book would take seconds."""
_SHORTEST = 80
"""Fewer characters are no page: a notice, or a page that a script would fill."""
_PARSER = "stepcraft.sources.web._article:article"
_SECONDS = 8.0
"""The time to parse one page."""
_FAILURES_S = 60
"""Seconds for which a failed page is not requested again."""

_CHARSETS = re.compile(
    r"utf-?(8|16)|us-ascii|iso-8859-\d+|(windows|cp)-?\d+|gb\w+|big5|shift_jis|euc-\w+|koi8-\w"
)
"""The charsets that are used; some other codecs of Python take very long on a hostile text."""
_BARRIER = re.compile(
    r"captcha|verify(?:ing)? (?:that )?you(?: are|'re) (?:a )?human|are you a robot|not a robot|unusual traffic"
    r"|enable javascript|checking your browser|just a moment|access denied|attention required",
    re.IGNORECASE,
)
_HEADING = re.compile(r"#{1,6}\s++(.*[^\s#])[\s#]*+")


@dataclass(frozen=True)
class Page:
    """A page without navigation and other boilerplate."""

    url: str
    title: str
    text: str
    """Markdown."""
    cut: bool = False
    """Whether the page is longer than what was fetched of it."""


def prepare_reading() -> None:
    """Start the process in which pages are parsed unless it runs; takes a second."""
    prepare(_PARSER)


def readable(fetched: Fetched) -> Page:
    """Extract the text of a fetched page; HTML is parsed in a process of its own.

    Raises:
        FetchFailed: there is no text on it, or only a demand for a browser or a human, or it cannot be parsed within
            the limits of size, seconds and memory.
    """
    title, text = _title_and_text(fetched)
    text = text.strip()
    barred = len(text) < 1500 and _BARRIER.search(f"{title} {text}")
    if barred or len(text) < _SHORTEST:
        reason = (
            f"it asks for a browser or a human ({barred[0]!r})"
            if barred
            else "there is no text on it"
        )
        raise FetchFailed(f"{shown(fetched.url)} cannot be read: {reason}")
    parts = urlsplit(fetched.url)
    name = parts.path.rstrip("/").rpartition("/")[2] or parts.netloc
    return Page(fetched.url, title or name, text, fetched.cut)


def _title_and_text(fetched: Fetched) -> tuple[str, str]:
    charset = fetched.charset and (fetched.charset if _is_used(fetched.charset) else "utf-8")
    if fetched.type not in {"text/html", "application/xhtml+xml"}:
        return "", clean(fetched.body.decode(charset or "utf-8", "replace"))
    try:
        found = isolated(_PARSER, fetched.body, seconds=_SECONDS, charset=charset)
    except Unparsed as error:
        raise FetchFailed(f"{shown(fetched.url)} cannot be read: {error}") from error
    return str(found["title"]), str(found["text"])


def _is_used(charset: str) -> bool:
    try:
        return bool(_CHARSETS.fullmatch(charset) and codecs.lookup(charset))
    except LookupError:
        return False


def ranked_passages(
    query: str, pages: Sequence[Page], k: int, embedder: Embedder | None
) -> list[Document]:
    """Return the k passages of some pages that fit a query best, best first.

    Args:
        query: what the passages are compared with, by words and, where there is an embedder, vectors.
        pages: the pages, of which the first 500 passages each are ranked.
        k: the number of passages.
        embedder: makes the vectors; None ranks by words alone.
    """
    passages: dict[str, Document] = {}
    for page in pages:
        for title, text in islice(_passages(page), _MAX_PASSAGES):
            name = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{page.url}\n{title}\n{text}"))
            passages[name] = Document(text, id=name, metadata={"title": title, "source": page.url})
    index = LocalIndex(":memory:", embedder)
    try:
        # The title says what a passage is about, which the passage itself often does not.
        entries = (
            Entry(name, f"{one.metadata['title']}\n{one.page_content}", {})
            for name, one in passages.items()
        )
        index.put(list(entries))
        hits = index.search(query, k, alpha=_ALPHA)
    finally:
        index.close()
    found: list[Document] = []
    for hit in hits:
        found.append(passages[hit.entry.id])
        found[-1].metadata["score"] = hit.score
    return found


def _passages(page: Page) -> Iterator[tuple[str, str]]:
    """The title and text of parts of about 1,000 characters, none of which reaches over a heading."""
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=_CHARACTERS,
        chunk_overlap=0,
        separators=["\n\n", "\n", ". ", "\u3002", " ", ""],
        keep_separator="end",
    )
    sections: list[tuple[str, list[str]]] = [("", [])]
    for line, in_code in lines(page.text[: _MAX_PASSAGES * _CHARACTERS]):
        if not in_code and (match := _HEADING.fullmatch(line.rstrip("\n"))):
            sections.append((match[1], []))
        else:
            sections[-1][1].append(line)
    for heading, body in sections:
        title = page.title if heading in {"", page.title} else f"{page.title}: {heading}"
        for part in splitter.split_text("".join(body)):
            yield title, part


@dataclass
class _Kept:
    page: Future[Page]
    until: float = float("inf")
    size: int = 0


class Pages:
    """A cache that reads pages in threads, several at once but few from one host. Thread-safe.

    Those who ask for a page at the same time share one reading; a failure is kept for a minute.

    Args:
        read: reads the page at a URL, in bounded time.
        at_once: the most pages that are read at the same time.
        per_host: the most of them from one host.
        minutes: how long a page is kept.
        size: the most characters that are kept in all; the oldest pages are dropped first.
        clock: returns the time in seconds.
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
        """Return the future of the page at a URL; never blocks."""
        with self._lock:
            self._drop_old()
            kept = self._kept.get(url)
            if kept is None:
                kept = self._kept[url] = _Kept(in_thread(lambda: self._read_in_turn(url)))
        return kept.page

    def _read_in_turn(self, url: str) -> Page:
        host = urlsplit(url).netloc
        with self._lock:
            of_host = self._hosts.setdefault(host, threading.BoundedSemaphore(self._per_host))
        seconds, size = float(_FAILURES_S), 0
        try:
            with of_host, self._turns:
                page = self._read(url)
            seconds, size = self._minutes * 60, len(page.text)
        finally:
            # Before the future is done, so that whoever asks next finds the page kept.
            with self._lock:
                kept = self._kept[url]
                kept.until, kept.size = self._clock() + seconds, size
        return page

    def _drop_old(self) -> None:
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
