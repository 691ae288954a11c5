"""Classify provider errors: an error in any form becomes one action, such as back off or compact; and retry.

Refused parameters are recognized first; then account and rate limit errors, because they often mention tokens;
overflows by code, errors that only sound like an overflow, and overflows by wording. See docs/decisions.md, "nca
classifies provider errors itself".

Temporary failures are tried again a bounded number of times, with the wait that the provider asks for or a back-off.
litellm's own retries are off: by default it silently makes three requests for one.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from nca.errors import Action, ProviderError, ProviderFailure
from nca.events import RetryScheduled
from nca.humanize import duration, one_line
from nca.models import failure_rules as rules
from nca.models.error_details import ErrorDetails, read_error
from nca.redact import KEYS_BY_SHAPE, Redactor

_WAIT_IN_TEXT = re.compile(
    r"(?:retry(?:[ _-]?after|delay|[ _]in)?|try again (?:in|after)|wait)\W{0,6}(?:for )?(?P<number>\d+(?:\.\d+)?)\s*"
    r"(?P<unit>ms|milliseconds|s|sec|seconds?|m|min|minutes?|h|hours?)?(?:(?P<seconds>\d+(?:\.\d+)?)s)?\b",
    re.IGNORECASE,
)
_SECONDS_OF = {"ms": 0.001, "milli": 0.001, "m": 60.0, "h": 3600.0, "s": 1.0}

MAX_TEXT_CHARS = 200
"""Longest quote of a provider's text in a message."""

_CLASS_STATUSES = {
    "RateLimitError": 429,
    "AuthenticationError": 401,
    "PermissionDeniedError": 403,
    "NotFoundError": 404,
}
_NETWORK_CLASSES = frozenset(
    {
        *("APIConnectionError", "ConnectionError", "TransportError", "DecodingError", "OSError"),
        *("TimeoutError", "Timeout", "APITimeoutError"),
    }
)
_NUMBER = re.compile(r"\d[\d,_.]*")
_UNEXPLAINED_STATUSES = frozenset({400, 413})
_SMALL_INPUT_RATIO = 0.5
"""An input up to this share of the window fits; only the output limit is too large."""


def classify_provider_error(
    error: object, *, status: int | None = None, provider: str = "", redactor: Redactor = KEYS_BY_SHAPE
) -> ProviderFailure:
    """Classify a provider's error. Never raises.

    error: an exception, a response body, or a mapping (also a streamed event, or a reply that hides an error).
    status: the HTTP status, if the error does not contain it.
    redactor: what the provider says passes it, for some proxies repeat the key that was sent.
    """
    details = read_error(error, status=status, provider=provider)
    action, is_overflow = _decide(details)
    limit, asked = _limit_and_asked(details)
    message = quoted(_message(details), redactor)
    return ProviderFailure(
        action=action,
        is_overflow=is_overflow,
        asked_tokens=asked,
        limit_tokens=limit,
        retry_after_seconds=retry_after_seconds(details.headers, details.text) if action == "backoff" else None,
        message=message,
        parameter=_refused_parameter(details) if action == "leave_out" else "",
        is_unexplained=not message and not details.codes and bool(_UNEXPLAINED_STATUSES & set(details.statuses)),
    )


def is_context_overflow_error(error: object) -> bool:
    """Whether the request was larger than the model's window. Never raises."""
    return classify_provider_error(error).is_overflow


def context_overflow_provider(error: object) -> str | None:
    """The provider with this wording of a context overflow; None if it is not one, or any provider's wording.

    Never raises.
    """
    details = read_error(error)
    if not _decide(details)[1]:
        return None
    said = "\n".join([*details.texts, *sorted(details.codes), *sorted(details.classes)])
    return rules.provider_that_says(said) or details.provider or None


