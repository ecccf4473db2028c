"""The connections of one fetch: made to addresses that were checked, and never longer than its deadline."""

import socket
import ssl
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import httpcore

from stepcraft.concurrency import within
from stepcraft.errors import FetchFailed, FetchRefused
from stepcraft.sources.web.addresses import is_public
from stepcraft.sources.web.urls import AllowedHosts

Resolve = Callable[[str, int], Sequence[str]]
"""The addresses of a host; raises OSError or ValueError if there are none."""

_ADDRESSES = 4
"""How many addresses of a host are tried."""


def system_addresses(host: str, port: int) -> list[str]:
    """The addresses that the operating system knows for a host."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class Wire(httpcore.NetworkBackend):
    """Resolves a host once, checks every address, and connects to those addresses and nothing else.

    Host header, server name and certificate stay those of the host: httpcore sees only a connected stream.
    """

    def __init__(
        self, allowed: AllowedHosts, resolve: Resolve, network: httpcore.NetworkBackend, deadline: float
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
        """A stream to the first of the host's addresses that answers.

        Raises:
            FetchRefused: one of its addresses is not public.
            FetchFailed: it has no address.
        """
        failure: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in self._checked(host, port)[:_ADDRESSES]:
            try:
                stream = self._network.connect_tcp(
                    address, port, left(self._deadline, timeout), local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
            else:
                return _TimedStream(stream, self._deadline)
        raise failure

    def _checked(self, host: str, port: int) -> Sequence[str]:
        try:
            addresses = within(left(self._deadline), lambda: self._resolve(host, port))
        except TimeoutError as error:
            raise FetchFailed(f"{host} was not resolved in time") from error
        except (OSError, ValueError) as error:
            raise FetchFailed(f"{host} has no address that can be found ({error})") from error
        private = next((address for address in addresses if not is_public(address)), None)
        if private is not None and (host, port) not in self._allowed:
            named = "which" if private == host else f"whose address {private}"
            raise FetchRefused(f"the host is {host}, {named} is not public; allow_hosts can allow it")
        return addresses


class _TimedStream(httpcore.NetworkStream):
    """A stream that does not outlive a deadline, however slowly its bytes drip."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: float) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, left(self._deadline, timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, left(self._deadline, timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        stream = self._stream.start_tls(ssl_context, server_hostname, left(self._deadline, timeout))
        return _TimedStream(stream, self._deadline)

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - as in httpcore
        return self._stream.get_extra_info(info)


def left(deadline: float, timeout: float | None = None) -> float:
    """The seconds that an operation may take.

    Raises:
        httpcore.ReadTimeout: none are left.
    """
    rest = deadline - time.monotonic()
    if rest <= 0:
        raise httpcore.ReadTimeout("the time for the page is used up")
    return rest if timeout is None else min(rest, timeout)
