"""Named ways to fail: the model's name in a request selects one.

Each says what it does and what should come of it, so that one test can run them all and a person can try one.
Outcomes: "answer" (the turn ends well, perhaps after a retry) or "error" (one clear line).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nca.testing.exchange import Exchange

_BEGUN = "The beginning of"
OVERFLOW = "This model's maximum context length is 4096 tokens. However, your messages resulted in 5000 tokens."
HTML = b"<html><head><title>Sign in</title></head><body>Please sign in to the network.</body></html>"


@dataclass(frozen=True, slots=True)
class Fault:
    """`says` is text that an error's line has in it (any case); `requests` is how many reach the provider."""

    about: str
    run: Callable[[Exchange], None]
    outcome: str = "error"
    says: str = ""
    requests: int = 1
    shown: str = ""
    """Text that a person has seen by the end, where it is not the script's answer."""


def _once(fail: Callable[[Exchange], None]) -> Callable[[Exchange], None]:
    """Fail at the first request, then answer."""

    def run(exchange: Exchange) -> None:
        (fail if exchange.attempt == 1 else Exchange.reply)(exchange)

    return run


def _wrong_key(exchange: Exchange) -> None:
    exchange.error(401, "Incorrect API key provided.", kind="invalid_request_error", code="invalid_api_key")


def _no_such_model(exchange: Exchange) -> None:
    exchange.error(404, "The model does not exist.", kind="invalid_request_error", code="model_not_found")


def _no_money(exchange: Exchange) -> None:
    message = "You exceeded your current quota, please check your plan and billing details."
    exchange.error(429, message, kind="insufficient_quota", code="insufficient_quota")


def _rate_limited(exchange: Exchange) -> None:
    exchange.error(429, "Rate limit reached.", kind="requests", code="rate_limit_exceeded", retry_after="0")


def _rate_limited_for_a_day(exchange: Exchange) -> None:
    exchange.error(429, "Rate limit reached.", kind="requests", code="rate_limit_exceeded", retry_after="86400")


def _rate_limited_by_date(exchange: Exchange) -> None:
    past = "Wed, 21 Oct 2015 07:28:00 GMT"
    exchange.error(429, "Rate limit reached.", kind="requests", code="rate_limit_exceeded", retry_after=past)


def _one_request_over_rate(exchange: Exchange) -> None:
    message = "Request too large for m on tokens per min (TPM): Limit 30000, Requested 30610."
    exchange.error(429, message, kind="tokens", code="rate_limit_exceeded")


def _server_error(exchange: Exchange) -> None:
    exchange.error(500, "The server had an error.", kind="server_error", retry_after="0")


def _gateway_page(exchange: Exchange) -> None:
    exchange.send(502, "text/html", b"<html><h1>502 Bad Gateway</h1></html>", {"retry-after": "0"})


def _page(exchange: Exchange) -> None:
    exchange.send(200, "text/html", HTML)


def _nothing(exchange: Exchange) -> None:
    exchange.send(200, "text/event-stream", b"")


def _end_mark_only(exchange: Exchange) -> None:
    exchange.send(200, "text/event-stream", b"data: [DONE]\n\n")


def _stop_without_text(exchange: Exchange) -> None:
    exchange.begin()
    exchange.finish("stop")
    exchange.done()


def _error_as_success(exchange: Exchange) -> None:
    body = {"error": {"message": OVERFLOW, "type": "invalid_request_error", "code": "context_length_exceeded"}}
    exchange.send_json(200, body)


def _error_in_stream(exchange: Exchange) -> None:
    exchange.begin()
    exchange.text(_BEGUN)
    exchange.event('{"error": {"message": "The server is overloaded.", "type": "server_error", "code": "500"}}')
    exchange.done()


def _overflow_in_stream(exchange: Exchange) -> None:
    exchange.begin()
    exchange.event('{"error": {"message": "' + OVERFLOW + '", "code": "context_length_exceeded"}}')
    exchange.done()


def _error_as_text(exchange: Exchange) -> None:
    exchange.begin()
    exchange.text('{"message":"Too many tokens, please wait before trying again."}')
    exchange.finish("error_finish")
    exchange.done()


def _cut_in_the_middle(exchange: Exchange) -> None:
    exchange.begin()
    exchange.text(_BEGUN)
    exchange.cut()


def _ends_without_reason(exchange: Exchange) -> None:
    exchange.begin()
    exchange.text(_BEGUN)
    exchange.end()


def _stalls_at_first(exchange: Exchange) -> None:
    exchange.stall()


def _stalls_in_the_middle(exchange: Exchange) -> None:
    exchange.begin()
    exchange.text(_BEGUN)
    exchange.stall()


def _malformed(exchange: Exchange) -> None:
    exchange.begin()
    exchange.text(_BEGUN)
    exchange.event('{"choices": [{"index": 0, "delta": {"content": "ha')
    exchange.done()


def _odd_chunks(exchange: Exchange) -> None:
    exchange.begin()
    exchange.raw(b": a comment\n\n")
    exchange.event({"choices": []})
    exchange.event({"choices": None})
    exchange.delta(None)
    exchange.text(exchange.answer.text)
    exchange.finish()
    exchange.done()


def _unknown_reason(exchange: Exchange) -> None:
    exchange.begin()
    exchange.text(exchange.answer.text)
    exchange.finish("because")
    exchange.done()


def _no_reason(exchange: Exchange) -> None:
    exchange.begin()
    exchange.text(exchange.answer.text)
    exchange.done()


def _no_usage(exchange: Exchange) -> None:
    exchange.begin()
    exchange.text(exchange.answer.text)
    exchange.delta({}, "stop")
    exchange.done()


