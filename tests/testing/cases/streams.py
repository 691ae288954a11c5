"""Event streams: unusual but legal forms, broken ones, and errors inside."""

from __future__ import annotations

import json

from nca.testing.faults import BEGUN, FAULTS, Fault, event, once
from nca.testing.http_exchange import Exchange
from nca.testing.scripted import split_text
from tests.testing.cases.case import Case, breaks, breaks_once

_LONG = "A line of an answer that goes on for some time, and then a little further. " * 2_000
_TINY = "Many small pieces. " * 150
_WIDE = "Grüße, 日本語 und 😀."


def _wrapped(wrap: str, end: str = "\n\n") -> Fault:
    """Each event's line written in another legal way; `wrap` has its data at {}."""

    def run(exchange: Exchange) -> None:
        exchange.begin()
        for token in split_text(exchange.answer.text):
            data = exchange.chunk({"choices": [{"index": 0, "delta": {"content": token}, "finish_reason": None}]})
            exchange.raw((wrap.format(data) + end).encode())
        exchange.finish()
        exchange.done()

    return run


def _in_lines(exchange: Exchange) -> None:
    """One event's JSON over several data lines."""
    exchange.begin()
    choice = {"index": 0, "delta": {"content": exchange.answer.text}, "finish_reason": None}
    lines = json.dumps(exchange.envelope("chat.completion.chunk") | {"choices": [choice]}, indent=1).splitlines()
    exchange.raw(("".join(f"data: {line}\n" for line in lines) + "\n").encode())
    exchange.finish()
    exchange.done()


def _says(text: str) -> Fault:
    def run(exchange: Exchange) -> None:
        exchange.begin()
        exchange.text(text)
        exchange.finish()
        exchange.done()

    return run


def _in_one_piece(exchange: Exchange) -> None:
    exchange.begin()
    exchange.delta({"content": _LONG})
    exchange.finish()
    exchange.done()


def _split(exchange: Exchange) -> None:
    """Characters of several bytes, cut between them."""
    exchange.begin()
    data = exchange.chunk({"choices": [{"index": 0, "delta": {"content": _WIDE}, "finish_reason": None}]}, ascii=False)
    for byte in f"data: {data}\n\n".encode():
        exchange.raw(bytes([byte]))
    exchange.finish()
    exchange.done()


def _with_bad_byte(exchange: Exchange) -> None:
    exchange.begin()
    data = exchange.chunk({"choices": [{"index": 0, "delta": {"content": "Gr?n"}, "finish_reason": None}]})
    exchange.raw(f"data: {data}\n\n".encode().replace(b"?", b"\xfc"))
    exchange.finish()
    exchange.done()


def _then(data: bytes, *, is_over: bool = True) -> Fault:
    """Some text, then these bytes."""

    def run(exchange: Exchange) -> None:
        exchange.begin()
        exchange.text(BEGUN)
        exchange.raw(data)
        exchange.done() if is_over else exchange.end()

    return run


def _odd_chunks(exchange: Exchange) -> None:
    exchange.begin()
    exchange.raw(b": a comment\n\n")
    exchange.event({"choices": []})
    exchange.event({"choices": None})
    exchange.delta(None)
    exchange.delta({"role": "assistant"})
    exchange.text(exchange.answer.text)
    exchange.delta({"role": "assistant", "content": ""})
    exchange.finish()
    exchange.finish()
    exchange.done()


def _no_end_mark(exchange: Exchange) -> None:
    exchange.begin()
    exchange.text(exchange.answer.text)
    exchange.finish()
    exchange.end()


def _more_after_the_end(exchange: Exchange) -> None:
    exchange.begin()
    exchange.text(exchange.answer.text)
    exchange.finish()
    exchange.raw(b"data: [DONE]\n\n")
    exchange.delta({"content": " And this is no part of it."})
    exchange.done()


def _end_mark_early(exchange: Exchange) -> None:
    """The end mark without a finish reason: the provider says that it was all."""
    exchange.begin()
    exchange.text(exchange.answer.text)
    exchange.done()


_OF_ANTHROPIC = '{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}'
_OF_ROUTER = '{"error": {"code": 502, "message": "Provider returned error", "metadata": {"raw": "Upstream is gone"}}}'

CASES = {
    "odd-chunks": Case("comments, empty and null chunks, everything twice", _odd_chunks, "answer"),
    "with-names": Case("event: names", _wrapped("event: delta\nid: 7\ndata: {}"), "answer"),
    "without-space": Case("no space behind data:", _wrapped("data:{}"), "answer"),
    "with-returns": Case("lines that end in CR LF", _wrapped("data: {}", "\r\n\r\n"), "answer"),
    "in-lines": Case("one event over several lines", _in_lines, "answer"),
    "split-characters": Case("characters cut between their bytes", _split, "answer", shown=_WIDE),
    "lone-surrogate": Case("half a character", _says("A lone \ud83d half."), "answer", shown="A lone"),
    "with-nul": Case("NUL and escape codes", _says("A \x00\x1b[31mred\x07 word."), "answer", shown="word."),
    "one-large-chunk": Case("150 KB in one event", _in_one_piece, "answer", shown=_LONG[:70]),
    "many-small-chunks": Case("hundreds of events", _says(_TINY), "answer", shown=_TINY[:70]),
    "no-end-mark": Case("a finish reason and no end mark", _no_end_mark, "answer"),
    "more-after-the-end": Case("text behind the end mark", _more_after_the_end, "answer"),
    "end-mark-early": Case("an end mark and no finish reason", _end_mark_early, "answer"),
    "ends-without-reason": breaks("the stream ends early", FAULTS["ends-without-reason"], "ended early"),
    "ends-without-reason-once": breaks_once("the stream ends early, once", FAULTS["ends-without-reason"]),
    "malformed": breaks("an event that is not JSON", _then(b'data: {"choices": [{"index": 0, "del\n\n')),
    "truncated": breaks("the last line is cut", _then(b'data: {"choices": [{"ind', is_over=False)),
    "bad-encoding": Case("a byte that is not UTF-8", _with_bad_byte, "answer", shown="Gr\ufffdn"),
    "error-in-stream": breaks("an error behind some text", FAULTS["error-in-stream"], "overloaded"),
    "error-first": Case("an error instead, once", FAULTS["error-first"], "answer", "overloaded", requests=2),
    "error-of-anthropic": Case("Anthropic's, once", once(event(_OF_ANTHROPIC)), "answer", "overloaded", requests=2),
    "error-of-router": Case("OpenRouter's, once", once(event(_OF_ROUTER)), "answer", "upstream", requests=2),
}
