"""A LangGraph server in small: it runs graphs for the SDK's stateless `runs.wait`, and can be busy, broken or gone."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any, Self
from uuid import uuid4

Body = dict[str, Any]


class GraphServer:
    """Serves graphs on a loopback port.

    `fault` is asked before each run: a status is answered instead, "hang up" closes the connection, None runs it.
    `most` is the most runs that were under way at the same time, `keys` the API keys that were sent.
    """

    def __init__(
        self, graphs: Mapping[str, Any], fault: Callable[[int], int | str | None] = lambda _: None
    ) -> None:
        self.graphs = graphs
        self.fault = fault
        self.bodies: list[Body] = []
        self.keys: set[str | None] = set()
        self.running = self.most = 0
        self.lock = Lock()

    def __enter__(self) -> Self:
        self._http = _Server(self)
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = Thread(target=self._http.serve_forever, args=(0.02,), name="graph-server")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def run(self, body: Body) -> Any:
        with self.lock:
            self.bodies.append(body)
            self.running += 1
            self.most = max(self.most, self.running)
        try:
            graph = self.graphs[body["assistant_id"]]
            return graph.invoke(body["input"], context=body["context"])
        except Exception as error:
            return {"__error__": {"error": type(error).__name__, "message": str(error)}}
        finally:
            with self.lock:
                self.running -= 1


class _Server(ThreadingHTTPServer):
    request_queue_size = 128

    def __init__(self, owner: GraphServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.owner = owner


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def do_GET(self) -> None:
        self._send(200, {"version": "0.0.1", "langgraph_py_version": "1.0.0"})

    def do_POST(self) -> None:
        owner = self.server.owner
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        owner.keys.add(self.headers.get("x-api-key"))
        fault = owner.fault(len(owner.bodies))
        if fault == "hang up":
            self.close_connection = True
        elif isinstance(fault, int):
            self._send(fault, {"detail": "no"})
        elif body["assistant_id"] not in owner.graphs:
            self._send(422, {"detail": f"Invalid assistant: {body['assistant_id']!r}"})
        else:
            self._send(
                200, owner.run(body), {"Content-Location": f"/threads/{uuid4()}/runs/{uuid4()}"}
            )

    def _send(self, status: int, value: Any, headers: Mapping[str, str] | None = None) -> None:
        content = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {**(headers or {}), "Content-Length": str(len(content))}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(content)
