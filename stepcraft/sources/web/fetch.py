"""A safe fetcher for pages on the public web, with limits on size and time.

A URL comes from a search engine, a page or a model, so neither it nor its server is trusted: the
host may resolve to a private address (server-side request forgery), a redirect may lead to one, and
a response may be endless, slow or a decompression bomb. A check before the request is not enough,
because a second answer from the resolver (DNS rebinding) may differ, so the transport resolves a
host once and connects only to the addresses that it has checked.
"""

import asyncio
import socket
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from typing import Any, NamedTuple

import httpx

from stepcraft.concurrency import in_thread, to_thread
from stepcraft.errors import FetchFailed, FetchRefused
from stepcraft.secrets import excerpt
from stepcraft.sources.web.urls import allowed_hosts, checked_url, is_public, shown_url

Resolve = Callable[[str, int], Sequence[str]]
"""Returns the addresses for a host and port; raises OSError or ValueError if there are none."""

_HEADERS = {
    "User-Agent": f"stepcraft/{version('stepcraft')}",
    "Accept": "text/html, application/xhtml+xml, text/markdown, text/plain;q=0.8, */*;q=0.1",
    "Accept-Encoding": "gzip",  # which zlib decompresses up to a limit
    "Accept-Language": "en, *;q=0.5",
}


class Fetched(NamedTuple):
    """A page as it was received."""

    url: str
    """The URL after redirects."""
    type: str
    charset: str
    """The charset stated by the server, or "" if there is none."""
    body: bytes
    cut: bool
    """Whether the page is longer than the limit."""


@dataclass
class CheckedTransport(httpx.AsyncBaseTransport):
    """Connects only to public addresses, keeping the URL's host in the Host header and for TLS."""

    inner: httpx.AsyncBaseTransport
    """Connects to an address."""
    resolve: Resolve
    allowed: Iterable[str]
    """Hosts that may have any address."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request to the first of its host's addresses that answers.

        Raises:
            FetchRefused: One of the addresses is not public.
            FetchFailed: There is no address.
        """
        url, host = request.url, request.url.raw_host.decode("ascii")
        name = f"[{host}]" if ":" in host else host
        port = url.port or {"http": 80, "https": 443}[url.scheme]
        # In a daemon thread, since a resolver may hang for minutes.
        addresses = await to_thread(self.resolve, host, port)
        for address in addresses:
            if not is_public(address) and {name, f"{name}:{port}"}.isdisjoint(self.allowed):
                raise FetchRefused(
                    f"{host} has the address {address}, which is not public; "
                    "allow_hosts can allow it"
                )
        request.extensions["sni_hostname"] = host
        failure: Exception = FetchFailed(f"{host} has no address")
        for address in addresses:
            request.url = url.copy_with(host=address)
            try:
                return await self.inner.handle_async_request(request)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                failure = error
        raise failure

    async def aclose(self) -> None:
        """Close the inner transport."""
        await self.inner.aclose()


def _system_addresses(host: str, port: int) -> list[str]:
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


_ssl_context = cache(httpx.create_ssl_context)  # loading the certificates is slow


def _network() -> httpx.AsyncBaseTransport:
    return httpx.AsyncHTTPTransport(verify=_ssl_context(), trust_env=False)


@dataclass
class Fetcher:
    """Gets pages over http and https from public addresses only. Thread-safe.

    It sends no cookies and no credentials of its own, uses no proxy, and verifies certificates.
    """

    allow_hosts: Iterable[str] = ()
    """Hosts (`wiki.example`, or with a port `127.0.0.1:8080`) that may have any address."""
    total_s: float = 10
    """The maximum number of seconds in total, including redirects."""
    redirects: int = 5
    """The maximum number of redirects that are followed."""
    types: Sequence[str] = (
        "text/html",
        "application/xhtml+xml",
        "text/plain",
        "text/markdown",
        "text/x-markdown",
    )
    """The content types that are accepted."""
    most_bytes: int = 2_000_000
    """The maximum size of a page in bytes after decompression; the rest is not read."""
    resolve: Resolve = _system_addresses
    network: Callable[[], httpx.AsyncBaseTransport] = _network
    """Creates the transport that connects to an address."""

    def __post_init__(self) -> None:
        self.allow_hosts = allowed_hosts(self.allow_hosts)

    def fetch(
        self, url: str, *, headers: Mapping[str, str] | None = None, json: object = None
    ) -> Fetched:
        """Get the page at a URL. This may block.

        Args:
            url: The URL.
            headers: Additional headers, which are also sent when following redirects.
            json: The body to post.

        Raises:
            FetchRefused: The URL, a redirect or the content type is not allowed.
            FetchFailed: The page does not exist, does not arrive in time, or redirects endlessly.
        """
        # Only asynchronous code can be interrupted at any moment. It runs in another thread, since
        # the thread of the caller may run an event loop, as in a notebook.
        get = partial(self._fetch, "GET" if json is None else "POST", checked_url(url))
        return in_thread(lambda: asyncio.run(get(headers=headers, json=json))).result()

    async def _fetch(self, method: str, url: httpx.URL, **content: Any) -> Fetched:  # noqa: ANN401
        try:
            async with asyncio.timeout(self.total_s):
                for _ in range(self.redirects + 1):
                    transport = CheckedTransport(self.network(), self.resolve, self.allow_hosts)
                    # A new client has no cookies.
                    client = httpx.AsyncClient(transport=transport, headers=_HEADERS)
                    async with client, client.stream(method, url, **content) as response:
                        if not response.has_redirect_location:
                            return await self._read(url, response)
                        url = checked_url(str(url.join(response.headers["location"])))
                raise FetchFailed(  # noqa: TRY301 - as every failure at this URL
                    f"it redirects more than {self.redirects} times"
                )
        except FetchFailed as error:
            raise type(error)(f"{shown_url(url)} cannot be fetched: {error}") from error
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, zlib.error) as error:
            is_late = isinstance(error, TimeoutError | httpx.TimeoutException)
            reason = "it did not answer in time" if is_late else excerpt(error, 300)
            raise FetchFailed(f"{shown_url(url)} cannot be fetched: {reason}") from error

    async def _read(self, url: httpx.URL, response: httpx.Response) -> Fetched:
        if response.status_code != 200:
            phrase = response.reason_phrase.lower()
            raise FetchFailed(f"the server answered {response.status_code} ({phrase})")
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in self.types:
            raise FetchRefused(f"it is {kind[:80]!r}, and only {', '.join(self.types)} is read")
        body = await _body(response, self.most_bytes + 1)
        charset = response.charset_encoding or ""
        is_cut = len(body) > self.most_bytes
        return Fetched(str(url), kind, charset, body[: self.most_bytes], is_cut)


async def _body(response: httpx.Response, most: int) -> bytes:
    """Return a decompressed body, up to a number of bytes.

    httpx itself would decompress whole chunks, a few bytes of which can expand to gigabytes.
    """
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in {"gzip", "identity"}:
        raise FetchFailed(f"its encoding {encoding[:40]!r} was not asked for")
    inflater, body = zlib.decompressobj(zlib.MAX_WBITS | 16), bytearray()
    async for chunk in response.aiter_raw():
        left = most - len(body)
        body += chunk[:left] if encoding == "identity" else inflater.decompress(chunk, left)
        if len(body) == most or inflater.eof:  # anything that follows is not part of the page
            break
    return bytes(body)
