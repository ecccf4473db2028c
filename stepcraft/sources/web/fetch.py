"""The safe fetcher: pages of the public web, within limits of size and time.

A URL comes from a search engine, a page or a model, so nothing about it is trusted: not its host, not where
it redirects to, not what its server sends, and how fast.
"""

import asyncio
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from functools import cache
from importlib.metadata import version
from ssl import SSLContext

import httpcore
import httpx

from stepcraft.errors import FetchFailed, FetchRefused, without_secrets
from stepcraft.sources.web.body import ENCODING, read_body
from stepcraft.sources.web.urls import AllowedHosts, checked_url, shown
from stepcraft.sources.web.wire import Resolve, Wire, system_addresses

TYPES = ("text/html", "application/xhtml+xml", "text/plain", "text/markdown", "text/x-markdown")
"""The content types that are read."""

_HEADERS = {
    "User-Agent": f"stepcraft/{version('stepcraft')}",
    "Accept": "text/html, application/xhtml+xml, text/markdown, text/plain;q=0.8",
    "Accept-Encoding": ENCODING,
    "Accept-Language": "en, *;q=0.5",
}
_REDIRECTS = {301, 302, 303, 307, 308}


@dataclass(frozen=True)
class Limits:
    """How much of a page is read, and how long it may take."""

    size: int = 2_000_000
    """Bytes after decompression; the rest of a longer page is left."""
    redirects: int = 5
    connect_s: float = 4
    read_s: float = 5
    """How long a server may send nothing."""
    total_s: float = 10
    """How long all of it may take, redirects included."""


@dataclass(frozen=True)
class Fetched:
    """A page as it came."""

    url: str
    """Where it was in the end."""
    type: str
    charset: str
    """What the server says; "" if it does not."""
    body: bytes
    cut: bool
    """Whether it is longer."""


class Fetcher:
    """Gets pages over http and https from public addresses only. Safe to use from several threads.

    It sends no cookies and no credentials, uses no proxy, and verifies certificates.

    Args:
        allow_hosts: hosts (`wiki.example`, or with a port `127.0.0.1:8080`) that may have any address.
        limits: how much is read, and for how long.
        resolve: what finds the addresses of a host.
        network: what connects to an address.
        ssl_context: how certificates are verified; None means as httpx does.
    """

    def __init__(
        self,
        *,
        allow_hosts: Iterable[str] = (),
        limits: Limits | None = None,
        resolve: Resolve = system_addresses,
        network: httpcore.NetworkBackend | None = None,
        ssl_context: SSLContext | None = None,
    ) -> None:
        self._allowed = AllowedHosts(allow_hosts)
        self._limits = limits or Limits()
        self._resolve = resolve
        self._network = network or httpcore.SyncBackend()
        self._context = ssl_context

    def fetch(self, url: str) -> Fetched:
        """The page at a URL.

        Raises:
            FetchRefused: the URL, a redirect or the kind of content is not one to fetch.
            FetchFailed: it is not there, does not come in time, or redirects without end.
        """
        deadline = time.monotonic() + self._limits.total_s
        target = checked_url(url)
        wire = Wire(self._allowed, self._resolve, self._network, deadline)
        with httpcore.ConnectionPool(self._context or _usual_context(), network_backend=wire) as pool:
            for _ in range(self._limits.redirects + 1):
                with _naming(target):
                    found = self._asked(pool, target)
                if isinstance(found, Fetched):
                    return found
                target = found
        raise FetchFailed(f"{shown(url)} redirects more than {self._limits.redirects} times")

    async def afetch(self, url: str) -> Fetched:
        """As `fetch`, in a thread."""
        return await asyncio.to_thread(self.fetch, url)

    def _asked(self, pool: httpcore.ConnectionPool, target: httpx.URL) -> Fetched | httpx.URL:
        limits = self._limits
        timeouts = {"connect": limits.connect_s, "read": limits.read_s, "write": limits.read_s}
        extensions = {"timeout": {**timeouts, "pool": limits.connect_s}}
        with pool.stream(
            "GET", str(target), headers=list(_HEADERS.items()), extensions=extensions
        ) as response:
            headers = httpx.Headers(response.headers)
            if response.status in _REDIRECTS and "location" in headers:
                return _redirected(target, headers["location"])
            if response.status != 200:
                raise FetchFailed(_status(response.status))
            kind, charset = _content_type(headers.get("content-type", ""))
            encoding = headers.get("content-encoding", "")
            body, cut = read_body(response.iter_stream(), encoding, limits.size)
        return Fetched(str(target), kind, charset, body, cut)


@cache
def _usual_context() -> SSLContext:
    """Made once: it reads all the certificates of the world."""
    return httpx.create_ssl_context()


def _redirected(target: httpx.URL, location: str) -> httpx.URL:
    try:
        joined = target.join(location)
    except (httpx.InvalidURL, ValueError) as error:
        raise FetchFailed("it redirects to what is no URL") from error
    return checked_url(str(joined))


def _status(status: int) -> str:
    known = {403: "forbidden", 404: "not found", 410: "gone", 429: "too many requests", 503: "unavailable"}
    return f"the server answered {status}" + (f" ({known[status]})" if status in known else "")


def _content_type(header: str) -> tuple[str, str]:
    kind = header.partition(";")[0].strip().lower()
    if kind not in TYPES:
        raise FetchRefused(
            f"it is {kind[:80] if kind else 'of no stated type'}, and only HTML and plain text are read"
        )
    message = Message()
    message["Content-Type"] = header
    return kind, message.get_content_charset("")


@contextmanager
def _naming(url: httpx.URL) -> Generator[None]:
    """Failures as exceptions of ours, each with the URL that it happened at."""
    try:
        yield
    except FetchRefused as error:
        raise FetchRefused(f"{shown(url)} is not fetched: {error}") from error
    except FetchFailed as error:
        raise FetchFailed(f"{shown(url)} cannot be fetched: {error}") from error
    except httpcore.TimeoutException as error:
        raise FetchFailed(f"{shown(url)} cannot be fetched: it did not answer in time") from error
    except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as error:
        reason = without_secrets(str(error)).strip()[:200] or "the connection failed"
        raise FetchFailed(f"{shown(url)} cannot be fetched: {reason}") from error
