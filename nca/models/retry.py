"""Tries again after a passing failure: bounded, with jitter, as the provider asks, and cancellable at once.

litellm's own retries are off (it makes three requests for one by default and never says so).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from nca.errors import ProviderError
from nca.events import RetryScheduled
from nca.models.failures import shorten
from nca.models.retry_delay import backoff_seconds

LONGEST_ASKED_SECONDS = 60.0
"""A provider that asks for a longer wait is not waited for: the person decides (reliability F17)."""

EMPTY_TRIES = 1
"""More tries after an empty answer."""
LATE_TRIES = 1
"""More tries after a deadline: each costs a person as long again."""
UNREACHABLE_TRIES = 2
"""More tries where nothing answers at the address: a server may be starting, but rarely is."""

Result = TypeVar("Result")
OnRetry = Callable[[RetryScheduled], None]
Sleep = Callable[[float], Awaitable[None]]


class PassingFailure(ProviderError):
    """A failure that another try may cure; `most_retries` bounds how many make sense for its kind."""

    most_retries: int | None = None


async def with_retries(
    attempt: Callable[[], Awaitable[Result]],
    *,
    max_retries: int,
    may_retry: Callable[[], bool],
    on_retry: OnRetry,
    sleep: Sleep = asyncio.sleep,
) -> Result:
    """The attempt's result, after at most `max_retries` more tries.

    may_retry is asked after each failure: False once text was handed on, which must never be given twice.
    Raises the last PassingFailure; any other error passes through at once.
    """
    tries = 0
    while True:
        try:
            return await attempt()
        except PassingFailure as failure:
            tries += 1
            bound = max_retries if failure.most_retries is None else min(max_retries, failure.most_retries)
            asked = failure.failure.retry_after_seconds
            if tries > bound or not may_retry() or (asked or 0) > LONGEST_ASKED_SECONDS:
                raise
            wait = backoff_seconds(tries) if asked is None else asked
            reason = shorten(failure.message)
        on_retry(RetryScheduled(attempt=tries, wait_seconds=round(wait, 2), reason=reason))
        await sleep(wait)
