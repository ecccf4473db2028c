"""LangSmith in small: the endpoints that an upload needs, on a loopback port."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

Record = dict[str, Any]


class LangSmithServer:
    """Keeps datasets, examples, sessions, runs and feedback by their ids; `requests` names what was asked.

    After `limit` requests that write, it answers 503, which ends what was begun.
    """

    def __init__(self) -> None:
        self.kept: dict[str, dict[str, Record]] = {
            kind: {} for kind in ("datasets", "examples", "sessions", "runs", "feedback")
        }
        self.requests: list[str] = []
        self.limit: int | None = None
        self.refused_key = False

    def __enter__(self) -> Self:
        self._http = _Server(self)
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = Thread(target=self._http.serve_forever, args=(0.02,), name="langsmith-server")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def list(self, kind: str) -> list[Record]:
        return list(self.kept[kind].values())

    def found(self, kind: str, query: dict[str, list[str]]) -> list[Record]:
        if kind == "datasets":
            return [one for one in self.list(kind) if one["name"] == query["name"][0]]
        offset = int(query["offset"][0])
        return [one for one in self.list(kind) if one["dataset_id"] == query["dataset"][0]][
            offset : offset + 100
        ]

    def add(self, kind: str, body: Any) -> tuple[int, Any]:
        records = body if isinstance(body, list) else [{"id": str(uuid4()), **body}]
        if any(one["id"] in self.kept[kind] for one in records):
            return 409, {"detail": "it is there already"}
        self.kept[kind] |= {one["id"]: one for one in records}
        return 200, records if isinstance(body, list) else records[0]


class _Server(ThreadingHTTPServer):
    def __init__(self, owner: LangSmithServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.owner = owner


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        self._answer("GET", 200, self.server.owner.found(parts.path.strip("/"), parse_qs(parts.query)))

    def do_POST(self) -> None:
        owner = self.server.owner
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if owner.refused_key:
            return self._answer("POST", 401, {"detail": "Invalid token"})
        if owner.limit is not None and sum(one.startswith("POST") for one in owner.requests) >= owner.limit:
            return self._answer("POST", 400, {"detail": "no"})
        return self._answer("POST", *owner.add(self.path.split("/")[1], body))

    def do_PATCH(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        _, kind, id_ = self.path.split("/")
        self.server.owner.kept[kind][id_] |= body
        self._answer("PATCH", 200, {})

    def _answer(self, method: str, status: int, value: Any) -> None:
        self.server.owner.requests.append(f"{method} {urlsplit(self.path).path} {status}")
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(content)
