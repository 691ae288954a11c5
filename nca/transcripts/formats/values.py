"""Values of other programs' JSON, which may be of any type: read what is meant, or nothing. Nothing here raises."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from nca.messages import clean_text

MOST_TOKENS = 2**53
_NUMBER = (int, float)
"""For `isinstance`, which takes far longer with a union that is made for each call."""


def seconds_of(value: Any) -> float:
    """A time as seconds since the epoch: ISO 8601, or a number of seconds or finer units. 0 for anything else."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
            return max(0.0, (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
        except (ValueError, OverflowError):
            return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e30 or math.isnan(value):
        return 0.0
    at = float(value)
    # 1e11 seconds are the year 5138, 1e11 milliseconds are 1973.
    while at >= 1e11:
        at /= 1000
    return at


def text_of(value: Any) -> str:
    """A text as it can be stored; "" for anything else."""
    if not isinstance(value, str):
        return ""
    return value if value.isascii() else clean_text(value)


def count_of(*values: Any) -> int:
    """The first of these that is a count above 0; 0 if none is."""
    for value in values:
        if isinstance(value, _NUMBER) and not isinstance(value, bool) and 0 < value <= MOST_TOKENS:
            return int(value)
    return 0


def cost_of(value: Any) -> float | None:
    """US dollars; None for anything that is no amount."""
    is_amount = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9
    return float(value) if is_amount else None


def object_of(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def objects_of(value: Any) -> list[dict[str, Any]]:
    """The objects in a list; what is no object is left out."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
