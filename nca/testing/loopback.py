"""Base of the loopback providers: an HTTP server in a thread that records its requests."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


class InvalidRequests(AssertionError):
    """A real provider would have refused a request, or a request refused as too large was repeated."""


class LoopbackProvider:
    """A context manager that serves until it exits, and then raises InvalidRequests if a request was invalid.

    requests     every request body, in order
    violations   one line for each rule that a request broke
    closing      set when the server stops
    """

    def __init__(self, handler: type[LoopbackHandler], *, port: int = 0) -> None:
        self.requests: list[dict[str, Any]] = []
        self.violations: list[str] = []
        self.closing = threading.Event()
        self._attempts: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", port), handler)
        self._server.provider = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """The server's address."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        if self.violations and error is None:
            raise InvalidRequests("; ".join(self.violations))

    def record(self, request: dict[str, Any], violations: list[str]) -> int:
        """Record a request and return the number of its model's requests so far."""
        with self._lock:
            self.requests.append(request)
            self.violations += violations
            self._attempts[str(request.get("model"))] += 1
            return self._attempts[str(request.get("model"))]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    provider: Any

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect early, which many tests do on purpose."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class LoopbackHandler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """No log: the server may share a terminal with the program under test."""

    def do_GET(self) -> None:
        self.on_get()

    def do_POST(self) -> None:
        self.on_post(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

    def on_get(self) -> None:
        """Override to answer GET requests."""
        self.send_error(404)

    def on_post(self, body: bytes) -> None:
        """Override to answer POST requests."""
        self.send_error(404)