def _not_streamed(exchange: Exchange) -> None:
    exchange.send_json(200, exchange.completion())


def _filled_window(exchange: Exchange) -> None:
    exchange.begin()
    exchange.delta({}, "length")
    exchange.event({"choices": [], "usage": {"prompt_tokens": 4096, "completion_tokens": 0, "total_tokens": 4096}})
    exchange.done()


def _refusal(exchange: Exchange) -> None:
    exchange.begin()
    exchange.delta({"refusal": "I cannot help with that."})
    exchange.finish("stop")
    exchange.done()


def _calls(*pieces: dict[str, object], finish: str = "tool_calls") -> Callable[[Exchange], None]:
    def run(exchange: Exchange) -> None:
        exchange.begin()
        for piece in pieces:
            exchange.delta({"tool_calls": [piece]})
        exchange.finish(finish)
        exchange.done()

    return run


def _call(arguments: object, *, index: int | None = 0, call_id: str | None = "call_1") -> dict[str, object]:
    piece: dict[str, object] = {"type": "function", "function": {"name": "read_file", "arguments": arguments}}
    piece |= {} if index is None else {"index": index}
    return piece | ({} if call_id is None else {"id": call_id})


_READ_A, _READ_B = '{"path": "a"}', '{"path": "b"}'

FAULTS: dict[str, Fault] = {
    "wrong-key": Fault("401", _wrong_key, says="key"),
    "no-such-model": Fault("404", _no_such_model, says="not known"),
    "no-money": Fault("429 for quota: waiting cannot help", _no_money, says="credit"),
    "rate-limited": Fault("429 once, Retry-After: 0", _once(_rate_limited), "answer", requests=2),
    "rate-limited-by-date": Fault(
        "429 once, Retry-After as a date", _once(_rate_limited_by_date), "answer", requests=2
    ),
    "rate-limited-for-a-day": Fault("429, Retry-After: 86400", _rate_limited_for_a_day, says="24 hours"),
    "one-request-over-rate": Fault("429, one request above TPM", _one_request_over_rate, says="/compact"),
    "server-error": Fault("500 once", _once(_server_error), "answer", requests=2),
    "gateway-page": Fault("502 with a page, once", _once(_gateway_page), "answer", requests=2),
    "page": Fault("200 with a page instead of an answer", _page, says="sign in", requests=2),
    "nothing": Fault("200 without a body", _nothing, says="empty answer", requests=2),
    "end-mark-only": Fault("a stream with nothing but its end", _end_mark_only, says="empty answer", requests=2),
    "stop-without-text": Fault("a stop without text", _stop_without_text, says="empty answer", requests=2),
    "error-as-success": Fault("200 with an overflow error as JSON", _error_as_success, says="context"),
    "error-in-stream": Fault("an error object after some text", _error_in_stream, says="overloaded", shown=_BEGUN),
    "overflow-in-stream": Fault("an overflow as the first event", _overflow_in_stream, says="context"),
    "error-as-text": Fault("a throttle as the answer's text, once", _once(_error_as_text), "answer", requests=2),
    "cut-in-the-middle": Fault("the connection is cut", _cut_in_the_middle, shown=_BEGUN),
    "ends-without-reason": Fault("the stream ends early", _ends_without_reason, says="broke off", shown=_BEGUN),
    "stalls-at-first": Fault("accepted, then nothing", _stalls_at_first, says="first_token_seconds", requests=2),
    "stalls-in-the-middle": Fault("some text, then nothing", _stalls_in_the_middle, says="idle_seconds", shown=_BEGUN),
    "malformed": Fault("an event that is not JSON", _malformed, shown=_BEGUN),
    "odd-chunks": Fault("comments, empty and null chunks", _odd_chunks, "answer"),
    "unknown-reason": Fault("an unknown finish reason", _unknown_reason, "answer"),
    "no-reason": Fault("an end mark without a finish reason", _no_reason, "answer"),
    "no-usage": Fault("no usage although asked for", _no_usage, "answer"),
    "not-streamed": Fault("a whole answer although a stream was asked for", _not_streamed, "answer"),
    "filled-window": Fault("length, nothing said, the window full", _filled_window, says="context"),
    "refusal": Fault("a refusal in its own field", _refusal, "answer", shown="I cannot help with that."),
    "broken-arguments": Fault("arguments that are not JSON", _calls(_call('{"path": "a')), "answer"),
    "object-arguments": Fault("arguments as an object", _calls(_call({"path": "a"})), "answer"),
    "double-encoded": Fault("arguments as JSON in JSON", _calls(_call('"{\\"path\\": \\"a\\"}"')), "answer"),
    "no-ids": Fault(
        "calls without ids", _calls(_call(_READ_A, call_id=None), _call(_READ_B, index=1, call_id="")), "answer"
    ),
    "same-ids": Fault("two calls with one id", _calls(_call(_READ_A), _call(_READ_B, index=1)), "answer"),
    "same-index": Fault("two calls at one index", _calls(_call(_READ_A), _call(_READ_B, call_id="call_2")), "answer"),
    "no-index": Fault(
        "calls without an index",
        _calls(_call(_READ_A, index=None), _call(_READ_B, index=None, call_id="call_2")),
        "answer",
    ),
    "cut-call": Fault("a call cut by length", _calls(_call('{"path": "a'), finish="length"), "answer"),
    "ten-calls": Fault(
        "one call ten times", _calls(*(_call(_READ_A, index=n, call_id=f"call_{n}") for n in range(10))), "answer"
    ),
}
"""By the model's name."""
