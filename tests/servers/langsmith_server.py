"""LangSmith in small: the endpoints that an upload and a trace need, on a loopback port."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Event, Thread
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit
from uuid import NAMESPACE_URL, uuid4, uuid5

import zstandard
from requests_toolbelt import MultipartDecoder

Record = dict[str, Any]

INFO = {
    "version": "0.12.0",
    "instance_flags": {"zstd_compression_enabled": True},
    "batch_ingest_config": {
        "use_multipart_endpoint": True,
        "size_limit": 100,
        "size_limit_bytes": 20_000_000,
        "scale_up_nthreads_limit": 4,
        "scale_up_qsize_trigger": 1000,
    },
}
"""What a server says of itself. A client compresses what it sends to this one."""


class LangSmithServer:
    """Keeps runs, feedback and uploaded experiments by their ids; `requests` names what was asked.

    Args:
        compression: Whether it takes compressed traces.
        mute: Whether it leaves every POST without an answer.
    """

    def __init__(self, *, compression: bool = True, mute: bool = False) -> None:
        self.info = {**INFO, "instance_flags": {"zstd_compression_enabled": compression}}
        self.mute = mute
        self.over = Event()
        self.taken = Condition()
        self.received = bytearray()
        """All that was posted as parts of traces, uncompressed."""
        self.kept: dict[str, dict[str, Record]] = {
            kind: {} for kind in ("sessions", "runs", "feedback", "experiments")
        }
        self.requests: list[str] = []
        self.refused_key = False
        self.elsewhere = ""
        """Where it sends all that is posted, but traces."""

    def __enter__(self) -> Self:
        self._http = _Server(self)
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = Thread(
            target=self._http.serve_forever, args=(0.02,), name="langsmith-server"
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def list(self, kind: str) -> list[Record]:
        return list(self.kept[kind].values())

    def projects(self, query: dict[str, list[str]]) -> list[Record]:
        """The projects of these names that runs were traced to."""
        names = {run.get("session_name", "default") for run in self.list("runs")}
        return [self.project(name) for name in names & set(query["name"])]

    def project(self, name: str) -> Record:
        """The project that runs are traced to."""
        id_ = str(uuid5(NAMESPACE_URL, name))
        fields = {"start_time": "2026-01-01T00:00:00+00:00", "reference_dataset_id": None}
        return {"id": id_, "name": name, "tenant_id": id_, **fields}

    def query(self, body: Record) -> Record:
        """A page of two runs, the newest first, with what was given as feedback on each."""
        found = [
            run
            for run in self.list("runs")
            if self.project(run.get("session_name", "default"))["id"] in body["session"]
            and body.get("trace", run["trace_id"]) == run["trace_id"]
            and not (body.get("is_root") and run.get("parent_run_id"))
        ]
        found.sort(key=lambda run: run["dotted_order"], reverse=True)
        start = int(body.get("cursor") or 0)
        after = str(start + 2) if start + 2 < len(found) else None
        page = [{**run, "feedback_stats": self.feedback(run)} for run in found[start : start + 2]]
        chosen = [
            {name: value for name, value in run.items() if name in body["select"]} for run in page
        ]
        return {"runs": chosen, "cursors": {"next": after}}

    def feedback(self, run: Record) -> Record:
        """The statistics of the scores of a run, by their keys."""
        given = [one for one in self.list("feedback") if one["run_id"] == run["id"]]
        return {one["key"]: {"n": 1, "avg": one["score"], "values": {}} for one in given}

    def add(self, kind: str, body: Any) -> tuple[int, Any]:
        records = body if isinstance(body, list) else [{"id": str(uuid4()), **body}]
        if any(one["id"] in self.kept[kind] for one in records):
            return 409, {"detail": "it is there already"}
        self.kept[kind] |= {one["id"]: one for one in records}
        return 200, records if isinstance(body, list) else records[0]

    def take(self, name: str, content: bytes) -> None:
        """Keep a part of a multipart request: `post.<run>`, `patch.<run>.outputs`, `feedback.<id>`."""
        self.received += content
        kind, id_, *field = name.split(".")
        kept = self.kept["feedback" if kind == "feedback" else "runs"].setdefault(id_, {"id": id_})
        given = {field[0]: json.loads(content)} if field else json.loads(content)
        given = {key: value for key, value in given.items() if value is not None}
        # Batches arrive in any order, so the end of a run may come before its beginning.
        kept |= {**given, **kept} if kind == "post" else given

    def wait(self, enough: Callable[[], bool], seconds: float = 30) -> None:
        """Wait until enough was posted; what a client posts in the background comes in parts."""
        with self.taken:
            assert self.taken.wait_for(enough, seconds), self.requests

    @property
    def roots(self) -> list[Record]:
        """The runs without a parent, in the order in which they began."""
        found = [run for run in self.list("runs") if not run.get("parent_run_id")]
        return sorted(found, key=lambda run: run["dotted_order"])


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
        owner = self.server.owner
        is_info = parts.path == "/info"
        self._answer("GET", 200, owner.info if is_info else owner.projects(parse_qs(parts.query)))

    def do_POST(self) -> None:
        owner = self.server.owner
        if owner.mute:
            owner.over.wait()
            return None
        content = self._content()
        if owner.refused_key:
            return self._answer("POST", 401, {"detail": "Invalid token"})
        if self.path == "/runs/multipart":
            for part in MultipartDecoder(content, self.headers["Content-Type"]).parts:
                [name] = re.findall(rb'name="(.+?)"', part.headers[b"Content-Disposition"])
                owner.take(name.decode(), part.content)
            with owner.taken:
                owner.taken.notify_all()
            return self._answer("POST", 202, {})
        if owner.elsewhere:
            self.send_response(307)
            self.send_header("Location", owner.elsewhere + self.path)
            self.send_header("Content-Length", "0")
            return self.end_headers()
        if self.path == "/runs/query":
            return self._answer("POST", 200, owner.query(json.loads(content)))
        is_experiment = self.path == "/datasets/upload-experiment"
        kind = "experiments" if is_experiment else self.path.split("/")[1]
        if kind not in owner.kept:
            return self._answer("POST", 404, {"detail": "Not Found"})
        return self._answer("POST", *owner.add(kind, json.loads(content)))

    def _content(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            content = b"".join(iter(self._chunk, b""))
        else:
            content = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "zstd":
            return zstandard.ZstdDecompressor().decompressobj().decompress(content)
        return content

    def _chunk(self) -> bytes:
        piece = self.rfile.read(int(self.rfile.readline(), 16))
        self.rfile.readline()
        return piece

    def _answer(self, method: str, status: int, value: Any) -> None:
        self.server.owner.requests.append(f"{method} {urlsplit(self.path).path} {status}")
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(content)
