"""Ways for the loopback provider to fail; the model's name in a request selects one.

    python -m nca.testing.provider
    OPENAI_API_BASE=http://127.0.0.1:PORT/v1 OPENAI_API_KEY=any nca run Hello --model openai/rate-limited

`FAULTS` has the failures that clients meet most. Build others from the functions here, or write a function of an
Exchange, and pass them as `Provider(faults={"my-name": ...})`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from nca.testing.http_exchange import Exchange

Fault = Callable[[Exchange], None]
"""Answers one request, wrongly. `exchange.attempt` counts the model's requests from 1."""

BEGUN = "The beginning of"
"""The text that `begun` sends."""
WINDOW_TOKENS = 6_000
"""The context window that `overflow` pretends to have."""
OUTPUT_TOKENS = 3_000
"""The longest answer that `output_cap` allows."""


def once(fault: Fault) -> Fault:
    """Fail on the first request, then answer."""
    return times(1, fault)


def times(count: int, fault: Fault) -> Fault:
    """Fail on the first `count` requests, then answer."""

    def run(exchange: Exchange) -> None:
        (fault if exchange.attempt <= count else Exchange.reply)(exchange)

    return run


def error(status: int, message: str, *, kind: str = "invalid_request_error", code: str | None = None) -> Fault:
    """An OpenAI-shaped error that may be retried at once."""
    return lambda exchange: exchange.error(status, message, kind=kind, code=code, retry_after="0")


def send(status: int, body: Any, content_type: str = "application/json", **headers: str) -> Fault:
    """A response with this body: bytes as they are, anything else as JSON. Header names have underscores for dashes."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda exchange: exchange.send(status, content_type, data, named)


def rate_limit(message: str = "Rate limit reached.", **headers: str) -> Fault:
    """Status 429; header names have underscores for dashes."""
    return lambda exchange: exchange.error(429, message, kind="requests", code="rate_limit_exceeded", **headers)


def begun(end: Fault) -> Fault:
    """Stream the beginning of an answer, then end like this."""

    def run(exchange: Exchange) -> None:
        exchange.begin()
        exchange.text(BEGUN)
        end(exchange)

    return run


def event(data: str | dict[str, Any]) -> Fault:
    """One stream event in place of an answer."""

    def run(exchange: Exchange) -> None:
        exchange.begin()
        exchange.event(data)
        exchange.done()

    return run


def finish(reason: str, text: str | None = None) -> Fault:
    """The script's answer, or this text, with this finish reason."""

    def run(exchange: Exchange) -> None:
        exchange.begin()
        exchange.text(exchange.answer.text if text is None else text)
        exchange.finish(reason)
        exchange.done()

    return run


def tool_calls(*pieces: dict[str, Any], reason: str = "tool_calls", text: str = "") -> Fault:
    """Stream these pieces of tool calls on the first request, and answer the next. See `call_piece`."""

    def run(exchange: Exchange) -> None:
        exchange.begin()
        exchange.text(text)
        for piece in pieces:
            exchange.delta({"tool_calls": [piece]})
        exchange.finish(reason)
        exchange.done()

    return once(run)


def call_piece(
    arguments: object, *, index: int | None = 0, call_id: str | None = "call_1", name: object = "read_file"
) -> dict[str, Any]:
    """One piece of a streamed tool call; None omits the index or the id."""
    piece: dict[str, Any] = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return piece | ({} if index is None else {"index": index}) | ({} if call_id is None else {"id": call_id})


def overflow(status: int, body: object, *, counts_output: bool = False) -> Fault:
    """Refuse a request that is larger than WINDOW_TOKENS.

    body            <prompt>, <asked>, <limit> and <output> in it are replaced by the numbers of the request
    counts_output   the tokens reserved for the answer count too
    """
    text = body if isinstance(body, str) else json.dumps(body)

    def run(exchange: Exchange) -> None:
        if exchange.refuse(WINDOW_TOKENS, counts_output=counts_output):
            exchange.send(status, "application/json", with_numbers(text, exchange).encode())
        else:
            exchange.reply()

    return run


def with_numbers(text: str, exchange: Exchange, limit_tokens: int = WINDOW_TOKENS) -> str:
    """The text with the request's numbers; see `overflow`."""
    prompt, output = exchange.prompt_tokens, exchange.max_tokens
    for name, number in (("prompt", prompt), ("asked", prompt + output), ("limit", limit_tokens), ("output", output)):
        text = text.replace(f"<{name}>", str(number))
    return text


def output_cap(message: str) -> Fault:
    """Refuse a request that reserves more than OUTPUT_TOKENS for the answer."""

    def run(exchange: Exchange) -> None:
        if exchange.max_tokens > OUTPUT_TOKENS:
            said = with_numbers(message, exchange, OUTPUT_TOKENS)
            exchange.error(400, said, kind="invalid_request_error", code="invalid_value")
        else:
            exchange.reply()

    return run


