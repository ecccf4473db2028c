"""Web search engines: ddgs (no key), Tavily, Exa and SearXNG."""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import httpx

from stepcraft.errors import FetchFailed, SourceFailure
from stepcraft.secrets import excerpt
from stepcraft.sources.web.fetch import Fetcher, Limits

_TIMEOUT_S = 8


class Result(NamedTuple):
    """A result of a search engine."""

    url: str
    title: str = ""


Search = Callable[[str, int], Sequence[Result]]
"""From a query and a number to results, best first; raises SourceFailure with one sentence."""


def ddgs(query: str, count: int) -> Sequence[Result]:
    """Search with several engines that need no key, through the package ddgs."""
    from ddgs import DDGS

    try:
        rows = DDGS(timeout=_TIMEOUT_S).text(query, max_results=count)
    except Exception as error:  # its client's own exceptions come through too
        if "No results" in str(error):
            return []
        raise SourceFailure(f"ddgs: no search engine answered: {excerpt(error, 200)}") from error
    return _results(rows, "href")


def tavily(key: str, url: str = "https://api.tavily.com") -> Search:
    """Return the search of Tavily."""

    def search(query: str, count: int) -> Sequence[Result]:
        body = {"query": query[:400], "max_results": min(count, 20)}
        headers = {"Authorization": f"Bearer {key}"}
        return _asked(f"{url}/search", "check TAVILY_API_KEY and your plan", headers, body)

    return search


def exa(key: str, url: str = "https://api.exa.ai") -> Search:
    """Return the search of Exa."""

    def search(query: str, count: int) -> Sequence[Result]:
        body = {"query": query, "numResults": count, "type": "auto"}
        return _asked(f"{url}/search", "check EXA_API_KEY and your plan", {"x-api-key": key}, body)

    return search


def searxng(url: str) -> Search:
    """Return the search of an instance of SearXNG; its URL may hold a user and a password."""
    base = httpx.URL(url.rstrip("/").removesuffix("/search") + "/search")
    user = b64encode(f"{base.username}:{base.password}".encode()).decode()
    headers = {"Authorization": f"Basic {user}"} if base.userinfo else {}

    def search(query: str, count: int) -> Sequence[Result]:
        target = base.copy_with(userinfo=b"", params={"q": query, "format": "json"})
        hint = "check that its settings allow the format json"
        return _asked(str(target), hint, headers)[:count]

    return search


def _asked(
    url: str, hint: str, headers: Mapping[str, str], body: object = None
) -> Sequence[Result]:
    """Return the results of one request without redirects; the host may have any address.

    Raises:
        SourceFailure: It did not answer with JSON, or refuses the key.
    """
    host = httpx.URL(url).netloc.decode("ascii")
    limits = Limits(redirects=0, total_s=_TIMEOUT_S)
    fetcher = Fetcher(allow_hosts=[host], limits=limits, types=("application/json",))
    try:
        answer = json.loads(fetcher.fetch(url, headers=headers, json=body).body)
    except FetchFailed as error:
        raise SourceFailure(f"{error}; {hint}") from error
    except (ValueError, RecursionError) as error:
        raise SourceFailure(f"{host} did not answer with JSON; {hint}") from error
    return _results(answer.get("results") if isinstance(answer, dict) else None, "url")


def _results(rows: object, key: str) -> list[Result]:
    """Return the rows that have a URL; an engine's answer is not trusted more than a page."""
    return [
        Result(row[key], str(row.get("title") or ""))
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, dict) and str(row.get(key)).startswith(("http://", "https://"))
    ]