def _decide(details: ErrorDetails) -> tuple[Action, bool]:
    """The action, and whether it is a context overflow."""
    statuses = set(details.statuses) | {
        _CLASS_STATUSES[name] for name in details.classes & _CLASS_STATUSES.keys() if not details.statuses
    }
    for rule in (_refused, _account, _too_large, _rate, _overflow_by_code, _look_alike, _overflow_by_text):
        if verdict := rule(details, statuses):
            return verdict
    return _rest(details, statuses), False


def _refused(details: ErrorDetails, statuses: set[int]) -> tuple[Action, bool] | None:
    """A parameter that the endpoint does not take at all; one with a value above its limit is another matter."""
    if statuses and not statuses & rules.statuses("refusing"):
        return None
    return ("leave_out", False) if _refused_parameter(details) else None


def _refused_parameter(details: ErrorDetails) -> str:
    """Its name, in lower case; "" if none is refused."""
    if found := rules.refused_parameter(details.text):
        return found
    named = (code.removeprefix("param:") for code in sorted(details.codes) if code.startswith("param:"))
    # A field of a parameter, such as tools[0].function, is not the parameter.
    return next((name for name in named if name.isidentifier()), "") if _is_refused_by_code(details) else ""


def _is_refused_by_code(details: ErrorDetails) -> bool:
    return bool(details.codes & rules.codes("refused_parameter"))


def is_quota(details: ErrorDetails) -> bool:
    """Whether the account has no credit left."""
    return bool(details.codes & rules.codes("quota")) or rules.says("quota", details.text)


def _account(details: ErrorDetails, statuses: set[int]) -> tuple[Action, bool] | None:
    """Credit, keys and model names: neither waiting nor a smaller request helps."""
    says_rate = "resource_exhausted" in details.codes or retry_after_seconds({}, details.text) is not None
    if (is_quota(details) and not says_rate) or statuses & {401, 402, 403, 404}:
        return "fail", False
    if details.codes & (rules.codes("auth") | rules.codes("model") | rules.codes("filter")):
        return "fail", False
    return None


def _too_large(details: ErrorDetails, statuses: set[int]) -> tuple[Action, bool] | None:
    """Status 413: the request is too large, in tokens if the error names them, otherwise in bytes.

    It never asks to wait, whatever it says about a rate: no minute has room for this request. But a limit per minute
    is no window. litellm calls it a rate limit (429) where the body has those words; the status of the response is
    among the statuses.
    """
    if 413 not in statuses:
        return None
    said = "\n".join([details.text, *sorted(details.codes)])
    is_empty_overflow = "cerebras" in details.provider and not details.texts
    if is_empty_overflow or rules.says("in_tokens", said):
        is_rate = rules.says("per_time", details.text) or bool(details.codes & rules.codes("rate"))
        return ("compact", False) if is_rate else (_overflow(details), True)
    return "shrink_payload", False


def _rate(details: ErrorDetails, statuses: set[int]) -> tuple[Action, bool] | None:
    """Rate limits: wait, unless one request alone exceeds the limit, so that waiting never helps."""
    is_throttled = 429 in statuses or bool(details.codes & rules.codes("rate")) or rules.says("rate", details.text)
    if not is_throttled or details.codes & rules.codes("overflow") - {"1261"}:
        return ("backoff", False) if 429 in statuses else None
    limit, asked = _limit_and_asked(details)
    is_single = rules.says("single_request_rate", details.text) or bool(
        limit and asked and asked > limit and rules.says("per_time", details.text)
    )
    return ("compact" if is_single else "backoff"), False


def _overflow_by_code(details: ErrorDetails, statuses: set[int]) -> tuple[Action, bool] | None:
    by_class = "ContextWindowExceededError" in details.classes and not rules.says("history", details.text)
    if details.codes & rules.codes("overflow") or by_class or _is_silent(details):
        return _overflow(details), True
    return None


