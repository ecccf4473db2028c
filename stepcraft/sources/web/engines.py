"""Web search engines: ddgs (no key), Tavily, Exa and SearXNG."""

import json
import time
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from stepcraft.errors import BadInput, FetchFailed, SourceFailure
from stepcraft.secrets import without_secrets
from stepcraft.sources.web.fetch import Fetcher, Limits
from stepcraft.sources.web.urls import shown

_TIMEOUT_S = 8
_MAX_ANSWER = 2_000_000
"""The most bytes of an engine's answer."""


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
        raise SourceFailure(
            f"ddgs: no search engine answered ({_first_line(error)[:100]})"
        ) from error
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
            "Tavily",
            "check TAVILY_API_KEY",
            "POST",
            f"{self.base_url}/search",
            headers=headers,
            json=asked,
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
    """An instance of SearXNG, whose settings must allow `format: json`.

    It is asked over the safe fetcher. Its host may have a private address; redirects are not followed.
    """

    url: str = field(repr=False)

    def __call__(self, query: str, count: int) -> Sequence[Result]:
        """Return the results for a query.

        Raises:
            SourceFailure: it did not answer, or not with JSON.
        """
        base = self.url.rstrip("/")
        name, headers = f"SearXNG at {shown(base)}", {"Accept": "application/json"}
        try:
            url = httpx.URL(base if base.endswith("/search") else f"{base}/search")
            if url.userinfo:
                user = f"{url.username}:{url.password}".encode()
                headers["Authorization"] = f"Basic {b64encode(user).decode('ascii')}"
            fetcher = Fetcher(
                allow_hosts=[url.netloc.decode("ascii")],
                limits=Limits(size=_MAX_ANSWER, redirects=0, total_s=_TIMEOUT_S),
                types=("application/json",),
                headers=headers,
            )
            asked = url.copy_with(userinfo=b"", params={"q": query, "format": "json"})
            answer = fetcher.fetch(str(asked))
        except (httpx.InvalidURL, BadInput) as error:
            raise SourceFailure(f"{name} is no URL of an instance: {_first_line(error)}") from error
        except FetchFailed as error:
            raise SourceFailure(
                f"SearXNG: {error}; check that its settings allow the format json"
            ) from error
        return _results(_object(name, answer.body).get("results"), "url")[:count]


def _json(name: str, hint: str, method: str, url: str, **request: Any) -> dict[str, Any]:  # noqa: ANN401 - httpx's options
    body, ends = bytearray(), time.monotonic() + _TIMEOUT_S
    try:
        with httpx.stream(method, url, timeout=_TIMEOUT_S, **request) as answer:
            answer.raise_for_status()
            for chunk in answer.iter_bytes(65_536):
                body += chunk
                if len(body) > _MAX_ANSWER:
                    raise SourceFailure(f"{name} answered more than {_MAX_ANSWER:,} bytes")
                if time.monotonic() > ends:
                    raise SourceFailure(f"{name} did not answer in time")
    except httpx.HTTPStatusError as error:
        raise SourceFailure(f"{name} {_refusal(error.response.status_code, hint)}") from error
    except httpx.TimeoutException as error:
        raise SourceFailure(f"{name} did not answer in time") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise SourceFailure(f"{name} cannot be reached: {_first_line(error)}") from error
    return _object(name, body)


def _object(name: str, body: bytes | bytearray) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
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
