"""Web search engines: ddgs (no key), Tavily, Exa and SearXNG."""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence

import httpx

from stepcraft.errors import FetchFailed, SourceFailure
from stepcraft.secrets import excerpt
from stepcraft.sources.web.fetch import Fetcher

_TIMEOUT_S = 8


Search = Callable[[str, int], Sequence[str]]
"""From a query and a number to URLs, best first; raises SourceFailure with one sentence."""


def ddgs(query: str, count: int) -> Sequence[str]:
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
    headers = {"Authorization": f"Bearer {key}"}
    hint = "check TAVILY_API_KEY and your plan"
    return lambda query, count: _asked(
        f"{url}/search", hint, headers, {"query": query[:400], "max_results": min(count, 20)}
    )


def exa(key: str, url: str = "https://api.exa.ai") -> Search:
    """Return the search of Exa."""
    hint = "check EXA_API_KEY and your plan"
    return lambda query, count: _asked(
        f"{url}/search",
        hint,
        {"x-api-key": key},
        {"query": query, "numResults": count, "type": "auto"},
    )


def searxng(url: str) -> Search:
    """Return the search of an instance of SearXNG; its URL may hold a user and a password."""
    base = httpx.URL(url.rstrip("/").removesuffix("/search") + "/search")
    user = b64encode(f"{base.username}:{base.password}".encode()).decode()
    headers = {"Authorization": f"Basic {user}"} if base.userinfo else {}

    def search(query: str, count: int) -> Sequence[str]:
        target = base.copy_with(userinfo=b"", params={"q": query, "format": "json"})
        hint = "check that its settings allow the format json"
        return _asked(str(target), hint, headers)[:count]

    return search


def _asked(url: str, hint: str, headers: Mapping[str, str], body: object = None) -> Sequence[str]:
    """Return the results of one request without redirects; the host may have any address.

    Raises:
        SourceFailure: It did not answer with JSON, or refuses the key.
    """
    host = httpx.URL(url).netloc.decode("ascii")
    fetcher = Fetcher([host], total_s=_TIMEOUT_S, redirects=0, types=("application/json",))
    try:
        answer = json.loads(fetcher.fetch(url, headers=headers, json=body).body)
    except FetchFailed as error:
        raise SourceFailure(f"{error}; {hint}") from error
    except (ValueError, RecursionError) as error:
        raise SourceFailure(f"{host} did not answer with JSON; {hint}") from error
    return _results(answer.get("results") if isinstance(answer, dict) else None, "url")


def _results(rows: object, key: str) -> list[str]:
    """Return the URLs of some rows; an engine's answer is not trusted more than a page."""
    urls = [row.get(key) for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return [url for url in urls if str(url).startswith(("http://", "https://"))]