def _look_alike(details: ErrorDetails, statuses: set[int]) -> tuple[Action, bool] | None:
    """Errors that only sound like an overflow: an invalid history, a body with too many bytes, one bad parameter."""
    text = details.text
    if details.codes & rules.codes("history") or rules.says("history", text):
        return "repair_history", False
    counts_tokens = rules.TOKEN_COUNT.search(text) and _exceeded(text)
    if (details.codes & rules.codes("payload") or rules.says("payload", text)) and not counts_tokens:
        return "shrink_payload", False
    if details.codes & rules.codes("bad_parameter") or rules.says("parameter", text):
        return "fail", False
    names_context = rules.says("explicit_context", text) and rules.says("overflow", text)
    if rules.says("output_cap", text) and not (names_context or rules.says("sum", text)):
        return "lower_max_tokens", False
    return None


def _overflow_by_text(details: ErrorDetails, statuses: set[int]) -> tuple[Action, bool] | None:
    if statuses & rules.statuses("never_overflow"):
        return None
    exceeded = _exceeded(details.text)
    if any(status >= 500 for status in statuses):
        # A server that fails may mention the context without a word about the request.
        is_said = any(rules.says("explicit_context", one) or len(_NUMBER.findall(one)) > 1 for one in exceeded)
    else:
        is_said = bool(exceeded or rules.says("overflow", details.text))
    return (_overflow(details), True) if is_said else None


def _exceeded(text: str) -> list[str]:
    """The sentences that say that the request exceeds a limit of the model's."""
    return [sentence for sentence in rules.SENTENCES.split(text) if rules.is_exceeded(sentence)]


def _overflow(details: ErrorDetails) -> Action:
    """How to cure an overflow: the input may be too large, or the input and the output limit together."""
    if not (rules.says("sum", details.text) or rules.says("with_output", details.text)):
        return "compact"
    limit = rules.number("limit", details.text)
    given = rules.number("input", details.text)
    if limit and given is not None and not rules.says("either", details.text):
        given += rules.number("extra_input", details.text) or 0
        if given <= _SMALL_INPUT_RATIO * limit:
            return "lower_max_tokens"
    return "lower_max_tokens_then_compact"


def _rest(details: ErrorDetails, statuses: set[int]) -> Action:
    if details.codes & {"param:max_completion_tokens", "param:max_tokens", "param:max_output_tokens"}:
        return "lower_max_tokens"
    if statuses:
        return "backoff" if statuses & rules.statuses("passing") else "fail"
    return "backoff" if details.classes & _NETWORK_CLASSES else "fail"


def _is_silent(details: ErrorDetails) -> bool:
    """Whether an answer ended for length without a token: the request filled the window."""
    is_cut = "length" in details.codes and details.answers > 0 and details.answered_chars == 0
    return is_cut and details.counts.get("completion_tokens") == 0


def _limit_and_asked(details: ErrorDetails) -> tuple[int | None, int | None]:
    """The numbers in the error: the limit, and the size of the request."""
    limit = rules.number("limit", details.text) or details.counts.get("n_ctx")
    asked = rules.number("asked", details.text) or details.counts.get("n_prompt_tokens")
    given, output = rules.number("input", details.text), rules.number("output", details.text)
    if given is not None and output is not None:
        asked = given + output + (rules.number("extra_input", details.text) or 0)
    if asked is None and _is_silent(details):
        asked = details.counts.get("prompt_tokens")
    return limit or None, asked


def _message(details: ErrorDetails) -> str:
    """The innermost message: the provider's own, without the text of gateways and the names of Python's classes."""
    texts = [rules.WRAPPING.sub("", text) for text in details.texts]
    sentences = [
        text for text in texts if text and not rules.PAGE.match(text) and not rules.ONLY_STATUS.fullmatch(text)
    ]
    if sentences:
        return sentences[-1]
    if not any(rules.PAGE.match(text) for text in texts):
        return ""
    title = rules.TITLE.search("\n".join(texts))
    sent = "the server sent a web page"
    return f"{sent}, “{title[1]}”" if title else sent


def quoted(text: str, redactor: Redactor) -> str:
    """What a provider says, on one line: keys go before it is cut, or a part of one would stay."""
    return one_line(redactor.text(text), MAX_TEXT_CHARS)


