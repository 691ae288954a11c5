"""A receiver of OTLP over HTTP on loopback: it parses what arrives and keeps it."""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Receiver:
    """spans: all that came, in order of their ends. metrics: the data points by name. resources: their attributes."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.metrics: dict[str, list[Any]] = {}
        self.resources: list[dict[str, Any]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.receiver = self  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def named(self, name: str) -> list[Any]:
        return [span for span in self.spans if span.name == name]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def take(self, path: str, body: bytes) -> None:
        if path == "/v1/traces":
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.resources.append(values_of(resource.resource.attributes))
                for scope in resource.scope_spans:
                    self.spans += scope.spans
        elif path == "/v1/metrics":
            for measured in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for scope_metrics in measured.scope_metrics:
                    for metric in scope_metrics.metrics:
                        self.metrics.setdefault(metric.name, []).extend(metric.histogram.data_points)


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.server.receiver.take(self.path, body)  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()


def values_of(attributes: Any) -> dict[str, Any]:
    """Attributes as plain values."""
    return {one.key: _plain(one.value) for one in attributes}


def _plain(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_plain(one) for one in value.array_value.values]
    return getattr(value, kind) if kind else None
