"""Connections: refused, reset, cut, stalled, slow, or not what the headers say."""

from __future__ import annotations

from nca.testing.faults import BEGUN, FAULTS, once
from nca.testing.http_exchange import Exchange
from tests.testing.cases.case import Case, breaks, breaks_once

_SOON = {"model.first_token_seconds": "4", "model.idle_seconds": "4"}
"""They run from before the connection is made, for which a busy machine takes a second or two."""
_SHORT = {"model.total_seconds": "6"}


def _resets_after_headers(exchange: Exchange) -> None:
    exchange.begin()
    exchange.reset()


def _stalls_after_headers(exchange: Exchange) -> None:
    exchange.begin()
    exchange.stall()


def _stalls_before_the_end(exchange: Exchange) -> None:
    exchange.begin()
    exchange.text(exchange.answer.text)
    exchange.stall()


def _short(exchange: Exchange) -> None:
    """Less than Content-Length promises."""
    exchange.handler.send_response(200)
    exchange.handler.send_header("Content-Type", "application/json")
    exchange.handler.send_header("Content-Length", "5000")
    exchange.handler.end_headers()
    exchange.handler.wfile.write(b'{"id": "chatcmpl-1", "object": "chat.completion", "choices": [{"index": 0, "mess')
    exchange.cut()


def _comments(exchange: Exchange) -> None:
    """Comments keep the connection open, and say nothing."""
    exchange.begin(role=False)
    while not exchange.closing.wait(0.3):
        exchange.raw(b": OPENROUTER PROCESSING\n\n")


def _old_protocol(exchange: Exchange) -> None:
    """HTTP/1.0: no chunks; the end of the connection ends the answer."""
    exchange.handler.protocol_version = "HTTP/1.0"
    exchange.begin(chunked=False)
    exchange.text(exchange.answer.text)
    exchange.finish()
    exchange.done()
    exchange.cut()


def _bad_compression(exchange: Exchange) -> None:
    exchange.send(200, "text/event-stream", b"\x1f\x8b\x08 this is not gzip", {"Content-Encoding": "gzip"})


def _second_request_reset(exchange: Exchange) -> None:
    """The kept connection is gone when the tool's result comes back."""
    if exchange.attempt == 1:
        exchange.begin()
        exchange.calls(("read_file", {"path": "a"}))
    elif exchange.attempt == 2:
        exchange.reset()
    else:
        exchange.reply()


CASES = {
    "closes-at-once": Case("accepted, closed", FAULTS["closes-at-once"], "answer", "was lost", requests=2),
    "closes-for-ever": Case(
        "accepted, closed, always", Exchange.cut, says="was lost", requests=2, settings={"model.max_retries": "1"}
    ),
    "resets-at-once": Case("reset before headers", FAULTS["resets-at-once"], "answer", "was lost", requests=2),
    "resets-after-headers": Case("reset behind the headers", once(_resets_after_headers), "answer", requests=2),
    "resets-in-the-middle": breaks("reset behind some text", FAULTS["resets-in-the-middle"]),
    "cut-in-the-middle": breaks("the connection is cut", FAULTS["cut-in-the-middle"], "was lost"),
    "cut-once": breaks_once("the connection is cut, once", FAULTS["cut-in-the-middle"]),
    "short-body": Case("a body shorter than promised", once(_short), "answer", requests=2),
    "stalls-at-first": Case(
        "accepted, then nothing", FAULTS["stalls-at-first"], says="first_token_seconds", requests=2, settings=_SOON
    ),
    "stalls-once": Case(
        "nothing, once", once(Exchange.stall), "answer", "first_token_seconds", requests=2, settings=_SOON
    ),
    "stalls-after-headers": Case(
        "headers, then nothing", _stalls_after_headers, says="idle_seconds", requests=2, settings=_SOON
    ),
    "stalls-in-the-middle": Case(
        "text, then nothing", FAULTS["stalls-in-the-middle"], says="idle_seconds", shown=BEGUN, settings=_SOON
    ),
    "stalls-before-the-end": Case(
        "the whole text, and no end",
        _stalls_before_the_end,
        says="idle_seconds",
        rows=("user", "interrupted"),
        settings=_SOON,
    ),
    "drips": Case(
        "a character now and then, for ever", FAULTS["drips"], says="total_seconds", shown="...", settings=_SHORT
    ),
    "only-comments": Case("comments and no answer", _comments, says="first_token_seconds", requests=2, settings=_SOON),
    "old-protocol": Case("HTTP/1.0", _old_protocol, "answer"),
    "bad-compression": Case("gzip that is none", once(_bad_compression), "answer", requests=2),
    "second-request-reset": Case(
        "a kept connection that is gone",
        _second_request_reset,
        "answer",
        "was lost",
        requests=3,
        rows=("user", "assistant", "tool", "assistant"),
        results=("",),
    ),
}
