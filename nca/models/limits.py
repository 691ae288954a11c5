"""What a provider says of its rate limits in the headers of an answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import isfinite
from typing import Any

_LEFT = re.compile(r"ratelimit-(?:remaining-([a-z-]+)|([a-z-]+)-remaining)$")


def limits_of(headers: Mapping[str, Any]) -> str:
    """The limit of which the least is left, as in "12% of tokens left"; "" where the provider does not say.

    Sources: OpenAI's x-ratelimit-remaining-KIND, which others use too, and Anthropic's
    anthropic-ratelimit-KIND-remaining.
    """
    found: list[tuple[float, str]] = []
    for name, value in headers.items():
        if match := _LEFT.search(str(name).lower()):
            limit = _number(headers.get(name.replace("remaining", "limit")))
            left = _number(value)
            if left is not None and limit:
                found.append((min(left / limit, 1.0), (match[1] or match[2]).replace("-", " ")))
    if not found:
        return ""
    ratio, kind = min(found)
    return f"{ratio:.0%} of {kind} left"


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return max(number, 0.0) if isfinite(number) else None
