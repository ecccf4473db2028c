"""The web as a source of evidence: search, read the first pages that can be read, return the passages that fit."""

import os
import time
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urldefrag

from langchain_core.documents import Document
from pydantic import Field

from stepcraft.concurrency import in_thread, within
from stepcraft.errors import BadInput, SourceFailure
from stepcraft.evidence import NOTES
from stepcraft.models.embeddings import resolve_embeddings
from stepcraft.sources.base import Source

if TYPE_CHECKING:
    from stepcraft.sources.web.engines import Search
    from stepcraft.sources.web.pages import Page, Pages

ALLOW_HOSTS = "STEPCRAFT_ALLOW_HOSTS"
"""The environment variable with the hosts, separated by commas, that may have private addresses."""

_KNOWN = "web, web:ddgs, web:tavily, web:exa or web:searxng+https://host/path"
_NEEDED = ("ddgs", "httpcore", "httpx", "trafilatura")
_QUERY = 1000
"""The most characters of a query that search engines take."""


class WebSource(Source):
    """A LangChain retriever over the web, opened by `open_web`.

    The metadata of a document are its `title` (of the page and the heading above the passage), `source` (the URL) and
    `score`. A page that cannot be read is replaced by the next result and named in the `stepcraft_notes` of the first document.
    `k` may be given with a call: `source.invoke(query, k=10)`. `ainvoke` searches in a thread.
    """

    search: Any = Field(repr=False)
    """The search engine, a `Search`."""
    reader: Any = Field(repr=False)
    """Reads and caches pages, a `Pages`."""
    embedder: Any = Field(default=None, repr=False)
    """Makes the vectors that passages are ranked with; None ranks by words alone."""
    pages: int = Field(default=3, ge=1)
    """The number of pages to read for a query."""
    search_s: float = Field(default=10, gt=0)
    """Seconds that the search engine may take."""
    pages_s: float = Field(default=15, gt=0)
    """Seconds that reading the pages may take in all."""

    def _found(self, query: str, k: int) -> list[Document]:
        from stepcraft.sources.web.pages import (  # noqa: PLC0415 - the packages may be missing
            prepare_reading,
            ranked_passages,
        )

        text = " ".join(query.split())[:_QUERY]
        if not text:
            return []
        notes: list[str] = []
        in_thread(prepare_reading)  # while the search goes on
        urls = self._urls(text)
        pages = self._read(urls, notes)
        if urls and not pages:
            raise SourceFailure(
                f"no page that the web search names can be read: {'; '.join(notes)}"
            )
        found = ranked_passages(text, pages, k, self.embedder)
        if found and notes:
            found[0].metadata[NOTES] = notes
        return found

    def _urls(self, query: str) -> list[str]:
        try:
            results = within(self.search_s, lambda: self.search(query, 4 * self.pages))
        except TimeoutError as error:
            raise SourceFailure(
                f"the web search did not answer within {self.search_s:g} s"
            ) from error
        return list(dict.fromkeys(urldefrag(result.url).url for result in results))

    def _read(self, urls: Sequence[str], notes: list[str]) -> "list[Page]":
        """The first pages that can be read, in the order of the results; failures are added to the notes."""
        deadline = time.monotonic() + self.pages_s
        waiting = deque(enumerate(urls))
        reading: dict[Future[Page], int] = {}
        read: dict[int, Page] = {}
        while len(read) < self.pages and (waiting or reading):
            while waiting and len(reading) + len(read) < self.pages:
                place, url = waiting.popleft()
                reading[self.reader.get(url)] = place
            done, _ = wait(reading, max(0.0, deadline - time.monotonic()), FIRST_COMPLETED)
            if not done:
                notes.append(f"{len(reading)} of the pages did not come within {self.pages_s:g} s")
                break
            for future in done:
                place = reading.pop(future)
                try:
                    read[place] = future.result()
                except SourceFailure as failure:
                    notes.append(str(failure))
        return [read[place] for place in sorted(read)]


def open_web(
    spec: str,
    *,
    k: int = 5,
    allow_hosts: Iterable[str] | None = None,
    search: "Search | None" = None,
) -> WebSource:
    """Open the web as a retriever.

    Args:
        spec: `web` or `web:ddgs` (no key), `web:tavily` (TAVILY_API_KEY), `web:exa` (EXA_API_KEY), or
            `web:searxng+https://host/path`.
        k: the number of passages to find.
        allow_hosts: hosts (`wiki.example` or `wiki.example:8080`) that may have private addresses; None means
            those in STEPCRAFT_ALLOW_HOSTS.
        search: a function from a query and a number to results, in place of the engine of the spec.

    Raises:
        BadInput: there is no such engine, or its key or a package is missing.
        SourceFailure: no process can be started to parse pages.
    """
    reader = open_pages(spec, allow_hosts=allow_hosts)
    return WebSource(
        search=search or _engine(spec), reader=reader, embedder=resolve_embeddings(), k=k
    )


def open_pages(spec: str, *, allow_hosts: Iterable[str] | None = None) -> "Pages":
    """What reads pages of the web by their URLs, through the safe fetcher.

    Args:
        spec: what asks for it, for messages.
        allow_hosts: as in `open_web`.

    Raises:
        BadInput: a package is missing, or a host cannot be used.
        SourceFailure: no process can be started to parse pages.
    """
    missing = [name for name in _NEEDED if not find_spec(name)]
    if missing:
        raise BadInput(f'{spec} needs {", ".join(missing)}: pip install "stepcraft[web]"')
    from stepcraft.sources.web.fetch import Fetcher  # noqa: PLC0415 - the packages may be missing
    from stepcraft.sources.web.pages import Pages, prepare_reading, readable  # noqa: PLC0415 - the same

    named = os.environ.get(ALLOW_HOSTS, "").split(",") if allow_hosts is None else allow_hosts
    fetcher = Fetcher(allow_hosts=[host.strip() for host in named if host.strip()])
    prepare_reading()
    return Pages(lambda url: readable(fetcher.fetch(url)))


def _engine(spec: str) -> "Search":
    from stepcraft.sources.web import engines  # noqa: PLC0415 - the packages may be missing

    scheme, _, named = spec.strip().partition(":")
    name, _, url = named.partition("+")
    match (scheme.lower(), name.lower()):
        case ("web", "" | "ddgs") if not url:
            return engines.ddgs
        case ("web", "tavily") if not url:
            return engines.Tavily(_key("TAVILY_API_KEY", spec))
        case ("web", "exa") if not url:
            return engines.Exa(_key("EXA_API_KEY", spec))
        case ("web", "searxng") if url.startswith(("http://", "https://")):
            return engines.SearXNG(url)
        case _:
            raise BadInput(f"no web source goes by {spec!r}; name {_KNOWN}")


def _key(variable: str, spec: str) -> str:
    key = os.environ.get(variable, "").strip()
    if not key:
        raise BadInput(f"{spec} needs a key: set {variable}")
    return key
