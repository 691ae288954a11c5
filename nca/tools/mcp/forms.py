"""The fields of a form that an MCP server asks the person to fill in, and what the person types as their values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from urllib.parse import urlsplit

from nca.humanize import natural, one_line, unambiguous

Value = str | int | float | bool | list[str]
MOST_FIELDS = 20
_MOST_CHOICES = 40
_NAME_CHARS = 80
_TEXT_CHARS = 500
_LIMITS = {
    "string": ("minLength", "maxLength", " characters"),
    "array": ("minItems", "maxItems", " choices"),
    "integer": ("minimum", "maximum", ""),
    "number": ("minimum", "maximum", ""),
}
_FORMATS: dict[str, Callable[[str], object]] = {
    "email": lambda text: 0 < text.find("@") < len(text) - 1,
    "uri": lambda text: urlsplit(text).scheme,
    "date": date.fromisoformat,
    "date-time": datetime.fromisoformat,
}
"""Each says whether a text is one, or raises ValueError."""
_TRUE, _FALSE = ("y", "yes", "true"), ("n", "no", "false")
_NUMBERS = {"integer": int, "number": float}
_HINTS = {"boolean": "y or n", "integer": "a whole number", "number": "a number", "array": "several, by commas"}


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a form, as its server describes it."""

    name: str
    schema: Mapping[str, Any]
    is_required: bool

    @property
    def question(self) -> str:
        """The question, in one line, or several if there are choices."""
        facts = [_HINTS.get(self.kind, ""), _line(self.schema.get("format"), _NAME_CHARS)]
        if self.default:
            facts.append(f"Enter: {_line(self.default, _NAME_CHARS)}")
        elif not self.is_required:
            facts.append("Enter: none")
        said = "; ".join(filter(None, facts))
        lines = [f"{self.title}{f' ({said})' if said else ''}{f': {self.about}' if self.about else ''}"]
        lines += [f"{place} {shown}" for place, (_, shown) in enumerate(self.choices, 1)]
        return "\n".join(lines)

    @property
    def title(self) -> str:
        return _line(self.schema.get("title") or self.name, _NAME_CHARS)

    @property
    def about(self) -> str:
        return _line(self.schema.get("description"), _TEXT_CHARS)

    @property
    def kind(self) -> str:
        """The kind of value; "string" if it is none of the others."""
        kind = self.schema.get("type")
        return kind if kind in tuple(_HINTS) else "string"

    @property
    def choices(self) -> list[tuple[str, str]]:
        """The values that may be chosen, each with its label."""
        items = self.schema.get("items")
        schema = items if self.kind == "array" and isinstance(items, dict) else self.schema
        titled = schema.get("oneOf") or schema.get("anyOf")
        if isinstance(titled, list):
            pairs = [(one.get("const"), one.get("title")) for one in titled if isinstance(one, dict) and "const" in one]
        else:
            values = schema.get("enum")
            values = values if isinstance(values, list) else []
            names = self.schema.get("enumNames")
            names = names if isinstance(names, list) and len(names) == len(values) else values
            pairs = list(zip(values, names, strict=True))
        return [(str(value), _line(str(name or value), _NAME_CHARS)) for value, name in pairs[:_MOST_CHOICES]]

    @property
    def default(self) -> str:
        """The meaning of an empty line, as it would be typed."""
        match self.schema.get("default"):
            case None:
                return ""
            case bool(value):
                return "y" if value else "n"
            case list(values):
                return ", ".join(map(str, values))
            case value:
                return str(value)

    def read(self, typed: str) -> Value | None:
        """The value; None for an empty line if none is needed. Raises ValueError, which says what is valid."""
        text = typed.strip() or self.default
        if not text:
            if self.is_required:
                raise ValueError("a value is needed")
            return None
        if self.choices and self.kind != "array":
            value = self._chosen(text)
            self._check(value)
            return value
        return self.take(self._as_value(text))

    def take(self, value: object) -> Value:
        """The value that a form of another program gave. Raises ValueError, which says what is valid."""
        found: Value
        match value:
            case bool() if self.kind == "boolean":
                found = value
            case int() | float() if self.kind in _NUMBERS and self._is_number(value):
                found = _NUMBERS[self.kind](value)
            case list() if self.kind == "array" and self._are_choices(value):
                found = value
            case str() if self.kind == "string" and self._are_choices([value]):
                found = value
            case _:
                hint = "one of the choices" if self.choices else _HINTS.get(self.kind, "a text")
                raise ValueError(f"valid: {hint}")
        self._check(found)
        return found

    def _is_number(self, value: float) -> bool:
        is_number = not isinstance(value, bool) and math.isfinite(value)
        return is_number and (self.kind == "number" or value == math.floor(value))

    def _are_choices(self, values: list[Any]) -> bool:
        choices = [value for value, _ in self.choices]
        return all(isinstance(one, str) and (not choices or one in choices) for one in values)

    def _check(self, value: Value) -> None:
        """Hold the value against the limits and the format of its schema. Raises ValueError."""
        self._check_size(value)
        if isinstance(value, str) and (is_of_format := _FORMATS.get(str(self.schema.get("format")))):
            try:
                is_right = is_of_format(value)
            except ValueError:
                is_right = False
            if not is_right:
                raise ValueError(f"valid: {_line(self.schema['format'], _NAME_CHARS)}")

    def _check_size(self, value: Value) -> None:
        """Hold the value against the least and the most of its schema. Raises ValueError."""
        kind = "string" if isinstance(value, str) else self.kind
        if kind not in _LIMITS:
            return
        (least, most, what), size = _LIMITS[kind], len(value) if isinstance(value, str | list) else value
        low, high = (one if isinstance(one := self.schema.get(key), int | float) else None for key in (least, most))
        if low is not None and size < low:
            raise ValueError(f"valid: at least {low:g}{what}")
        if high is not None and size > high:
            raise ValueError(f"valid: at most {high:g}{what}")

    def _as_value(self, text: str) -> Value:
        """The value that the text stands for; the text itself, if it stands for none of this kind."""
        if self.kind == "array":
            return [self._chosen(part.strip()) for part in text.split(",") if part.strip()]
        if self.kind == "boolean" and text.lower() in (*_TRUE, *_FALSE):
            return text.lower() in _TRUE
        if self.kind in _NUMBERS:
            with suppress(ValueError):
                number: int | float = _NUMBERS[self.kind](text)
                return number
        return text

    def _chosen(self, text: str) -> str:
        """A choice by its number, its value or its label."""
        choices = self.choices
        for value, shown in choices:
            if text in (value, shown):
                return value
        number = natural(text)
        if number is not None and 1 <= number <= len(choices):
            return choices[number - 1][0]
        raise ValueError(f"valid: 1 to {len(choices)}" if choices else "there is nothing to choose")


def fields_of(schema: Mapping[str, Any]) -> tuple[Field, ...]:
    """The fields of a form's schema. Raises ValueError if there are too many."""
    properties, required = schema.get("properties", {}), schema.get("required", ())
    if len(properties) > MOST_FIELDS:
        raise ValueError(f"{len(properties)} fields; at most {MOST_FIELDS} are asked")
    return tuple(
        Field(name, one if isinstance(one, dict) else {}, is_required=name in required)
        for name, one in properties.items()
    )


def _line(value: object, most: int) -> str:
    """A server's words in one line, such that they cannot pass for others."""
    return one_line(unambiguous(" ".join(str(value).split()), kept=""), most) if value else ""
