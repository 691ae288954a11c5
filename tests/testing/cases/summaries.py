"""A summarizer that fails, while the chat's own requests are answered."""

from __future__ import annotations

from nca.testing.faults import Fault, call_piece, error, finish, rate_limit
from nca.testing.http_exchange import Exchange
from nca.testing.scripted import is_summary_request, text_of
from tests.testing.cases.calls import A
from tests.testing.cases.case import Case

_SMALL = {"model.context_window": "8000"}
"""A window that the talk has filled, so that it is compacted before the next request."""
_SOON = {"context.summarize.deadline_seconds": "1"}


def summary(fail: Fault) -> Fault:
    """Fail where a summary is asked for, else answer."""

    def run(exchange: Exchange) -> None:
        (fail if is_summary_request(exchange.request) else Exchange.reply)(exchange)

    return run


def _asked(exchange: Exchange) -> str:
    return text_of(exchange.request["messages"][-1])


def _says(text: str) -> Fault:
    return finish("stop", text)


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
    exchange.delta({"tool_calls": [call_piece(A)]})
    exchange.finish("tool_calls")
    exchange.done()


def _overflows(exchange: Exchange) -> None:
    exchange.refuse(1)
    exchange.error(400, "Prompt is too long", kind="invalid_request_error")


def _case(about: str, fail: Fault, says: str, *, requests: int = 3, **settings: str) -> Case:
    """The conversation goes on with a summary that code wrote, and says why."""
    return Case(
        about,
        summary(fail),
        "answer",
        says,
        requests=requests,
        compactions=1,
        needs_talk=True,
        settings={**_SMALL, **settings},
    )


CASES = {
    "summary-refused": _case("a refusal", _says("I'm sorry, I cannot help with that."), "refused"),
    "summary-empty": _case("no text", _says(""), "empty", requests=5),
    "summary-blank": _case("nothing but spaces", _says(" \n\t "), "empty", requests=5),
    "summary-of-thoughts": _case("reasoning and no text", _thinks, "empty", requests=5),
    "summary-short": _case("a word", _says("Done."), "too short"),
    "summary-longer": _case("longer than the messages that it replaces", _longer, "longer"),
    "summary-echo": _case("the input again", _echo, "repeated"),
    "summary-calls": _case("a tool call", _calls, "called a tool"),
    "summary-error": _case("an error", error(400, "Something is wrong."), "Something is wrong"),
    "summary-limited": _case("a rate limit that does not end", rate_limit(retry_after="0"), "rate limit", requests=13),
    "summary-overflow": _case("too large for the summarizer", _overflows, "does not fit"),
    "summary-stalls": _case(
        # Long enough that a busy machine has sent the request by then.
        "never answers",
        Exchange.stall,
        "deadline",
        requests=2,
        **{"context.summarize.deadline_seconds": "5"},
    ),
}
