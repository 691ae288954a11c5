"""A summarizer that fails: the talk's own requests are answered, those for a summary are not."""

from __future__ import annotations

from nca.testing.faults.answers import ends
from nca.testing.faults.calls import A, piece
from nca.testing.faults.fault import Fault, Run, wants_summary
from nca.testing.http_exchange import Exchange
from nca.testing.script import text_of

_SMALL = {"model.context_window": "8000"}
"""A window that the talk has filled, so that it is compacted before the next request."""
_SOON = {"context.summarize.deadline_seconds": "1"}


def summary(fail: Run) -> Run:
    """Fail where a summary is asked for, else answer."""

    def run(exchange: Exchange) -> None:
        (fail if wants_summary(exchange) else Exchange.reply)(exchange)

    return run


def _asked(exchange: Exchange) -> str:
    return text_of(exchange.request["messages"][-1])


def _says(text: str) -> Run:
    return ends("stop", text)


def _echo(exchange: Exchange) -> None:
    _says(_asked(exchange)[:6_000])(exchange)


def _longer(exchange: Exchange) -> None:
    _says("A word more than was asked for. " * (len(_asked(exchange)) // 24))(exchange)


def _thinks(exchange: Exchange) -> None:
    exchange.begin()
    exchange.delta({"reasoning_content": "What did they say?"})
    exchange.finish("stop")
    exchange.done()


def _calls(exchange: Exchange) -> None:
    exchange.begin()
    exchange.delta({"tool_calls": [piece(A)]})
    exchange.finish("tool_calls")
    exchange.done()


def _overflows(exchange: Exchange) -> None:
    exchange.refuse(1, is_sum=False)
    exchange.error(400, "Prompt is too long", kind="invalid_request_error")


def _limited(exchange: Exchange) -> None:
    exchange.error(429, "Rate limit reached.", kind="requests", code="rate_limit_exceeded", retry_after="0")


def _broken(exchange: Exchange) -> None:
    exchange.error(400, "Something is wrong.", kind="invalid_request_error")


def _fault(about: str, fail: Run, says: str, *, requests: int = 3, **settings: str) -> Fault:
    """The conversation goes on with a summary that code wrote, and says why."""
    return Fault(
        about,
        summary(fail),
        "answer",
        says,
        requests=requests,
        compactions=1,
        needs_talk=True,
        settings={**_SMALL, **settings},
    )


FAULTS = {
    "summary-refused": _fault("a refusal", _says("I'm sorry, I cannot help with that."), "refused"),
    "summary-empty": _fault("no text", _says(""), "empty", requests=5),
    "summary-blank": _fault("nothing but spaces", _says(" \n\t "), "empty", requests=5),
    "summary-of-thoughts": _fault("reasoning and no text", _thinks, "empty", requests=5),
    "summary-short": _fault("a word", _says("Done."), "too short"),
    "summary-longer": _fault("longer than what it stands for", _longer, "longer"),
    "summary-echo": _fault("the input again", _echo, "repeated"),
    "summary-calls": _fault("a tool call", _calls, "called a tool"),
    "summary-error": _fault("an error", _broken, "Something is wrong"),
    "summary-limited": _fault("a rate limit that does not end", _limited, "rate limit", requests=13),
    "summary-overflow": _fault("too large for the summarizer", _overflows, "does not fit"),
    "summary-stalls": _fault(
        "never answers", Exchange.stall, "deadline", requests=2, **{"context.summarize.deadline_seconds": "1"}
    ),
}
