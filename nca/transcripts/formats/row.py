"""JSON of other programs. A value may be of any type: what is meant is read, or nothing, and nothing raises."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from nca.messages import Usage, clean_text

MOST_TOKENS = 2**53
_NUMBER = (int, float)
"""For `isinstance`, which takes far longer with a union that is made for each call."""


class Row(dict[str, Any]):
    """A JSON object. Its methods take the path to a value: `row.text("message", "id")`."""

    def value(self, first: str, *path: str) -> Any:
        found = self.get(first)
        for key in path:
            found = found.get(key) if isinstance(found, dict) else None
        return found

    def text(self, *path: str) -> str:
        return text_of(self.value(*path))

    def name(self, *path: str) -> str:
        return name_of(self.value(*path))

    def count(self, *path: str) -> int:
        return count_of(self.value(*path))

    def seconds(self, *path: str) -> float:
        return seconds_of(self.value(*path))

    def row(self, *path: str) -> Row:
        """The object; an empty one for anything else."""
        return row_of(self.value(*path))

    def rows(self, *path: str) -> list[Row]:
        """The objects in a list; what is not an object is left out."""
        return rows_of(self.value(*path))

    def first(self, *places: str) -> str:
        """The first of the texts at these places ("model.name") that is not empty."""
        return next(filter(None, (self.text(*place.split(".")) for place in places)), "")

    def usage(
        self,
        prompt: str,
        completion: str,
        cached: str = "",
        written: str = "",
        thoughts: str = "",
        *,
        cost: Any = None,
        adds_cache: bool = False,
        adds_thoughts: bool = False,
    ) -> Usage | None:
        """The counts at these paths ("cache.read"); None if there are neither prompt nor completion.

        adds_cache     the prompt's count is without what the cache took or gave
        adds_thoughts  the completion's is without the thoughts
        """
        sent, said, read, put, thought = (
            self.count(*path.split(".")) for path in (prompt, completion, cached, written, thoughts)
        )
        sent, said = sent + (read + put if adds_cache else 0), said + (thought if adds_thoughts else 0)
        return Usage(sent, said, read, put, thought, cost_of(cost)) if sent or said else None


def decode(text: bytes) -> Any:
    """Decode JSON. Accepts escaped lone surrogates, which programs write that cut a text inside a character.

    Raises ValueError (msgspec.DecodeError and UnicodeDecodeError are ones), RecursionError.
    """
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as refused:
        if b"\\ud" not in text.lower():
            raise
        try:
            return json.loads(text)
        except ValueError:
            raise refused from None


def parsed(value: Any) -> Any:
    """What a text holds as JSON, None if it is not JSON; other values stay as they are."""
    if not isinstance(value, str | bytes):
        return value
    try:
        return decode(value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return None


def text_of(value: Any) -> str:
    """A text as it can be stored; "" for anything else."""
    if not isinstance(value, str):
        return ""
    return value if value.isascii() else clean_text(value)


def name_of(value: Any) -> str:
    """A text, or a whole number as text: an id may be either. "" for anything else."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else text_of(value)


def count_of(value: Any) -> int:
    """A count above 0; 0 for anything else."""
    is_count = isinstance(value, _NUMBER) and not isinstance(value, bool) and 0 < value <= MOST_TOKENS
    return int(value) if is_count else 0


def cost_of(value: Any) -> float | None:
    """US dollars; None for anything that is not an amount."""
    is_amount = isinstance(value, _NUMBER) and not isinstance(value, bool) and 0 <= value < 1e9
    return float(value) if is_amount else None


def seconds_of(value: Any) -> float:
    """A time as seconds since the epoch: ISO 8601, or a number of seconds or finer units. 0 for anything else."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
            return max(0.0, (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
        except (ValueError, OverflowError):
            return 0.0
    if isinstance(value, bool) or not isinstance(value, _NUMBER) or not 0 < value < 1e30 or math.isnan(value):
        return 0.0
    at = float(value)
    # 1e11 seconds are the year 5138, 1e11 milliseconds are 1973.
    while at >= 1e11:
        at /= 1000
    return at


def object_of(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def row_of(value: Any) -> Row:
    return Row(object_of(value))


def list_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def rows_of(value: Any) -> list[Row]:
    """The objects in a list; what is not an object is left out."""
    return [Row(one) for one in list_of(value) if isinstance(one, dict)]


def texts_of(rows: Iterable[Row]) -> str:
    """The `text` of each, with a blank line between."""
    return "\n\n".join(filter(None, (row.text("text") for row in rows)))
