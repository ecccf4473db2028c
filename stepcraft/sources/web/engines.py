"""Web search engines: ddgs (no key), Tavily, Exa and SearXNG."""

import json
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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
    """Search with several engines that need no key, through the package ddgs.

    Raises:
        SourceFailure: No engine answered.
    """
    from ddgs import DDGS

    try:
        rows = DDGS(timeout=_TIMEOUT_S).text(query, max_results=count)
    except Exception as error:  # its client's own exceptions come through too
        if "No results" in str(error):
            return []
        reason = f"{type(error).__name__}: {excerpt(error)}"
        raise SourceFailure(f"ddgs: no search engine answered ({reason})") from error
    return _results(rows, "href")


@dataclass(frozen=True)
class Engine:
    """A search engine that is asked over the safe fetcher, by one request without redirects."""

    name: str
    hint: str
    """What may help where it does not answer."""
    url: str = field(repr=False)
    """Its host may have a private address."""
    headers: dict[str, str] = field(repr=False)
    ask: Callable[[str, int], dict[str, Any]] = field(repr=False)
    """From a query and a number to what is posted; `params` of a GET for SearXNG."""

    def __call__(self, query: str, count: int) -> Sequence[Result]:
        """Return the results for a query.

        Raises:
            SourceFailure: It did not answer with JSON, or refuses the key.
        """
        limits = Limits(redirects=0, total_s=_TIMEOUT_S)
        url, body = httpx.URL(self.url), self.ask(query, count)
        if "params" in body:
            url, body = url.copy_merge_params(body["params"]), None
        try:
            host = url.netloc.decode("ascii")
            fetcher = Fetcher(allow_hosts=[host], limits=limits, types=("application/json",))
            answer = json.loads(fetcher.fetch(str(url), headers=self.headers, json=body).body)
        except FetchFailed as error:
            raise SourceFailure(f"{self.name}: {error}; {self.hint}") from error
        except (ValueError, RecursionError) as error:
            raise SourceFailure(f"{self.name} did not answer with JSON") from error
        return _results(answer.get("results") if isinstance(answer, dict) else (), "url")[:count]


def tavily(key: str, url: str = "https://api.tavily.com") -> Engine:
    """Return the search of Tavily."""
    return Engine(
        "Tavily",
        "check TAVILY_API_KEY and your plan",
        f"{url}/search",
        {"Authorization": f"Bearer {key}"},
        lambda query, count: {"query": query[:400], "max_results": min(count, 20)},
    )


def exa(key: str, url: str = "https://api.exa.ai") -> Engine:
    """Return the search of Exa."""
    return Engine(
        "Exa",
        "check EXA_API_KEY and your plan",
        f"{url}/search",
        {"x-api-key": key},
        lambda query, count: {"query": query, "numResults": count, "type": "auto"},
    )


def searxng(url: str) -> Engine:
    """Return the search of an instance of SearXNG; its URL may hold a user and a password."""
    target = httpx.URL(url.rstrip("/").removesuffix("/search") + "/search")
    user = f"{target.username}:{target.password}".encode()
    return Engine(
        "SearXNG",
        "check that its settings allow the format json",
        str(target.copy_with(userinfo=b"")),
        {"Authorization": f"Basic {b64encode(user).decode()}"} if target.userinfo else {},
        lambda query, _: {"params": {"q": query, "format": "json"}},
    )


def _results(rows: object, key: str) -> list[Result]:
    """Return the rows that have a URL; an engine's answer is not trusted more than a page."""
    return [
        Result(row[key], str(row.get("title") or ""))
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, dict) and str(row.get(key)).startswith(("http://", "https://"))
    ]
