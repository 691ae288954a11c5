"""Read a provider's error: codes, wordings and numbers, by failure_rules.toml.

The file is read at the first failure, and its patterns are compiled when they are first needed: all of them take 60 ms.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from nca.humanize import natural

_COUNT = r"\(?(\d[\d,_]*)\)?"
_PARAMETER = r"""[\s:`'"\[]{1,4}([A-Za-z_]\w*)(?![\w.\[])"""
"""A parameter's name behind what may stand between; a field of one, such as tools[0].function, is none."""
_FLAGS = re.IGNORECASE
"""A wording stands in one line: `.` matches no line break, so the time grows with the lines, not with their square."""

WRAPPING = re.compile(r"^(?:(?:litellm\.)?[A-Za-z]*(?:Error|Exception)\s*(?::|-)\s*)+")
"""Class names that litellm puts before a provider's message."""
ONLY_STATUS = re.compile(r"Error code: \d+")
"""The openai package's message for a response without a body."""
PAGE = re.compile(r"<(?:!doctype|html|head|body|\?xml)", re.IGNORECASE)
TITLE = re.compile(r"<title[^>]*>\s*([^<]*[^<\s])\s*</title", re.IGNORECASE)
SENTENCES = re.compile(r"(?<=[.!?;])\s+|\n")
TOKEN_COUNT = re.compile(rf"{_COUNT} tokens", re.IGNORECASE)


@cache
def _rules() -> dict[str, Any]:
    # Only if something fails.
    import tomllib

    return tomllib.loads(Path(__file__).with_name("failure_rules.toml").read_text(encoding="utf-8"))


@cache
def codes(kind: str) -> frozenset[str]:
    """The codes of a kind of failure, in lower case."""
    return frozenset(_rules()["codes"][kind])


@cache
def statuses(kind: str) -> frozenset[int]:
    """The HTTP statuses of a kind of failure."""
    return frozenset(_rules()["statuses"][kind])


def says(kind: str, text: str) -> bool:
    """Whether a text has a wording of this kind."""
    return _wordings(kind).search(text) is not None


def number(kind: str, text: str) -> int | None:
    """The first number of this kind, in the order of its patterns."""
    for pattern in _numbers(kind):
        if found := pattern.search(text):
            digits = next(group for group in found.groups() if group)
            return natural(digits.replace(",", "").replace("_", ""))
    return None


def refused_parameter(text: str) -> str:
    """The parameter that a text says the endpoint does not take, in lower case; "" if it says none."""
    for name, pattern in _parameters():
        if found := pattern.search(text):
            return name or next(group for group in found.groups() if group).lower()
    return ""


def is_exceeded(sentence: str) -> bool:
    """Whether a sentence says that what was sent exceeds a limit of the model's, in whatever words."""
    is_told = all(says(part, sentence) for part in ("given", "exceeds", "its_limit"))
    return is_told and not says("other_limit", sentence)


def provider_that_says(text: str) -> str:
    """Whose wording of a context overflow it is; "" if it could be any provider's."""
    signs = ((name, "|".join(patterns)) for name, *patterns in _rules()["providers"])
    return next((name for name, pattern in signs if re.search(pattern, text, _FLAGS)), "")


@cache
def _wordings(kind: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in _rules()["wordings"][kind]), _FLAGS)


@cache
def _parameters() -> list[tuple[str, re.Pattern[str]]]:
    """Patterns that each mean one parameter, and at last, with "" for its name, those that name any."""
    rows = _rules()["parameters"]
    named = [(name, pattern) for name, patterns in rows.items() if name != "any" for pattern in patterns]
    patterns = [*named, *(("", pattern.replace("{P}", _PARAMETER)) for pattern in rows["any"])]
    return [(name, re.compile(pattern, re.IGNORECASE)) for name, pattern in patterns]


@cache
def _numbers(kind: str) -> list[re.Pattern[str]]:
    patterns = _rules()["numbers"][kind]
    return [re.compile(pattern.replace("{N}", _COUNT), re.IGNORECASE) for pattern in patterns]
