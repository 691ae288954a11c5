"""Retry temporary failures: a bounded number of times, with the wait that the provider asks for or a back-off.

litellm's own retries are off: by default it silently makes three requests for one.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from nca.errors import ProviderError
from nca.events import RetryScheduled
from nca.models.failures import shorten

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
                    failure.message = f"{failure.message.rstrip('.')}; tried {tries} times, {waited:.0f} s in all."
                raise
            wait = backoff_seconds(tries) if asked is None else asked
            reason = shorten(failure.message)
        on_retry(RetryScheduled(attempt=tries, wait_seconds=round(wait, 2), reason=reason, retries=bound))
        await sleep(wait)


def backoff_seconds(attempt: int) -> float:
    """The wait after failed try number `attempt`: doubled each time, with jitter."""
    full = min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** (attempt - 1))
    return full * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, not a secret