def no_usage(exchange: Exchange) -> None:
    """An answer whose usage is missing although the request asks for it."""
    exchange.begin()
    exchange.text(exchange.answer.text)
    exchange.delta({}, "stop")
    exchange.done()


def drip(exchange: Exchange) -> None:
    """One character now and then, without an end."""
    exchange.begin()
    while not exchange.closing.wait(0.3):
        exchange.delta({"content": "."})


def _overloaded(exchange: Exchange) -> None:
    exchange.event(json.dumps(_OVERLOADED))
    exchange.done()


_QUOTA = "You exceeded your current quota, please check your plan and billing details."
_SIGN_IN = b"<html><head><title>Sign in</title></head><body>Please sign in to the network.</body></html>"
_TOO_LARGE = (
    b"<html><head><title>413 Request Entity Too Large</title></head><body><hr><center>nginx</center></body></html>"
)
_OVERLOADED = {"error": {"message": "The server is overloaded.", "type": "server_error", "code": "500"}}
_UPSTREAM = {"error": {"message": "The upstream failed.", "type": "server_error", "code": 502}}
_CONTEXT_LENGTH = (
    "This model's maximum context length is <limit> tokens. However, your messages resulted in <prompt> tokens."
)
_GEMINI = "The input token count (<prompt>) exceeds the maximum number of tokens allowed (<limit>)."
_RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.2s"}
_RETRY_LATER = {"code": 429, "message": "Quota exceeded.", "status": "RESOURCE_EXHAUSTED", "details": [_RETRY_INFO]}
OPENAI_OVERFLOW = {
    "error": {
        "message": _CONTEXT_LENGTH,
        "type": "invalid_request_error",
        "param": "messages",
        "code": "context_length_exceeded",
    }
}
ANTHROPIC_OVERFLOW = {
    "type": "error",
    "error": {"type": "invalid_request_error", "message": "prompt is too long: <prompt> tokens > <limit> maximum"},
}

FAULTS: dict[str, Fault] = {
    # Status codes
    "wrong-key": error(401, "Incorrect API key provided.", code="invalid_api_key"),
    "forbidden": error(403, "This key has no access to the model."),
    "no-such-model": error(404, "The model does not exist.", code="model_not_found"),
    "no-money": error(429, _QUOTA, kind="insufficient_quota", code="insufficient_quota"),
    "too-many-bytes": send(413, _TOO_LARGE, "text/html", retry_after="0"),
    "server-error": once(error(500, "The server had an error.")),
    "server-error-for-ever": error(500, "An error of its own."),
    "unavailable": times(2, error(503, "Loading model")),
    "overloaded": times(
        2, send(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, retry_after="0")
    ),
    # Rate limits
    "rate-limited": once(rate_limit(retry_after="0")),
    "rate-limited-in-seconds": once(rate_limit(retry_after="0.3")),
    "rate-limited-in-body": once(send(429, {"error": _RETRY_LATER})),
    "rate-limited-for-a-day": rate_limit(retry_after="86400"),
    "rate-limited-for-ever": rate_limit(retry_after="0"),
    # Connections
    "closes-at-once": once(Exchange.cut),
    "resets-at-once": once(Exchange.reset),
    "resets-in-the-middle": begun(Exchange.reset),
    "cut-in-the-middle": begun(Exchange.cut),
    "stalls-at-first": Exchange.stall,
    "stalls-in-the-middle": begun(Exchange.stall),
    "drips": drip,
    # Responses and streams
    "page": send(200, _SIGN_IN, "text/html"),
    "nothing": send(200, b"", "text/event-stream"),
    "error-as-success": once(send(200, _UPSTREAM)),
    "not-streamed": lambda exchange: exchange.send_json(200, exchange.completion()),
    "ends-without-reason": begun(Exchange.end),
    "error-in-stream": begun(_overloaded),
    "error-first": once(event(json.dumps(_OVERLOADED))),
    # Answers
    "blank": finish("stop", " \n\t "),
    "cut-by-length": finish("length", BEGUN),
    "filtered": finish("content_filter", BEGUN),
    "no-usage": no_usage,
    # Tool calls
    "broken-arguments": tool_calls(call_piece('{"path": "a')),
    "no-ids": tool_calls(call_piece('{"path": "a"}', call_id=None), call_piece('{"path": "b"}', index=1, call_id="")),
    "cut-call": tool_calls(call_piece('{"path": "a'), reason="length"),
    # Context overflows, in each provider's words
    "overflow-of-openai": overflow(400, OPENAI_OVERFLOW),
    "overflow-of-anthropic": overflow(400, ANTHROPIC_OVERFLOW),
    "overflow-of-gemini": overflow(400, {"error": {"code": 400, "message": _GEMINI, "status": "INVALID_ARGUMENT"}}),
    "output-cap": output_cap(
        "max_tokens is too large: <output>. This model supports at most <limit> completion tokens."
    ),
}
"""By the model's name."""
