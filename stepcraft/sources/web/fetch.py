"""The safe fetcher: pages of the public web, within limits of size and time.

A URL comes from a search engine, a page or a model, so neither it nor its server is trusted: the host may resolve to
a private address (server-side request forgery), a redirect may lead to one, and a response may be endless, slow or a
decompression bomb. No maintained library checks the addresses of a host at the moment of connecting, without which a
second answer of the resolver (DNS rebinding) passes every earlier check; so this one is ours, on httpcore's network
backend. It resolves a host once, checks every address, and connects to those addresses and no others.
"""

import asyncio
import socket
import ssl
import time
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from functools import cache
from importlib.metadata import version
from typing import Any

import httpcore
import httpx

from stepcraft.concurrency import in_thread, within
from stepcraft.errors import FetchFailed, FetchRefused
from stepcraft.secrets import without_secrets
from stepcraft.sources.web.urls import AllowedHosts, checked_url, is_public, shown

Resolve = Callable[[str, int], Sequence[str]]
"""Returns the addresses of a host and port; raises OSError or ValueError if there are none."""

TYPES = ("text/html", "application/xhtml+xml", "text/plain", "text/markdown", "text/x-markdown")
"""The content types that are read."""

_HEADERS = {
    "User-Agent": f"stepcraft/{version('stepcraft')}",
    "Accept": "text/html, application/xhtml+xml, text/markdown, text/plain;q=0.8",
    "Accept-Encoding": "gzip",  # which zlib decompresses up to a limit, and one layer of it only
    "Accept-Language": "en, *;q=0.5",
}
_REDIRECTS = {301, 302, 303, 307, 308}
_STATUS = {
    403: "forbidden",
    404: "not found",
    410: "gone",
    429: "too many requests",
    503: "unavailable",
}
_ADDRESSES = 4
"""The most addresses of a host that are tried."""


@dataclass(frozen=True)
class Limits:
    """How much of a page is read, and how long it may take."""

    size: int = 2_000_000
    """Bytes after decompression; the rest of a longer page is not read."""
    redirects: int = 5
    connect_s: float = 4
    read_s: float = 5
    """Seconds that the server may send nothing."""
    total_s: float = 10
    """Seconds for all of it, redirects included."""


@dataclass(frozen=True)
class Fetched:
    """A page as it was received."""

    url: str
    """The URL after redirects."""
    type: str
    charset: str
    """What the server says; "" if it does not."""
    body: bytes
    cut: bool
    """Whether the page is longer than the limit."""


