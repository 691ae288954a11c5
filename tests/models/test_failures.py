"""The classifier on real replies (see errors.README.md) and on what gateways make of them."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nca.humanize import one_line
from nca.models.failures import (
    classify_provider_error,
    context_overflow_provider,
    is_context_overflow_error,
    retry_after_seconds,
)

ROWS: list[dict[str, Any]] = [
    json.loads(line) for line in Path(__file__).with_name("errors.jsonl").read_text(encoding="utf-8").splitlines()
]


def _label(body: Any, row: dict[str, Any]) -> tuple[str, bool]:
    failure = classify_provider_error(body, status=row["status"], provider=row["provider"])
    return failure.action, failure.is_overflow


def _nested(body: str, depth: int) -> str:
    for _ in range(depth):
        body = json.dumps({"error": {"message": body}})
    return body


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['provider']}-{row['kind']}" for row in ROWS])
def test_every_reply_has_its_action(row: dict[str, Any]) -> None:
    assert _label(row["body"], row) == (row["action"], row["is_overflow"])


@given(st.sampled_from(ROWS), st.sampled_from(["upper", "lower", "swapcase"]), st.integers(0, 8), st.booleans())
@settings(max_examples=200, deadline=None)
def test_case_nesting_and_wrapping_change_no_label(
    row: dict[str, Any], case: str, depth: int, is_wrapped: bool
) -> None:
    body = _nested(getattr(row["body"], case)(), depth)
    if is_wrapped:
        body = f"litellm.BadRequestError: SomeException - {body} (request id 123)"
    assert _label(body, row) == (row["action"], row["is_overflow"])


@pytest.mark.parametrize("row", [row for row in ROWS if row["status"] != 200 and row["body"].startswith("{")])
def test_a_gateways_raw_field_is_read(row: dict[str, Any]) -> None:
    body = {"error": {"message": "Provider returned error", "code": row["status"], "metadata": {"raw": row["body"]}}}
    assert _label(body, row) == (row["action"], row["is_overflow"])


@pytest.mark.parametrize(
    ("text", "asked", "limit"),
    [
        ("prompt is too long: 210,244 tokens > 200,000 maximum", 210_244, 200_000),
        ("input length and `max_tokens` exceed context limit: 189140 + 20000 > 204648, decrease", 209_140, 204_648),
        ("Requested tokens (2290) exceed context window of 2048", 2_290, 2_048),
        (
            "The input token count (3475200) exceeds the maximum number of tokens allowed (1048576).",
            3_475_200,
            1_048_576,
        ),
        ("invalid params, context window exceeds limit (2013)", None, None),
        ("prompt too long; exceeded max context length by 4 tokens", None, None),
    ],
)
def test_the_numbers_are_read(text: str, asked: int | None, limit: int | None) -> None:
    failure = classify_provider_error(text, status=400)
    assert failure.is_overflow
    assert (failure.asked_tokens, failure.limit_tokens) == (asked, limit)


@pytest.mark.parametrize(
    ("text", "status", "action"),
    [
        ("Too many tokens per day, please wait before trying again.", 429, "backoff"),
        ("Too many input tokens per minute: reduce the length of the messages.", 400, "backoff"),
        ("Rate limit on tokens: the request exceeds the context window of your tier.", 400, "backoff"),
        ("You exceeded your current quota of tokens. Reduce the length of the prompt.", 400, "fail"),
        ("Your credit balance is too low for this prompt: maximum context length 8192 tokens.", 400, "fail"),
        ("`max_tokens` must be greater than `thinking.budget_tokens`.", 400, "fail"),
        ("Unable to submit request because it has a maxOutputTokens value of 65536", 400, "lower_max_tokens"),
        ("messages.0: all messages must have non-empty content", 400, "repair_history"),
        ("Tool call id was call_abc but must be a-z, A-Z, 0-9, with a length of 9.", 400, "repair_history"),
        ("Payload too large: 60000000 bytes (about 15000000 tokens), limit 33554432 bytes", 400, "shrink_payload"),
        ("image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes", 400, "shrink_payload"),
        ("Function name too long: maximum length is 64", 400, "fail"),
        ("This model's maximum context length is 4096 tokens.", 429, "backoff"),
        ("", 413, "shrink_payload"),
        ("Rate limit reached. Please try again in 5s.", 413, "shrink_payload"),
        ("Payload too large: the quota of a body is 4 MB.", 413, "shrink_payload"),
        ("", 503, "backoff"),
        ("", 400, "fail"),
    ],
)
def test_what_only_sounds_like_an_overflow(text: str, status: int, action: str) -> None:
    failure = classify_provider_error(text, status=status)
    assert (failure.action, failure.is_overflow) == (action, False)


@pytest.mark.parametrize(
    ("status", "action"),
    [(401, "fail"), (402, "fail"), (403, "fail"), (404, "fail"), (416, "fail")]
    + [(status, "backoff") for status in (408, 409, 429, 502, 503, 504, 529)],
)
def test_a_status_that_cannot_mean_an_overflow_wins_over_the_words(status: int, action: str) -> None:
    failure = classify_provider_error("The prompt is too long: maximum context length is 8192 tokens.", status=status)
    assert (failure.action, failure.is_overflow) == (action, False)


class ContextWindowExceededError(Exception):
    """litellm guesses this class from words in the message."""

    status_code = 400


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("Rate limit reached: too many tokens. Try again in 20s.", "backoff"),
        ("You exceeded your current quota of tokens.", "fail"),
        ("messages.3: `tool_use` ids were found without `tool_result` blocks", "repair_history"),
    ],
)
def test_a_class_that_litellm_guessed_is_not_believed_against_the_words(text: str, action: str) -> None:
    failure = classify_provider_error(ContextWindowExceededError(text))
    assert (failure.action, failure.is_overflow) == (action, False)
    assert classify_provider_error(ContextWindowExceededError("Bad request.")).action == "compact"


def test_echoed_input_is_not_the_error() -> None:
    echo = {"error": {"message": "content must be a string"}, "messages": [{"content": "prompt is too long: 9 > 8"}]}
    assert not is_context_overflow_error(echo)
    assert not is_context_overflow_error("Invalid: {'role': 'user', 'content': 'prompt is too long'}")


@pytest.mark.parametrize(("functions", "action"), [(999, "lower_max_tokens"), (1_001, "lower_max_tokens_then_compact")])
def test_the_definitions_of_functions_are_a_part_of_the_input(functions: int, action: str) -> None:
    counted = f"(4000 in the messages, {functions} in the functions, and 7000 in the completion)"
    said = f"This model's maximum context length is 10000 tokens. However, you requested 12000 tokens {counted}."
    assert classify_provider_error(said, status=400).action == action


@pytest.mark.parametrize("status", [None, 400])
def test_a_refused_parameter_is_named_in_a_stream_too(status: int | None) -> None:
    """An event in a stream has no status."""
    failure = classify_provider_error("Unsupported parameter: 'temperature' is not supported.", status=status)
    assert (failure.action, failure.parameter) == ("leave_out", "temperature")


def test_exceptions_are_read_with_their_causes() -> None:
    try:
        try:
            raise ValueError("prompt is too long: 210244 tokens > 200000 maximum")
        except ValueError as error:
            raise RuntimeError("the call failed") from error
    except RuntimeError as error:
        failure = classify_provider_error(error)
    assert (failure.action, failure.limit_tokens) == ("compact", 200_000)


@pytest.mark.parametrize(
    ("text", "provider"),
    [
        (
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
            "openai",
        ),
        ("prompt is too long: 210244 tokens > 200000 maximum", "anthropic"),
        ("The input token count (9) exceeds the maximum number of tokens allowed (8).", "google"),
        ("ValidationException: too many input tokens", "bedrock"),
        ("content_length_exceeded", "azure"),
        ("context_length_exceeded", "openrouter"),
        ("Prompt contains 140310 tokens, too large for model with 131072 maximum context length", "mistral"),
        ("the context size has been exceeded", None),
        ("Rate limit reached", None),
    ],
)
def test_whose_overflow_it_is(text: str, provider: str | None) -> None:
    assert context_overflow_provider(text) == provider


@given(
    st.recursive(
        st.none() | st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
@settings(max_examples=80, deadline=None)
def test_nothing_makes_it_raise(error: Any) -> None:
    assert classify_provider_error(error).action


def test_a_wording_stands_in_one_text() -> None:
    texts = ["The tool_call was read", "Each one must be followed by another"]
    apart, together = ([{"msg": one} for one in texts], [{"msg": " ".join(texts)}])
    assert classify_provider_error({"detail": apart}, status=400).action == "fail"
    assert classify_provider_error({"detail": together}, status=400).action == "repair_history"


def test_many_long_texts_take_no_time() -> None:
    texts = [{"msg": f"{'tool_call ' * 400}{number}"} for number in range(40)]
    assert classify_provider_error({"detail": texts}, status=400).action == "fail"


def test_a_providers_text_is_bounded() -> None:
    assert len(classify_provider_error("x" * 10_000, status=400).message) == 200
    for before in range(170, 200):
        said = f"{'x' * before} sk-test-1234567890abcdef1234"
        assert "sk-" not in classify_provider_error(said, status=400).message, "a part of a key stays"
    assert one_line("one\n two", 200) == "one two"


NOW = datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "text", "seconds"),
    [
        ({"retry-after": "7"}, "", 7.0),
        ({"retry-after": "1.5"}, "", 1.5),
        ({"retry-after": "-1"}, "", 0.0),
        ({"retry-after": "Tue, 01 Jan 2030 12:01:00 GMT"}, "", 60.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, "", 0.0),
        ({"retry-after": "86400"}, "", 86_400.0),
        ({"retry-after": "soon"}, "", None),
        ({"retry-after-ms": "250", "retry-after": "9"}, "", 0.25),
        ({}, "Please try again in 4.77s. Need more?", 4.77),
        ({}, "Please try again in 6ms.", 0.006),
        ({}, "try again in 1m30s", 90.0),
        ({}, "Please retry after 86400 seconds.", 86_400.0),
        ({}, '"retryDelay": "37s"', 37.0),
        ({}, "Rate limit reached.", None),
        ({}, "", None),
    ],
)
def test_every_form_of_retry_after(headers: dict[str, str], text: str, seconds: float | None) -> None:
    found = retry_after_seconds(headers, text, now=NOW)
    assert found == (None if seconds is None else pytest.approx(seconds))
