"""Web search engines: ddgs (no key), Tavily, Exa and SearXNG."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from stepcraft.errors import SourceFailure
from stepcraft.secrets import without_secrets
from stepcraft.sources.web.urls import shown

_TIMEOUT_S = 8


@dataclass(frozen=True)
class Result:
    """A result of a search engine."""

    url: str
    title: str = ""


Search = Callable[[str, int], Sequence[Result]]
"""From a query and a number to results, best first; raises SourceFailure with one sentence."""


def ddgs(query: str, count: int) -> Sequence[Result]:
    """Search with several engines that need no key, through the package ddgs.

    Raises:
        SourceFailure: no engine answered.
    """
    from ddgs import DDGS  # noqa: PLC0415 - loads a client of its own, which only this engine needs
    from ddgs.exceptions import RatelimitException, TimeoutException  # noqa: PLC0415

    try:
        found = DDGS(timeout=_TIMEOUT_S).text(query, max_results=count)
    except RatelimitException as error:
        raise SourceFailure(
            "ddgs: the search engines limit the rate; wait, or name another engine"
        ) from error
    except TimeoutException as error:
        raise SourceFailure("ddgs: the search engines did not answer in time") from error
    except Exception as error:  # its client's own exceptions come through too
        if "No results" in str(error):
            return []
        raise SourceFailure(f"ddgs: no search engine answered ({_first_line(error)[:100]})") from error
    return _results(found, "href")


@dataclass(frozen=True)
class Tavily:
    """The search of Tavily."""

    key: str = field(repr=False)
    base_url: str = "https://api.tavily.com"

    def __call__(self, query: str, count: int) -> Sequence[Result]:
        """Return the results for a query.

        Raises:
            SourceFailure: it did not answer, or refuses the key.
        """
        asked = {"query": query[:400], "max_results": min(count, 20), "search_depth": "basic"}
        headers = {"Authorization": f"Bearer {self.key}"}
        found = _json(
            "Tavily", "check TAVILY_API_KEY", "POST", f"{self.base_url}/search", headers=headers, json=asked
        )
        return _results(found.get("results"), "url")


@dataclass(frozen=True)
class Exa:
    """The search of Exa."""

    key: str = field(repr=False)
    base_url: str = "https://api.exa.ai"

    def __call__(self, query: str, count: int) -> Sequence[Result]:
        """Return the results for a query.

        Raises:
            SourceFailure: it did not answer, or refuses the key.
        """
        asked = {"query": query, "numResults": count, "type": "auto"}
        found = _json(
            "Exa",
            "check EXA_API_KEY",
            "POST",
            f"{self.base_url}/search",
            headers={"x-api-key": self.key},
            json=asked,
        )
        return _results(found.get("results"), "url")


@dataclass(frozen=True)
class SearXNG:
    """An instance of SearXNG, whose settings must allow `format: json`."""

    url: str = field(repr=False)

    def __call__(self, query: str, count: int) -> Sequence[Result]:
        """Return the results for a query.

        Raises:
            SourceFailure: it did not answer, or not with JSON.
        """
        base = self.url.rstrip("/")
        url = base if base.endswith("/search") else f"{base}/search"
        name, hint = f"SearXNG at {shown(base)}", "check that its settings allow the format json"
        found = _json(name, hint, "GET", url, params={"q": query, "format": "json"})
        return _results(found.get("results"), "url")[:count]


def _json(name: str, hint: str, method: str, url: str, **request: Any) -> dict[str, Any]:  # noqa: ANN401 - httpx's options
    try:
        answer = httpx.request(method, url, timeout=_TIMEOUT_S, **request)
        answer.raise_for_status()
        found = answer.json()
    except httpx.HTTPStatusError as error:
        raise SourceFailure(f"{name} {_refusal(error.response.status_code, hint)}") from error
    except httpx.TimeoutException as error:
        raise SourceFailure(f"{name} did not answer in time") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise SourceFailure(f"{name} cannot be reached: {_first_line(error)}") from error
    except ValueError as error:
        raise SourceFailure(f"{name} did not answer with JSON") from error
    if not isinstance(found, dict):
        raise SourceFailure(f"{name} did not answer with an object of results")
    return found


def _refusal(status: int, hint: str) -> str:
    if status in {401, 403}:
        return f"refuses the request ({status}): {hint}"
    if status in {429, 432, 433}:
        return f"limits the rate, or the plan is used up ({status}): wait, or name another engine"
    return f"answered {status}"


def _results(found: object, key: str) -> list[Result]:
    """The rows of an answer that have a URL; an engine's answer is not trusted more than a page."""
    rows = [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []
    return [
        Result(row[key], str(row.get("title") or ""))
        for row in rows
        if isinstance(row.get(key), str) and row[key].startswith(("http://", "https://"))
    ]


def _first_line(error: Exception) -> str:
    lines = without_secrets(str(error)).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__
