"""How long to wait before a retry: the provider's request in all its forms, or a back-off."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

FIRST_SECONDS = 0.5
LONGEST_SECONDS = 30.0

_IN_TEXT = re.compile(
    r"(?:retry(?:[ _-]?after|delay|[ _]in)?|try again (?:in|after)|wait)\W{0,6}(?:for )?(?P<number>\d+(?:\.\d+)?)\s*"
    r"(?P<unit>ms|milliseconds|s|sec|seconds?|m|min|minutes?|h|hours?)?(?:(?P<seconds>\d+(?:\.\d+)?)s)?\b",
    re.IGNORECASE,
)
_UNITS = {"ms": 0.001, "milli": 0.001, "m": 60.0, "h": 3600.0, "s": 1.0}


def backoff_seconds(attempt: int) -> float:
    """The wait after failed try number `attempt`: doubled each time, with jitter."""
    full = min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** (attempt - 1))
    return full * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, not a secret


def retry_after_seconds(headers: Mapping[str, str], text: str = "", *, now: datetime | None = None) -> float | None:
    """The wait that the provider asks for, in seconds; None if it asks for none.

    Reads the lower-case headers `retry-after-ms` and `retry-after` (seconds or an HTTP date), and in the text
    "try again in 4.77s", "retry after 86400 seconds", `retryDelay: "37s"`. Negative and past waits are 0.
    """
    if (milliseconds := _number(headers.get("retry-after-ms", ""))) is not None:
        return max(0.0, milliseconds / 1000)
    value = headers.get("retry-after", "").strip()
    if (seconds := _number(value)) is not None:
        return max(0.0, seconds)
    if value and (when := _date(value)) is not None:
        return max(0.0, (when - (now or datetime.now(UTC))).total_seconds())
    return _from_text(text)


def _from_text(text: str) -> float | None:
    found = _IN_TEXT.search(text)
    if found is None:
        return None
    unit = (found["unit"] or "s").lower()
    scale = next(_UNITS[start] for start in _UNITS if unit.startswith(start))
    return float(found["number"]) * scale + float(found["seconds"] or 0)


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if abs(number) < 1e9 else None


def _date(value: str) -> datetime | None:
    try:
        when = parsedate_to_datetime(value)
    except (TypeError, ValueError, IndexError):
        return None
    return when if when.tzinfo else when.replace(tzinfo=UTC)
