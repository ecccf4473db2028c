"""The web as a source of evidence: search, read the first pages that can be read, rank passages."""

import os
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urldefrag

from langchain_core.documents import Document
from pydantic import Field

from stepcraft.concurrency import in_thread, within
from stepcraft.errors import BadInput, SourceFailure
from stepcraft.evidence import NOTES
from stepcraft.models.embeddings import resolve_embeddings
from stepcraft.secrets import without_secrets
from stepcraft.sources.base import Source

if TYPE_CHECKING:
    from stepcraft.sources.web.engines import Search
    from stepcraft.sources.web.pages import Page, Pages

ALLOW_HOSTS = "STEPCRAFT_ALLOW_HOSTS"
"""The environment variable with the hosts, separated by commas, that may have private addresses."""

_NEEDED = ("ddgs", "httpx", "trafilatura")
_QUERY = 1000
"""The most characters of a query that search engines take."""


class WebSource(Source):
    """A LangChain retriever over the web, opened by `open_web`.

    The metadata of a document are its `title` (of the page and the headings above the passage),
    `source` (the URL) and `score`. A page that cannot be read is replaced by the next result and
    named in the `stepcraft_notes` of the first document.
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

    def _search(self, query: str, k: int) -> list[Document]:
        from stepcraft.sources.web.pages import prepare_reading, ranked_passages

        text = " ".join(query.split())[:_QUERY]
        if not text:
            return []
        in_thread(prepare_reading)  # while the search goes on
        try:
            results = within(self.search_s, partial(self.search, text, 4 * self.pages))
        except TimeoutError as error:
            raise SourceFailure(
                f"the web search did not answer within {self.search_s:g} s"
            ) from error
        urls = list(dict.fromkeys(urldefrag(result.url).url for result in results))
        pages, notes = self._read(urls)
        if urls and not pages:
            raise SourceFailure(
                f"no page that the web search names can be read: {'; '.join(notes)}"
            )
        documents = ranked_passages(text, pages, k, self.embedder)
        if documents and notes:
            documents[0].metadata[NOTES] = notes
        return documents

    def _read(self, urls: Sequence[str]) -> "tuple[list[Page], list[str]]":
        """Return the first pages that can be read, and why others cannot."""
        deadline, waiting = time.monotonic() + self.pages_s, list(urls)
        reading: dict[Future[Page], str] = {}
        pages: dict[str, Page] = {}
        notes: list[str] = []
        while len(pages) < self.pages and (waiting or reading):
            while waiting and len(reading) + len(pages) < self.pages:
                reading[self.reader.get(waiting[0])] = waiting.pop(0)
            done, _ = wait(reading, max(0.0, deadline - time.monotonic()), FIRST_COMPLETED)
            if not done:
                notes.append(f"{len(reading)} of the pages did not come within {self.pages_s:g} s")
                break
            for future in done:
                url = reading.pop(future)
                try:
                    pages[url] = future.result()
                except SourceFailure as failure:
                    notes.append(str(failure))
        return [pages[url] for url in urls if url in pages], notes


def open_web(
    spec: str,
    *,
    k: int = 5,
    allow_hosts: Iterable[str] | None = None,
    search: "Search | None" = None,
) -> WebSource:
    """Open the web as a retriever.

    Args:
        spec: `web` or `web:ddgs` (no key), `web:tavily` (TAVILY_API_KEY), `web:exa` (EXA_API_KEY),
            or `web:searxng+https://host/path`.
        k: The number of passages to find.
        allow_hosts: Hosts (`wiki.example` or `wiki.example:8080`) that may have private addresses;
            None means those in STEPCRAFT_ALLOW_HOSTS.
        search: A function from a query and a number to results, in place of the spec's engine.

    Raises:
        BadInput: There is no such engine, or its key or a package is missing.
    """
    reader = open_pages(spec, allow_hosts=allow_hosts)
    engine = search or _engine(spec)
    return WebSource(search=engine, reader=reader, embedder=resolve_embeddings(), k=k)


def open_pages(spec: str, *, allow_hosts: Iterable[str] | None = None) -> "Pages":
    """Return what reads pages of the web by their URLs, through the safe fetcher.

    Args:
        spec: What asks for it, for messages.
        allow_hosts: As in `open_web`.

    Raises:
        BadInput: A package is missing, or a host cannot be used.
    """
    if missing := [name for name in _NEEDED if not find_spec(name)]:
        raise BadInput(f'{spec} needs {", ".join(missing)}: pip install "stepcraft[web]"')
    from stepcraft.sources.web.fetch import Fetcher
    from stepcraft.sources.web.pages import Pages, readable

    names = os.environ.get(ALLOW_HOSTS, "").split(",") if allow_hosts is None else allow_hosts
    fetcher = Fetcher(allow_hosts=filter(None, map(str.strip, names)))
    return Pages(lambda url: readable(fetcher.fetch(url)))


def _engine(spec: str) -> "Search":
    from stepcraft.sources.web import engines

    name, _, url = spec.strip().partition("+")
    match name.lower():
        case "web" | "web:ddgs" if not url:
            return engines.ddgs
        case "web:tavily" if not url:
            return engines.tavily(_key("TAVILY_API_KEY", spec))
        case "web:exa" if not url:
            return engines.exa(_key("EXA_API_KEY", spec))
        case "web:searxng" if url.startswith(("http://", "https://")):
            return engines.searxng(url)
        case _:
            raise BadInput(
                f"no web source goes by {without_secrets(spec)!r}; name web, web:ddgs, web:tavily, "
                "web:exa or web:searxng+https://host/path"
            )


def _key(variable: str, spec: str) -> str:
    key = os.environ.get(variable, "").strip()
    if not key:
        raise BadInput(f"{spec} needs a key: set {variable}")
    return key
