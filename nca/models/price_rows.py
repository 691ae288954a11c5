"""One row of litellm's price map: the names that nca reads, and the values that it accepts from the network."""

from __future__ import annotations

import math
import re
from typing import Any

CHATS = ("chat", "responses")
"""Modes of chat models. The windows of embedding, image and completion models mean something else."""

KINDS = {
    "input_cost_per_token": "input_cost",
    "output_cost_per_token": "output_cost",
    "cache_read_input_token_cost": "cache_read_cost",
    "cache_creation_input_token_cost": "cache_write_cost",
}
"""The map's names of the four prices, and nca's."""
ABOVE = re.compile(rf"({'|'.join(KINDS)})_above_(\d+)k_tokens")

_COUNTS = ("max_input_tokens", "max_output_tokens")
_ABILITIES = (
    *("supports_function_calling", "supports_vision", "supports_reasoning"),
    "supports_anthropic_compaction",
)
_WORDS = ("litellm_provider", "mode")
_TIERS = "tiered_pricing"
MOST_TOKENS = 1_000_000_000
MOST_DOLLARS = 0.01
"""The highest price of a token that is believed: 10,000 dollars for a million, ten times the dearest of 2026."""
_MOST_CHARS = 200
_MOST_TIERS = 20


def checked(name: str, row: Any) -> dict[str, Any] | None:
    """What nca reads of a chat model's row; None for others. Raises ValueError for a value that cannot be true."""
    if not isinstance(row, dict) or row.get("mode") not in CHATS:
        return None
    if not 0 < len(name) <= _MOST_CHARS or not name.isprintable():
        raise ValueError("name")
    kept = {key: value for key, value in row.items() if value is not None and _is_valid(key, value)}
    if "litellm_provider" not in kept:
        raise ValueError("litellm_provider")
    return kept


def _is_valid(key: str, value: Any) -> bool:
    """Whether nca reads this value. Raises ValueError if it should, and cannot."""
    if key in KINDS or ABOVE.fullmatch(key):
        is_good = _is_price(value)
    elif key in _COUNTS:
        is_good = _is_number(value) and 0 <= value <= MOST_TOKENS
    elif key in _ABILITIES:
        is_good = isinstance(value, bool)
    elif key in _WORDS:
        is_good = isinstance(value, str) and len(value) <= _MOST_CHARS and value.isprintable()
    elif key == _TIERS:
        is_good = isinstance(value, list) and len(value) <= _MOST_TIERS and all(map(_is_tier, value))
    else:
        return False
    if not is_good:
        raise ValueError(key)
    return True


def _is_tier(row: Any) -> bool:
    if not isinstance(row, dict):
        return False
    span = row.get("range", [0])
    is_span = isinstance(span, list) and all(_is_number(end) and 0 <= end <= MOST_TOKENS for end in span)
    return is_span and all(_is_price(row[key]) for key in KINDS if row.get(key) is not None)


def _is_price(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= MOST_DOLLARS


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
