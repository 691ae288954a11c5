"""Success with a body that is no answer, or one of another form than was asked for."""

from __future__ import annotations

import json
from typing import Any

from nca.testing.faults.fault import Fault, Run, once
from nca.testing.http_exchange import Exchange

HTML = b"<html><head><title>Sign in</title></head><body>Please sign in to the network.</body></html>"
_EVENTS = "text/event-stream"


def sent(body: Any) -> Run:
    return lambda exchange: exchange.send_json(200, body)


def raw(data: bytes, content_type: str = _EVENTS) -> Run:
    return lambda exchange: exchange.send(200, content_type, data)


def whole(**changes: Any) -> Run:
    """A whole answer although a stream was asked for, with other values in it."""

    def run(exchange: Exchange) -> None:
        exchange.send_json(200, exchange.completion() | changes)

    return run


def message(**changes: Any) -> Run:
    """A whole answer with other values in its message."""

    def run(exchange: Exchange) -> None:
        body = exchange.completion()
        body["choices"][0]["message"] |= changes
        exchange.send_json(200, body)

    return run


def _parts(exchange: Exchange) -> None:
    message(content=[{"type": "text", "text": exchange.answer.text}])(exchange)


def _marked(exchange: Exchange) -> None:
    """A byte order mark before the answer."""
    exchange.send(200, "application/json", b"\xef\xbb\xbf" + json.dumps(exchange.completion()).encode())


def _mislabeled(exchange: Exchange) -> None:
    """A stream that is sent as a page."""
    exchange.begin(content_type="text/html")
    exchange.text(exchange.answer.text)
    exchange.finish()
    exchange.done()


_BASE = {"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}
_ERROR = {"error": {"message": "The upstream failed.", "type": "server_error", "code": 502}}

FAULTS = {
    "page": Fault("a page", raw(HTML, "text/html"), says="sign in", requests=2),
    "nothing": Fault("no body", raw(b""), says="empty answer", requests=2),
    "nothing-once": Fault("no body, once", once(raw(b"")), "answer", "empty answer", requests=2),
    "end-mark-only": Fault("nothing but the end mark", raw(b"data: [DONE]\n\n"), says="empty answer", requests=2),
    "error-as-success": Fault("an error as JSON, once", once(sent(_ERROR)), "answer", "upstream", requests=2),
    "status-inside": Fault("MiniMax's status inside", sent(_BASE), says="credit"),
    "no-choices": Fault("choices: []", whole(choices=[]), says="chat protocol", requests=2),
    "null-choices": Fault("choices: null", whole(choices=None), says="chat protocol", requests=2),
    "missing-choices": Fault(
        "no choices at all", sent({"id": "x", "object": "chat.completion"}), says="chat protocol", requests=2
    ),
    "null-content": Fault("content: null", message(content=None), says="empty answer", requests=2),
    "content-in-parts": Fault("the content as a list", _parts, "answer"),
    "not-streamed": Fault("a whole answer instead of a stream", whole(), "answer"),
    "marked": Fault("a byte order mark", _marked, "answer"),
    "mislabeled": Fault("a stream labeled as a page", _mislabeled, "answer"),
}
