"""The web as a source of evidence: search, read the first readable pages, rank passages."""

import os
import time
from collections.abc import Iterable
from concurrent.futures import Future
from importlib.util import find_spec
from typing import Any
from urllib.parse import urldefrag

from langchain_core.documents import Document
from pydantic import Field

from stepcraft.errors import BadInput, SourceFailure
from stepcraft.evidence import NOTES
from stepcraft.models.embeddings import resolve_embeddings
from stepcraft.retriever import Source
from stepcraft.secrets import excerpt
from stepcraft.sources.web import engines
from stepcraft.sources.web.engines import Search
from stepcraft.sources.web.fetch import Fetcher
from stepcraft.sources.web.pages import Page, Pages, ranked_passages, readable

ALLOW_HOSTS = "STEPCRAFT_ALLOW_HOSTS"
"""The environment variable with the comma-separated hosts that may have private addresses."""

_NEEDED = ("ddgs", "trafilatura")
_QUERY = 1000
"""The maximum query length that search engines accept."""


class WebSource(Source):
    """A LangChain retriever over the web, opened by `open_web`.

    Each document's metadata contains a `title` (the title of the page followed by the headings
    above the passage), a `source` (the URL) and a `score`. A page that cannot be read is replaced
    by the next result and named in the `stepcraft_notes` of the first document, as is a page that
    is too long to be read whole.
    """

    search: Search = Field(repr=False)
    """Maps a query and a maximum number to URLs, in bounded time."""
    reader: Pages = Field(repr=False)
    embedder: Any = Field(default=None, repr=False)
    """Creates the vectors by which passages are ranked; None ranks by words only."""
    pages: int = 3
    """The number of pages to read per query."""
    pages_s: float = 15
    """The total number of seconds that reading the pages may take."""

    def _search(self, query: str, k: int) -> list[Document]:
        text = " ".join(query.split())[:_QUERY]
        if not text:
            return []
        urls = list(dict.fromkeys(urldefrag(url).url for url in self.search(text, 4 * self.pages)))
        pages: list[Page] = []
        notes: list[str] = []
        reading: list[Future[Page]] = []
        deadline = time.monotonic() + self.pages_s
        for place, url in enumerate(urls):
            missing = self.pages - len(pages)
            if time.monotonic() < deadline:
                # As many pages as are still missing are read at the same time.
                reading += map(self.reader.get, urls[len(reading) : place + missing])
            if not missing or place == len(reading):
                break
            try:
                page = reading[place].result(max(0, deadline - time.monotonic()))
            except TimeoutError:
                notes.append(f"{url} did not come within {self.pages_s:g} s")
            except SourceFailure as failure:
                notes.append(str(failure))
            else:
                pages.append(page)
                notes += [f"{url}: {page.note}"] * bool(page.note)
        if urls and not pages:
            raise SourceFailure(
                f"no page that the web search names can be read: {'; '.join(notes)}"
            )
        documents = ranked_passages(text, pages, k, self.embedder)
        if documents and notes:
            documents[0].metadata[NOTES] = notes
        return documents


def open_web(
    spec: str,
    *,
    k: int = 5,
    allow_hosts: Iterable[str] | None = None,
    search: Search | None = None,
) -> WebSource:
    """Open the web as a retriever.

    Args:
        spec: `web` or `web:ddgs` (no key), `web:tavily` (TAVILY_API_KEY), or
            `web:searxng+https://host/path`.
        k: The number of passages to find.
        allow_hosts: Hosts (`wiki.example` or `wiki.example:8080`) that may have private addresses;
            None means those in STEPCRAFT_ALLOW_HOSTS.
        search: A function that maps a query and a maximum number to URLs, used instead of the
            spec's engine.

    Raises:
        BadInput: There is no such engine, or its key or a package is missing.
    """
    reader = open_pages(spec, allow_hosts=allow_hosts)
    search = search or _engine(spec)
    return WebSource(search=search, reader=reader, embedder=resolve_embeddings(), k=k)


def open_pages(spec: str, *, allow_hosts: Iterable[str] | None = None) -> Pages:
    """Return a reader that gets web pages by URL through the safe fetcher.

    Args:
        spec: The spec that needs the reader, for error messages.
        allow_hosts: As for `open_web`.

    Raises:
        BadInput: A package is missing, or a host is invalid.
    """
    if missing := [name for name in _NEEDED if not find_spec(name)]:
        raise BadInput(f'{spec} needs {", ".join(missing)}: pip install "stepcraft[web]"')
    fetch = fetcher(allow_hosts).fetch
    return Pages(lambda url: readable(fetch(url)))


def fetcher(allow_hosts: Iterable[str] | None = None, **options: Any) -> Fetcher:  # noqa: ANN401
    """Return a safe fetcher; `options` are its fields, and `allow_hosts` is as for `open_web`.

    Raises:
        BadInput: A host is invalid.
    """
    names = os.environ.get(ALLOW_HOSTS, "").split(",") if allow_hosts is None else allow_hosts
    return Fetcher(allow_hosts=filter(None, map(str.strip, names)), **options)


def _engine(spec: str) -> Search:
    name = spec.strip().partition(":")[2]
    if name in {"", "ddgs"}:
        return engines.ddgs
    if name == "tavily":
        if key := os.environ.get("TAVILY_API_KEY", "").strip():
            return engines.tavily(key)
        raise BadInput(f"{spec} needs a key: set TAVILY_API_KEY")
    if name.startswith(("searxng+http://", "searxng+https://")):
        return engines.searxng(name.removeprefix("searxng+"))
    raise BadInput(
        f"no web source goes by {excerpt(spec)}; name web, web:ddgs, web:tavily or "
        "web:searxng+https://host/path"
    )