def retry_after_seconds(headers: Mapping[str, str], text: str = "", *, now: datetime | None = None) -> float | None:
    """The wait that the provider asks for, in seconds; None if it asks for none.

    Reads the lower-case headers `retry-after-ms` and `retry-after` (seconds or an HTTP date), and in the text
    "try again in 4.77s", "retry after 86400 seconds", `retryDelay: "37s"`. Negative and past waits are 0.
    """
    if (milliseconds := number_in(headers.get("retry-after-ms", ""))) is not None:
        return max(0.0, milliseconds / 1000)
    value = headers.get("retry-after", "").strip()
    if (seconds := number_in(value)) is not None:
        return max(0.0, seconds)
    if value and (when := _date(value)) is not None:
        return max(0.0, (when - (now or datetime.now(UTC))).total_seconds())
    return _from_text(text)


def _from_text(text: str) -> float | None:
    found = _WAIT_IN_TEXT.search(text)
    if found is None:
        return None
    unit = (found["unit"] or "s").lower()
    scale = next(_SECONDS_OF[start] for start in _SECONDS_OF if unit.startswith(start))
    return float(found["number"]) * scale + float(found["seconds"] or 0)


def number_in(value: Any) -> float | None:
    """The number in a header; None if there is none that can be true."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if abs(number) < 1e9 else None


def _date(value: str) -> datetime | None:
    try:
        when = parsedate_to_datetime(value)
    except (TypeError, ValueError, IndexError):
        return None
    return when if when.tzinfo else when.replace(tzinfo=UTC)


LONGEST_ASKED_SECONDS = 60.0
"""A longer wait is the user's decision: nobody sits in front of a chat that waits for hours."""

FIRST_SECONDS = 0.5
LONGEST_SECONDS = 30.0
"""The back-off after the first failed try, and the longest."""

EMPTY_TRIES = 1
"""Retries after an empty answer."""
LATE_TRIES = 1
"""Retries after a timeout: each takes as long again."""
UNREACHABLE_TRIES = 2
"""Retries without a connection: a server may be starting, but rarely is."""
NO_SERVER_TRIES = 1
"""Retries where nothing on this machine listens: nobody else starts it."""

Result = TypeVar("Result")
OnRetry = Callable[[RetryScheduled], None]
Sleep = Callable[[float], Awaitable[None]]


class PassingFailure(ProviderError):
    """A temporary failure. `most_retries` limits the retries for its kind."""

    most_retries: int | None = None


async def with_retries(
    attempt: Callable[[], Awaitable[Result]],
    *,
    max_retries: int,
    may_retry: Callable[[], bool],
    on_retry: OnRetry,
    sleep: Sleep = asyncio.sleep,
) -> Result:
    """The attempt's result, after at most `max_retries` retries.

    may_retry is called after each failure: False once text was passed on, which must not be repeated.
    Raises the last PassingFailure, which says how often and how long it was tried, and any other error at once.
    """
    tries, started = 0, time.monotonic()
    while True:
        try:
            return await attempt()
        except PassingFailure as failure:
            tries += 1
            bound = max_retries if failure.most_retries is None else min(max_retries, failure.most_retries)
            asked = failure.failure.retry_after_seconds
            if tries > bound or not may_retry() or (asked or 0) > LONGEST_ASKED_SECONDS:
                if tries > 1:
                    waited = time.monotonic() - started
                    failure.message = f"{failure.message.rstrip('.')}; tried {tries} times, {duration(waited)} in all."
                raise
            wait = backoff_seconds(tries) if asked is None else asked
            reason = one_line(failure.message, MAX_TEXT_CHARS)
        on_retry(RetryScheduled(attempt=tries, wait_seconds=round(wait, 2), reason=reason, retries=bound))
        await sleep(wait)


def backoff_seconds(attempt: int) -> float:
    """The wait after failed try number `attempt`: doubled each time, with jitter."""
    full = min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** (attempt - 1))
    return full * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, not a secret
