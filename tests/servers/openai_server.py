"""A local OpenAI-compatible server whose replies, faulty ones included, a test scripts."""

from __future__ import annotations

import json
import select
import socket
from collections.abc import Callable, Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Self

from langchain_core.messages import convert_to_messages

from stepcraft.models.keyless.model import ExtractiveModel
from tests.servers.openai_replies import Body, Reply, error, events, whole

Script = Callable[[Body], Reply | str]


class OpenAIServer:
    """Serves chat completions on a loopback port.

    Replies are sent in order or made by a function of the request's body; a sequence that is exhausted answers 400.
    `bodies` holds those of every request so far.
    """

    def __init__(self, replies: Iterable[Reply | str] | Script) -> None:
        self._script = replies if callable(replies) else _in_order(replies)
        self._lock = Lock()
        self._connections: set[socket.socket] = set()
        self.closing = Event()
        self.bodies: list[Body] = []

    def __enter__(self) -> Self:
        self._http = _Server(self)
        self._thread = Thread(target=self._http.serve_forever, args=(0.02,), name="openai-server")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._http.shutdown()
        self._thread.join()
        with self._lock:
            for connection in self._connections:
                _hang_up(connection)
        self._http.server_close()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    def answer(self, body: Body) -> Reply:
        with self._lock:
            self.bodies.append(body)
            reply = self._script(body)
        return Reply(text=reply) if isinstance(reply, str) else reply

    def opened(self, connection: socket.socket) -> None:
        with self._lock:
            self._connections.add(connection)

    def closed(self, connection: socket.socket) -> None:
        with self._lock:
            self._connections.discard(connection)


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 512

    def __init__(self, owner: OpenAIServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.owner = owner


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.owner.opened(self.connection)

    def finish(self) -> None:
        self.server.owner.closed(self.connection)
        super().finish()

    def handle(self) -> None:
        try:
            super().handle()
        except (ConnectionError, ValueError):
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Log nothing; tests read `requests`."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.path.endswith("/chat/completions"):
            return self._send(error(404), body)
        reply = self.server.owner.answer(body)
        if not reply.hangs:
            return self._send(reply, body)
        self._wait_for_the_client_to_leave()
        self.close_connection = True
        return None

    def _wait_for_the_client_to_leave(self) -> None:
        while not self.server.owner.closing.is_set():
            readable, _, _ = select.select([self.connection], [], [], 0.01)
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                return

    def _send(self, reply: Reply, body: Body) -> None:
        if reply.body is not None or not body.get("stream"):
            self._send_json(reply, body)
        else:
            self._send_stream(reply, body)

    def _send_json(self, reply: Reply, body: Body) -> None:
        content = reply.body if reply.body is not None else json.dumps(whole(reply, body)).encode()
        self.send_response(reply.status)
        for name, value in {"Content-Type": "application/json", **reply.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _send_stream(self, reply: Reply, body: Body) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events(reply, body):
            data = f"data: {event}\n\n".encode()
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")


def keyless_reply(body: Body) -> str:
    """The reply of the keyless model, which fits every prompt of the package."""
    return ExtractiveModel().invoke(convert_to_messages(body["messages"])).text


def _in_order(replies: Iterable[Reply | str]) -> Script:
    waiting: Iterator[Reply | str] = iter(replies)
    return lambda _: next(waiting, error(400))


def _hang_up(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return
