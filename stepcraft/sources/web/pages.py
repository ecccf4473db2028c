"""Web pages as Markdown, read in threads and cached for a while."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import urlsplit

from langchain_core.documents import Document

from stepcraft.concurrency import OncePerKey, shared_lock
from stepcraft.encoding import Unreadable, decoded
from stepcraft.errors import FetchFailed
from stepcraft.index import Embedder, Entry, LocalIndex
from stepcraft.sources.corpus.content import MARKDOWN, markdown_content
from stepcraft.sources.corpus.passages import passages_of
from stepcraft.sources.isolated import isolated
from stepcraft.sources.passage import ALPHA, passage_of
from stepcraft.sources.web.fetch import Fetched
from stepcraft.sources.web.urls import shown_url
from stepcraft.text.clean import clean
from stepcraft.text.markdown import as_shown

_MAX_PASSAGES = 500
"""The maximum number of passages ranked per page, since ranking a whole book would take seconds."""
_SHORTEST = 80
"""The minimum number of characters in a page; a shorter one is a notice, or is filled in by a
script.
"""
_PARSER = "stepcraft.sources.parse.article:article"
_SECONDS = 8.0
"""The maximum processor time for parsing a page."""
_KEPT_S = 300
"""The maximum number of seconds for which a page is cached."""


class Page(NamedTuple):
    """A page without navigation and other boilerplate."""

    url: str
    title: str
    text: str
    """The text, as Markdown."""
    note: str = ""
    """What is missing in the text, or "" if nothing is."""


def readable(fetched: Fetched) -> Page:
    """Extract the text of a fetched page; HTML is parsed in a separate process.

    Raises:
        FetchFailed: The page has no text, or cannot be parsed within the limits on size, time and
            memory.
    """
    body, charset = fetched.body, fetched.charset
    parts = urlsplit(fetched.url)
    path = PurePosixPath(parts.path)
    is_html = "html" in fetched.type
    # The suffix counts, whatever content type the server declares.
    is_markdown = not is_html and ("markdown" in fetched.type or path.suffix.lower() in MARKDOWN)
    try:
        if is_html:
            title, text = isolated(_PARSER, body, seconds=_SECONDS, charset=charset)
        else:
            title, text = "", decoded(body, charset)[0]
    except Unreadable as error:
        raise FetchFailed(f"{shown_url(fetched.url)} cannot be read: {error}") from error
    text = as_shown(clean(text), comments=is_markdown).strip()
    if len(text) < _SHORTEST:
        raise FetchFailed(f"{shown_url(fetched.url)} cannot be read: there is no text on it")
    title = title or path.name or parts.netloc
    note = "only its beginning was fetched, because it is too long" if fetched.cut else ""
    return Page(fetched.url, title, text, note)


def ranked_passages(
    query: str, pages: Sequence[Page], k: int, embedder: Embedder | None
) -> list[Document]:
    """Return the k passages that best match a query, best first.

    Args:
        query: The query, which is compared with passages by words and, if there is an embedder, by
            vectors.
        pages: The pages; only the first 500 passages of each are ranked.
        k: The number of passages.
        embedder: Creates the vectors.
    """
    entries = [
        # The title says what a passage is about, which the passage itself often does not.
        Entry(
            f"{page.url} {number}",
            f"{passage.title}\n{passage.text}",
            {"title": passage.title, "path": page.url, "place": ""},
        )
        for page in pages
        for number, passage in enumerate(
            islice(passages_of(markdown_content(page.text, page.title)), _MAX_PASSAGES)
        )
    ]
    with closing(LocalIndex(":memory:", embedder)) as index:
        index.put(entries)
        hits = index.search(query, k, alpha=ALPHA)
    return [*map(passage_of, hits)]


class Pages:
    """A cache that reads pages in threads, one at a time per host. Thread-safe.

    Callers that ask for a page at the same time share one request; a page is kept for up to five
    minutes.

    Args:
        read: Reads the page at a URL, in bounded time.
        clock: Returns the time in seconds.
    """

    def __init__(
        self, read: Callable[[str], Page], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._read = read
        self._clock = clock
        self._kept: OncePerKey[tuple[str, float], Page] = OncePerKey(100)

    def get(self, url: str) -> Future[Page]:
        """Return a future for the page at a URL, without ever blocking."""
        return self._kept.start((url, self._clock() // _KEPT_S), partial(self._page, url))

    def _page(self, url: str) -> Page:
        with shared_lock(("page", urlsplit(url).netloc)):
            return self._read(url)
