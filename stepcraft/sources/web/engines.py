"""Web search engines: ddgs (no key), Tavily and SearXNG."""

import json
from collections.abc import Callable, Mapping, Sequence

import httpx

from stepcraft.errors import FetchFailed, SourceFailure
from stepcraft.secrets import excerpt
from stepcraft.sources.web.fetch import Fetcher

_TIMEOUT_S = 8


Search = Callable[[str, int], Sequence[str]]
"""Maps a query and a maximum number to URLs, best first; raises SourceFailure with a one-sentence
message.
"""


def ddgs(query: str, count: int) -> Sequence[str]:
    """Search with several engines that need no key, using the package ddgs."""
    from ddgs import DDGS

    try:
        rows = DDGS(timeout=_TIMEOUT_S).text(query, max_results=count)
    except Exception as error:  # its client's own exceptions get through as well
        raise SourceFailure(f"ddgs: no search engine answered: {excerpt(error, 200)}") from error
    return [row["href"] for row in rows]


def tavily(key: str, url: str = "https://api.tavily.com") -> Search:
    """Return a search function for Tavily."""
    headers = {"Authorization": f"Bearer {key}"}
    hint = "check TAVILY_API_KEY and your plan"
    return lambda query, count: _asked(
        f"{url}/search", hint, headers, {"query": query[:400], "max_results": min(count, 20)}
    )


def searxng(url: str) -> Search:
    """Return a search function for a SearXNG instance."""
    base = httpx.URL(url.rstrip("/").removesuffix("/search") + "/search")
    hint = "check that its settings allow the format json"
    return lambda query, count: _asked(
        str(base.copy_with(params={"q": query, "format": "json"})), hint
    )[:count]


def _asked(
    url: str, hint: str, headers: Mapping[str, str] | None = None, body: object = None
) -> Sequence[str]:
    """Return the result URLs of one request, following no redirects and allowing any address.

    Raises:
        SourceFailure: The server did not answer with JSON, or refused the key.
    """
    host = httpx.URL(url).netloc.decode("ascii")
    fetcher = Fetcher([host], total_s=_TIMEOUT_S, redirects=0, types=("application/json",))
    try:
        answer = json.loads(fetcher.fetch(url, headers=headers, json=body).body)
        return [str(row["url"]) for row in answer["results"]]
    except FetchFailed as error:
        raise SourceFailure(f"{error}; {hint}") from error
    except (ValueError, RecursionError, LookupError, TypeError) as error:
        raise SourceFailure(f"{host} did not answer with results in JSON; {hint}") from error
