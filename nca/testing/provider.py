"""A model provider on loopback for tests: OpenAI's chat protocol over HTTP, with a context window and faults.

    with Provider(window_tokens=4000) as provider:
        ...  # OPENAI_API_BASE=provider.url, any key, any model name

A model named in `nca.testing.faults` fails in that way. From a shell:

    python -m nca.testing.provider --window 4000
"""

from __future__ import annotations

import argparse
import json
import ssl
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from nca.context.validate import validate_request
from nca.testing.faults import FAULTS, Fault
from nca.testing.http_exchange import Exchange
from nca.testing.scripted import Answer, Script, count_request_tokens, prose
from nca.vocabulary import count, fitting_start


class InvalidRequests(AssertionError):
    """A real provider would have refused a request, or a request refused as too large was repeated."""


class LoopbackProvider:
    """A context manager that serves until it exits, and then raises InvalidRequests if a request was invalid.

    requests     every request body, in order
    violations   one line for each rule that a request broke
    closing      set when the server stops
    tls          encrypts the connections; None: they are plain
    """

    def __init__(self, handler: type[LoopbackHandler], *, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[dict[str, Any]] = []
        self.violations: list[str] = []
        self.closing = threading.Event()
        self._attempts: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", port), handler)
        self._server.provider = self
        self._scheme = "https" if tls else "http"
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """The server's address."""
        return f"{self._scheme}://127.0.0.1:{self.port}"

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


Check = Callable[[dict[str, Any]], list[str]]
"""Returns one line for each rule that a request breaks."""


def validated(request: dict[str, Any]) -> list[str]:
    """The default check: the rules of OpenAI's protocol."""
    return validate_request(request.get("messages") or [], "openai", tools=request.get("tools"))


class Provider(LoopbackProvider):
    """A server in a thread that runs until the `with` block ends.

    script          makes the answers (see nca.testing.scripted)
    window_tokens   context window; a larger request gets OpenAI's overflow error. 0: no limit
    token_seconds   delay for each streamed token
    check           called with each request; the lines it returns are raised as InvalidRequests when the block ends
                    without another error. None: no check
    faults          more faults by the model's name, besides those of nca.testing.faults
    api_key         any other key gets status 401; "" accepts all
    models          names that GET /v1/models lists
    listed          what it says of each of them besides, such as max_model_len
    tls             encrypts the connections; `url` then begins with https
    """

    def __init__(
        self,
        script: Script = prose,
        *,
        window_tokens: int = 0,
        token_seconds: float = 0.0,
        check: Check | None = validated,
        faults: Mapping[str, Fault] = FAULTS,
        api_key: str = "",
        models: Sequence[str] = ("test-model",),
        listed: Mapping[str, Any] | None = None,
        port: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(_Handler, port=port, tls=tls)
        self.script = script
        self.window_tokens = window_tokens
        self.token_seconds = token_seconds
        self.check = check
        self.faults = {**FAULTS, **faults}
        self.api_key = api_key
        self.models = tuple(models)
        self.listed = dict(listed or {})
        self.overflows: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        """The address for OPENAI_API_BASE or model.api_base."""
        return f"{super().url}/v1"

    def take(self, request: dict[str, Any]) -> int:
        """Record a request and return the number of its model's requests so far."""
        return self.record(request, self.check(request) if self.check else [])

    def answer_to(self, request: dict[str, Any]) -> Answer:
        """The script's answer, cut to the request's max_tokens and the rest of the window."""
        given = self.script(request)
        answer = Answer(text=given) if isinstance(given, str) else given
        limits = [request.get("max_tokens") or request.get("max_completion_tokens")]
        if self.window_tokens:
            limits.append(self.window_tokens - _prompt_tokens(request))
        room = min((limit for limit in limits if limit is not None), default=None)
        if room is None or count(answer.text) <= room:
            return answer
        return replace(answer, text=fitting_start(answer.text, max(0, room)), finish_reason="length")

    def note_refused(self, request: dict[str, Any]) -> None:
        """Record a request that was too large; repeating it is a violation."""
        with self._lock:
            if self.check and any(_is_same(request, earlier) for earlier in self.overflows):
                self.violations.append(f"a request that was refused as too large came again ({request.get('model')})")
            self.overflows.append(request)

    def overflow(self, request: dict[str, Any]) -> str:
        """OpenAI's error message if the request exceeds the window, otherwise ""."""
        window, prompt = self.window_tokens, _prompt_tokens(request)
        room = request.get("max_tokens") or request.get("max_completion_tokens") or 0
        if not window or prompt + room <= window:
            return ""
        self.note_refused(request)
        if prompt > window:
            asked, end = f"your messages resulted in {prompt} tokens", "messages"
        else:
            asked = f"you requested {prompt + room} tokens ({prompt} in the messages, {room} in the completion)"
            end = "messages or completion"
        limit = f"This model's maximum context length is {window} tokens."
        return f"{limit} However, {asked}. Please reduce the length of the {end}."


class _Handler(LoopbackHandler):
    def on_get(self) -> None:
        models = self.server.provider.models
        if self.path.rstrip("/") in ("/v1/models", "/api/v0/models"):
            more = self.server.provider.listed
            rows = [{"id": name, "object": "model", "owned_by": "nca", **more} for name in models]
            self._send(200, {"object": "list", "data": rows})
        elif self.path == "/api/tags":
            self._send(200, {"models": [{"name": name, "model": name} for name in models]})
        else:
            self._send(404, {"error": {"message": f"Invalid URL (GET {self.path})", "type": "invalid_request_error"}})

    def on_post(self, body: bytes) -> None:
        provider: Provider = self.server.provider
        if not self.path.endswith("/chat/completions"):
            self._send(404, {"error": {"message": f"Invalid URL (POST {self.path})", "type": "invalid_request_error"}})
            return
        request: dict[str, Any] = json.loads(body)
        exchange = Exchange(
            handler=self,
            request=request,
            attempt=provider.take(request),
            answer=Answer(),
            closing=provider.closing,
            token_seconds=provider.token_seconds,
            note_refused=provider.note_refused,
        )
        if provider.api_key and self.headers.get("Authorization") != f"Bearer {provider.api_key}":
            exchange.error(401, "Incorrect API key provided.", kind="invalid_request_error", code="invalid_api_key")
        elif sentence := provider.overflow(request):
            exchange.error(400, sentence, kind="invalid_request_error", code="context_length_exceeded")
        else:
            exchange.answer = provider.answer_to(request)
            fault = provider.faults.get(exchange.model)
            (fault or Exchange.reply)(exchange)

    def _send(self, status: int, body: Any) -> None:
        Exchange(self, {}, 0, Answer(), self.server.provider.closing).send_json(status, body)


def _is_same(request: dict[str, Any], earlier: dict[str, Any]) -> bool:
    names = ("model", "messages", "tools", "max_tokens", "max_completion_tokens")
    return all(request.get(name) == earlier.get(name) for name in names)


def _prompt_tokens(request: dict[str, Any]) -> int:
    return count_request_tokens(request.get("messages") or [], request.get("tools") or ())


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until interrupted. Prints the address first."""
    parser = argparse.ArgumentParser(prog="python -m nca.testing.provider", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: a free one")
    parser.add_argument("--window", type=int, default=0, help="context window in tokens; 0: no limit")
    parser.add_argument("--token-seconds", type=float, default=0.0, help="delay for each streamed token, in seconds")
    parser.add_argument("--api-key", default="", help="refuse every other key")
    options = parser.parse_args(arguments)
    provider = Provider(
        window_tokens=options.window, token_seconds=options.token_seconds, api_key=options.api_key, port=options.port
    )
    with provider:
        sys.stdout.write(f"{provider.url}\n")
        sys.stdout.flush()
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
