"""The setting `terminal.status`: a text with names in braces, such as `{model}  {usage}  {branch}`."""

from __future__ import annotations

from string import Formatter
from typing import Any

from nca.config.value_types import InvalidValue, ValueType

NAMES = (
    *("model", "usage", "gauge", "percent", "tokens", "mode", "auto", "cost", "session"),
    *("activity", "directory", "branch", "cache", "limits", "command"),
)


def parts_of(text: str) -> list[tuple[str, str]]:
    """What stands before each name, and the name; "" for the text behind the last one. Raises ValueError."""
    found: list[tuple[str, str]] = []
    before = ""
    for literal, name, form, conversion in Formatter().parse(text):
        before += literal
        if name is None:
            continue
        if form or conversion or name not in NAMES:
            raise InvalidValue(f" has no {{{name}}}; valid names: {', '.join(NAMES)}.")
        found.append((before, name))
        before = ""
    return [*found, (before, "")] if before else found


def status_format() -> ValueType:
    valid = "one line of text with names in braces: " + ", ".join(NAMES)

    def read(value: Any) -> str:
        if not isinstance(value, str) or (value and not value.isprintable()):
            raise ValueError("not valid")
        parts_of(value)
        return value.strip()

    return ValueType(valid, read)
