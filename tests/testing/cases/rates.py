"""Rate limits: how long a provider asks to wait, in all forms, and when waiting cannot help."""

from __future__ import annotations

import time
from email.utils import formatdate

from nca.testing.faults import FAULTS, Fault, once, rate_limit, send
from nca.testing.http_exchange import Exchange
from tests.testing.cases.case import Case

_ONE_REQUEST = "Request too large for m on tokens per min (TPM): Limit 30000, Requested 30610."


def _until(exchange: Exchange) -> None:
    """A date a second away; a date has no fractions."""
    rate_limit(retry_after=formatdate(time.time() + 1, usegmt=True))(exchange)


_HOURS = {
    "code": 429,
    "message": "Quota exceeded.",
    "status": "RESOURCE_EXHAUSTED",
    "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7200s"}],
}


def _throttled(exchange: Exchange) -> None:
    exchange.send_json(429, {"message": "Too many tokens, please wait before trying again."}, {"retry-after": "0"})


def _exhausted(exchange: Exchange) -> None:
    error = {"code": 429, "message": "Resource has been exhausted (e.g. check quota).", "status": "RESOURCE_EXHAUSTED"}
    exchange.send_json(429, {"error": error}, {"retry-after": "0"})


def _waits(about: str, fail: Fault, seconds: float | None) -> Case:
    return Case(about, once(fail), "answer", "rate limit", requests=2, wait_seconds=seconds)


CASES = {
    "rate-limited": _waits("429 once, Retry-After: 0", FAULTS["rate-limited"], 0),
    "rate-limited-in-seconds": _waits("Retry-After: 0.3", FAULTS["rate-limited-in-seconds"], 0.3),
    "rate-limited-in-milliseconds": _waits("retry-after-ms: 20", rate_limit(retry_after_ms="20"), 0.02),
    "rate-limited-by-date": _waits(
        "Retry-After: a date that has passed", rate_limit(retry_after="Wed, 21 Oct 2015 07:28:00 GMT"), 0
    ),
    "rate-limited-until": _waits("Retry-After: a date to come", _until, None),
    "rate-limited-negative": _waits("Retry-After: -1", rate_limit(retry_after="-1"), 0),
    "rate-limited-garbage": _waits("Retry-After: soon", rate_limit(retry_after="soon"), None),
    "rate-limited-silent": _waits("429 once, no Retry-After", rate_limit(), None),
    "rate-limited-in-words": _waits(
        "the wait in the error's text", rate_limit("Rate limit reached. Please try again in 20ms."), 0.02
    ),
    "rate-limited-in-body": _waits("Gemini's retryDelay", FAULTS["rate-limited-in-body"], 0.2),
    "rate-limited-for-a-day": Case("Retry-After: 86400", FAULTS["rate-limited-for-a-day"], says="24 hours"),
    "rate-limited-for-hours-in-body": Case("retryDelay: 7200s", send(429, {"error": _HOURS}), says="2 hours"),
    "rate-limited-for-ever": Case("429 always", FAULTS["rate-limited-for-ever"], says="rate limit of", requests=6),
    "throttled": _waits("a throttle that sounds like an overflow", _throttled, 0),
    "exhausted": _waits("RESOURCE_EXHAUSTED", _exhausted, 0),
    "one-request-over-rate": Case("one request above TPM", rate_limit(_ONE_REQUEST), says="/compact"),
    "one-request-over-rate-of-groq": Case(
        "Groq, 413: one request above the tokens per minute, which are no window",
        lambda exchange: exchange.error(413, _ONE_REQUEST, kind="tokens", code="rate_limit_exceeded"),
        says="model.context_window 30000",
    ),
    "one-request-over-rate-413": Case(
        "413 although the code is that of a rate limit: the request is too large, and waiting never helps",
        lambda exchange: exchange.error(
            413, "Too large.", kind="requests", code="rate_limit_exceeded", retry_after="1"
        ),
        says="too large in bytes",
    ),
}
