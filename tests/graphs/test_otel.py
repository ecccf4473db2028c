"""Runs as spans of OpenTelemetry, which LangSmith's client exports where it is asked to."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.servers.langsmith_server import LangSmithServer

PROGRAM = """
from stepcraft import get_graph
get_graph("rag").invoke({"question": "What is a checkpointer?"}, context={"k": 2})
"""


class Collector(BaseHTTPRequestHandler):
    """Takes traces as protobuf over HTTP and appends their spans to `server.spans`."""

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        for of_resource in ExportTraceServiceRequest.FromString(content).resource_spans:
            for of_scope in of_resource.scope_spans:
                self.server.spans += of_scope.spans  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def collector() -> Iterator[Any]:
    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        server.spans = []  # type: ignore[attr-defined]
        thread = Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("setting", ["LANGSMITH_OTEL_ENABLED", "LANGSMITH_OTEL_ONLY"])
def test_a_run_as_spans(collector: Any, setting: str) -> None:
    """The settings of OpenTelemetry are those of a process, so the run has one of its own."""
    with LangSmithServer() as langsmith:
        settings = {
            "LANGSMITH_TRACING": "true",
            "LANGSMITH_ENDPOINT": langsmith.url,
            "LANGSMITH_API_KEY": "lsv2_pt_opensesame",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}",
            setting: "true",
        }
        command = [sys.executable, "-c", PROGRAM]
        subprocess.run(command, env={**os.environ, **settings}, timeout=60, check=True)
    assert [root["name"] for root in langsmith.roots] == (["rag"] if setting.endswith("ENABLED") else [])
    spans = {span.span_id: span for span in collector.spans}
    parents = {
        (span.name, spans[span.parent_span_id].name if span.parent_span_id in spans else "")
        for span in spans.values()
    }
    assert parents == {
        ("rag", ""),
        ("begin", "rag"),
        ("retrieve", "rag"),
        ("ProcedureRetriever", "retrieve"),
        ("answer", "rag"),
        ("ExtractiveModel", "answer"),
    }
    [root] = [span for span in spans.values() if span.name == "rag"]
    attributes = {one.key: one.value for one in root.attributes}
    assert attributes["langsmith.metadata.stepcraft_k"].int_value == 2
    assert attributes["langsmith.metadata.stepcraft_memory"].string_value == "the bundled procedures"
    kinds = {
        span.name: {one.key: one.value.string_value for one in span.attributes} for span in spans.values()
    }
    assert kinds["ProcedureRetriever"]["langsmith.span.kind"] == "retriever"
    assert len({span.trace_id for span in spans.values()}) == 1