class Fetcher:
    """Gets pages over http and https from public addresses only. Thread-safe.

    It sends no cookies and no credentials, uses no proxy, and verifies certificates.

    Args:
        allow_hosts: hosts (`wiki.example`, or with a port `127.0.0.1:8080`) that may have any address.
        limits: limits of size and time.
        types: the content types that are read.
        headers: what is sent beside the usual headers, to redirects as well.
        resolve: resolves a host; by default the operating system.
        network: connects to an address.
        ssl_context: verifies certificates; None means as httpx does.
    """

    def __init__(
        self,
        *,
        allow_hosts: Iterable[str] = (),
        limits: Limits | None = None,
        types: Sequence[str] = TYPES,
        headers: Mapping[str, str] | None = None,
        resolve: Resolve | None = None,
        network: httpcore.NetworkBackend | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._allowed = AllowedHosts(allow_hosts)
        self._limits = limits or Limits()
        self._types = types
        self._headers = list({**_HEADERS, **(headers or {})}.items())
        self._resolve = resolve or _system_addresses
        self._network = network or httpcore.SyncBackend()
        self._context = ssl_context

    def fetch(self, url: str) -> Fetched:
        """Get the page at a URL.

        Raises:
            FetchRefused: the URL, a redirect or the content type is not one to fetch.
            FetchFailed: the page does not exist, does not come in time, or redirects without end.
        """
        deadline = time.monotonic() + self._limits.total_s
        target = checked_url(url)
        backend = _CheckedBackend(self._allowed, self._resolve, self._network, deadline)
        with httpcore.ConnectionPool(
            self._context or _ssl_context(), network_backend=backend
        ) as pool:
            for _ in range(self._limits.redirects + 1):
                with _failures_at(target):
                    found = self._get(pool, target)
                if isinstance(found, Fetched):
                    return found
                target = found
        raise FetchFailed(f"{shown(url)} redirects more than {self._limits.redirects} times")

    async def afetch(self, url: str) -> Fetched:
        """As `fetch`, in a thread."""
        return await asyncio.wrap_future(in_thread(lambda: self.fetch(url)))

    def _get(self, pool: httpcore.ConnectionPool, target: httpx.URL) -> Fetched | httpx.URL:
        """The page, or the URL that it redirects to."""
        limits = self._limits
        timeouts = {"connect": limits.connect_s, "read": limits.read_s, "write": limits.read_s}
        extensions = {"timeout": {**timeouts, "pool": limits.connect_s}}
        with pool.stream(
            "GET", str(target), headers=self._headers, extensions=extensions
        ) as response:
            headers = httpx.Headers(response.headers)
            if response.status in _REDIRECTS and "location" in headers:
                try:
                    joined = target.join(headers["location"])
                except (httpx.InvalidURL, ValueError) as error:
                    raise FetchFailed("it redirects to what is no URL") from error
                return checked_url(str(joined))
            if response.status != 200:
                known = f" ({_STATUS[response.status]})" if response.status in _STATUS else ""
                raise FetchFailed(f"the server answered {response.status}{known}")
            kind, charset = _content_type(headers.get("content-type", ""), self._types)
            encoding = headers.get("content-encoding", "")
            body, cut = read_body(response.iter_stream(), encoding, limits.size)
        return Fetched(str(target), kind, charset, body, cut)


def read_body(chunks: Iterable[bytes], encoding: str, limit: int) -> tuple[bytes, bool]:
    """Return the first `limit` bytes of a body after decompression, and whether there are more.

    Only gzip is decompressed, in one layer: each further layer, and most other encodings, multiply a body a
    thousandfold.

    Raises:
        FetchFailed: the body has another encoding, or its compression is broken.
    """
    name = encoding.strip().lower()
    if name in {"gzip", "x-gzip"}:
        chunks = _inflated(chunks, limit + 1)
    elif name not in {"", "identity"}:
        raise FetchFailed(f"its encoding {name[:40]!r} was not asked for")
    body = bytearray()
    for chunk in chunks:
        body += chunk[: limit + 1 - len(body)]
        if len(body) > limit:
            return bytes(body[:limit]), True
    return bytes(body), False


def _inflated(chunks: Iterable[bytes], limit: int) -> Iterator[bytes]:
    """The decompressed chunks, none longer than the limit; data after the end of the compressed data is dropped."""
    inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
    for chunk in chunks:
        if inflater.eof:
            return
        try:
            yield inflater.decompress(chunk, limit)
        except zlib.error as error:
            raise FetchFailed(f"its compression is broken ({error})") from error


class _CheckedBackend(httpcore.NetworkBackend):
    """Connects to addresses that were checked, and to nothing else, until a deadline.

    Host header, server name and certificate remain those of the host: httpcore only sees a connected stream.
    """

    def __init__(
        self,
        allowed: AllowedHosts,
        resolve: Resolve,
        network: httpcore.NetworkBackend,
        deadline: float,
    ) -> None:
        self._allowed = allowed
        self._resolve = resolve
        self._network = network
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Return a stream to the first address of the host that answers.

        Raises:
            FetchRefused: one of its addresses is not public.
            FetchFailed: it has no address.
        """
        failure: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in self._checked(host, port)[:_ADDRESSES]:
            try:
                stream = self._network.connect_tcp(
                    address, port, _left(self._deadline, timeout), local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
            else:
                return _TimedStream(stream, self._deadline)
        raise failure

    def _checked(self, host: str, port: int) -> Sequence[str]:
        try:
            addresses = within(_left(self._deadline), lambda: self._resolve(host, port))
        except TimeoutError as error:
            raise FetchFailed(f"{host} was not resolved in time") from error
        except (OSError, ValueError) as error:
            raise FetchFailed(f"{host} has no address that can be found ({error})") from error
        private = next((address for address in addresses if not is_public(address)), None)
        if private is not None and (host, port) not in self._allowed:
            named = "which" if private == host else f"whose address {private}"
            raise FetchRefused(
                f"the host is {host}, {named} is not public; allow_hosts can allow it"
            )
        return addresses


class _TimedStream(httpcore.NetworkStream):
    """A stream that ends at a deadline, however slowly its bytes arrive."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: float) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _left(self._deadline, timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _left(self._deadline, timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        stream = self._stream.start_tls(
            ssl_context, server_hostname, _left(self._deadline, timeout)
        )
        return _TimedStream(stream, self._deadline)

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - as in httpcore
        return self._stream.get_extra_info(info)


def _left(deadline: float, timeout: float | None = None) -> float:
    """The seconds that an operation may take; raises ReadTimeout if none are left."""
    rest = deadline - time.monotonic()
    if rest <= 0:
        raise httpcore.ReadTimeout("the time for the page is used up")
    return rest if timeout is None else min(rest, timeout)


def _system_addresses(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


@cache
def _ssl_context() -> ssl.SSLContext:
    """Cached, because loading the CA bundle is slow."""
    return httpx.create_ssl_context()


def _content_type(header: str, types: Sequence[str]) -> tuple[str, str]:
    kind = header.partition(";")[0].strip().lower()
    if kind not in types:
        wanted = "HTML and plain text are" if types is TYPES else f"{', '.join(types)} is"
        raise FetchRefused(
            f"it is {kind[:80] if kind else 'of no stated type'}, and only {wanted} read"
        )
    message = Message()
    message["Content-Type"] = header
    return kind, message.get_content_charset("")


@contextmanager
def _failures_at(url: httpx.URL) -> Generator[None]:
    """Raise failures as FetchFailed and FetchRefused, with the URL at which they happened."""
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
