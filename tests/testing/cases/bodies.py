"""Successful responses whose body is no answer, or has another form than requested."""

from __future__ import annotations

import json
from typing import Any

from nca.testing.faults import FAULTS, Fault, once, send
from nca.testing.http_exchange import Exchange
from tests.testing.cases.case import Case


def whole(**changes: Any) -> Fault:
    """A whole answer although a stream was asked for, with other values in it."""

    def run(exchange: Exchange) -> None:
        exchange.send_json(200, exchange.completion() | changes)

    return run


def message(**changes: Any) -> Fault:
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

CASES = {
    "page": Case("a page", FAULTS["page"], says="sign in", requests=2),
    "nothing": Case("no body", FAULTS["nothing"], says="empty answer", requests=2),
    "nothing-once": Case("no body, once", once(FAULTS["nothing"]), "answer", "empty answer", requests=2),
    "end-mark-only": Case(
        "nothing but the end mark", send(200, b"data: [DONE]\n\n", "text/event-stream"), says="empty answer", requests=2
    ),
    "error-as-success": Case("an error as JSON, once", FAULTS["error-as-success"], "answer", "upstream", requests=2),
    "status-inside": Case("MiniMax's status inside", send(200, _BASE), says="credit"),
    "no-choices": Case("choices: []", whole(choices=[]), says="chat protocol", requests=2),
    "null-choices": Case("choices: null", whole(choices=None), says="chat protocol", requests=2),
    "missing-choices": Case(
        "no choices at all", send(200, {"id": "x", "object": "chat.completion"}), says="chat protocol", requests=2
    ),
    "null-content": Case("content: null", message(content=None), says="empty answer", requests=2),
    "content-in-parts": Case("the content as a list", _parts, "answer"),
    "not-streamed": Case("a whole answer instead of a stream", FAULTS["not-streamed"], "answer"),
    "marked": Case("a byte order mark", _marked, "answer"),
    "mislabeled": Case("a stream labeled as a page", _mislabeled, "answer"),
}
