"""Answers: how they end, their usage, their reasoning, and errors in their place."""

from __future__ import annotations

from typing import Any

from nca.testing.faults import BEGUN, FAULTS, Fault, finish, once
from nca.testing.http_exchange import Exchange
from tests.testing.cases.case import Case

_THROTTLE = '{"message":"Too many tokens, please wait before trying again."}'
_ERROR_TEXT = '{"error": {"message": "The upstream service failed.", "type": "server_error", "code": 500}}'


def reports(usage: Any) -> Fault:
    """The script's answer with this usage."""

    def run(exchange: Exchange) -> None:
        exchange.begin()
        exchange.text(exchange.answer.text)
        exchange.delta({}, "stop")
        exchange.event({"choices": [], "usage": usage})
        exchange.done()

    return run


def _filled_window(exchange: Exchange) -> None:
    """No room is left for a single token; said as an answer of length 0."""
    prompt = exchange.prompt_tokens
    if not exchange.refuse(6_000):
        return exchange.reply()
    exchange.begin()
    exchange.delta({}, "length")
    exchange.event({"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": 0, "total_tokens": prompt}})
    return exchange.done()


def _cut_prompt(exchange: Exchange) -> None:
    """The beginning of what does not fit is left out without a word, as Ollama does with its default window."""
    exchange.begin()
    exchange.text(exchange.answer.text)
    exchange.delta({}, "stop")
    kept = min(2_048, exchange.prompt_tokens)
    exchange.event({"choices": [], "usage": {"prompt_tokens": kept, "completion_tokens": 5, "total_tokens": kept + 5}})
    exchange.done()


def _refusal(exchange: Exchange) -> None:
    exchange.begin()
    exchange.delta({"refusal": "I cannot help with that."})
    exchange.finish("stop")
    exchange.done()


def _only_thoughts(exchange: Exchange) -> None:
    exchange.begin()
    for thought in ("Let me think ", "about this."):
        exchange.delta({"reasoning_content": thought})
    exchange.finish("stop")
    exchange.done()


def _thoughts_first(exchange: Exchange) -> None:
    exchange.begin()
    exchange.delta({"reasoning": "Let me think."})
    exchange.text(exchange.answer.text)
    exchange.finish()
    exchange.done()


_ABSURD = {"prompt_tokens": 10**12, "completion_tokens": 10**12, "total_tokens": 2 * 10**12}
_NEGATIVE = {"prompt_tokens": -1, "completion_tokens": -5, "total_tokens": -6}
_INVENTED = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
_WORDS = {"prompt_tokens": "many", "completion_tokens": None, "prompt_tokens_details": "none"}

CASES = {
    "unknown-reason": Case("an unknown finish reason", finish("because"), "answer", "of its own: because"),
    "stop-without-text": Case("a stop without text", finish("stop", ""), says="empty answer", requests=2),
    "blank": Case("nothing but spaces", FAULTS["blank"], says="empty answer", requests=2),
    "cut-by-length": Case(
        "text cut by length, and again",
        FAULTS["cut-by-length"],
        "length",
        "cut the answer off after",
        shown=BEGUN,
        requests=2,
        rows=("user", "assistant", "user", "assistant"),
    ),
    "cut-by-length-once": Case(
        "text cut by length, once",
        once(FAULTS["cut-by-length"]),
        "answer",
        "The model was asked to continue, and did.",
        requests=2,
        rows=("user", "assistant", "user", "assistant"),
    ),
    "no-room-for-text": Case(
        "length, and no text although there was room",
        finish("length", ""),
        says="max_output_tokens",
        requests=2,
        rows=("user", "user"),
    ),
    "filtered": Case("content_filter behind some text", FAULTS["filtered"], "content_filter", "filter", shown=BEGUN),
    "filtered-at-once": Case(
        "content_filter, no text",
        finish("content_filter", ""),
        reason="content_filter",
        says="content filter",
        error_code=1,
    ),
    "refusal": Case("a refusal in its own field", _refusal, "answer", shown="I cannot help with that."),
    "only-thoughts": Case("reasoning and no text, once", once(_only_thoughts), "answer", "empty answer", requests=2),
    "only-thoughts-for-ever": Case("reasoning and no text", _only_thoughts, says="empty answer", requests=2),
    "thoughts-first": Case("reasoning, then text", _thoughts_first, "answer"),
    "error-as-text": Case(
        "a throttle as the answer's text, once",
        once(finish("error_finish", _THROTTLE)),
        "answer",
        "too many tokens",
        requests=2,
    ),
    "error-as-text-for-ever": Case(
        "an error as the answer's text",
        finish("error", _ERROR_TEXT),
        says="upstream",
        settings={"model.max_retries": "1"},
        requests=2,
    ),
    "no-usage": Case("no usage although asked for", FAULTS["no-usage"], "answer"),
    "null-usage": Case("usage: null", reports(None), "answer"),
    "negative-usage": Case("negative counts", reports(_NEGATIVE), "answer"),
    "absurd-usage": Case("counts beyond any window", reports(_ABSURD), "answer"),
    "worded-usage": Case("counts that are words", reports(_WORDS), "answer"),
    "invented-usage": Case("counts of something else", reports(_INVENTED), "answer", needs_talk=True),
    "cut-prompt": Case("what does not fit is left out silently", _cut_prompt, "answer", "left out", needs_talk=True),
    "filled-window": Case(
        "length, nothing said, the window full",
        _filled_window,
        "answer",
        "Compacted",
        requests=4,
        compactions=1,
        needs_talk=True,
    ),
}
