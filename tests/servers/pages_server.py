"""A local web server that serves pages, good and bad, as a test scripts them."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Self
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Served:
    """How a path is answered. `chunks` are sent one by one, with a pause before each, for as long as somebody reads."""

    body: bytes = b""
    status: int = 200
    type: str | None = "text/html; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)
    chunks: Iterable[bytes] | None = None
    pause: float = 0
    """Seconds before the answer, and before each chunk."""
    raw: bool = False
    """Whether body and chunks are the whole answer, the status line included."""
    length: int | None = None
    """The length that is stated, if not the true one."""


@dataclass(frozen=True)
class Asked:
    """A request as it arrived; header names in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


Route = Served | Callable[[Asked], Served]


def html(*paragraphs: str, title: str = "A page") -> Served:
    """A page of so many paragraphs."""
    text = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    return Served(
        f"<html><head><title>{title}</title></head><body><article>{text}</article></body></html>".encode()
    )


def redirect(where: str, status: int = 302) -> Served:
    return Served(status=status, headers={"Location": where})


class PagesServer:
    """Serves the routes on a loopback port, over TLS if given a context; other paths are 404."""

    def __init__(self, routes: Mapping[str, Route], tls: ssl.SSLContext | None = None) -> None:
        self.routes = dict(routes)
        self.asked: list[Asked] = []
        self.closing = Event()
        self._tls = tls

    def __enter__(self) -> Self:
        self._http = _Server(self)
        if self._tls:
            self._http.socket = self._tls.wrap_socket(
                self._http.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = Thread(target=self._http.serve_forever, args=(0.02,), name="pages-server")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._http.server_port}"

    @property
    def port(self) -> int:
        return self._http.server_port

    @property
    def url(self) -> str:
        return f"http{'s' if self._tls else ''}://{self.host}"

    @property
    def paths(self) -> list[str]:
        return [request.path for request in self.asked]

    def answer(self, request: Asked) -> Served:
        self.asked.append(request)
        route = self.routes.get(urlsplit(request.path).path, Served(b"no such page", 404))
        return route if isinstance(route, Served) else route(request)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, owner: PagesServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.owner = owner

    def handle_error(self, request: object, client_address: object) -> None:
        """Quiet: clients hang up on purpose."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 20
    server: _Server

    def log_message(self, *_: object) -> None:
        """Quiet: the test reads `asked`."""

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        served = self.server.owner.answer(Asked(self.command, self.path, headers, body))
        try:
            self._send(served)
        except (OSError, ssl.SSLError):
            self.close_connection = True

    do_POST = do_GET

    def _send(self, served: Served) -> None:
        self.server.owner.closing.wait(served.pause)
        if not served.raw:
            self._send_head(served)
        self.wfile.write(served.body)
        for chunk in served.chunks or ():
            if self.server.owner.closing.wait(served.pause):
                break
            self.wfile.write(chunk)
        if served.raw or served.chunks is not None or served.length is not None:
            self._hang_up()

    def _send_head(self, served: Served) -> None:
        self.send_response(served.status)
        if served.type is not None:
            self.send_header("Content-Type", served.type)
        if served.chunks is None:
            self.send_header(
                "Content-Length", str(len(served.body) if served.length is None else served.length)
            )
        for name, value in served.headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _hang_up(self) -> None:
        self.close_connection = True
        self.wfile.flush()
        if not isinstance(self.connection, ssl.SSLSocket):
            self.connection.shutdown(socket.SHUT_WR)
