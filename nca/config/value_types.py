"""The kinds of value that a setting can have: how each is read, checked and described.

A kind turns what a person wrote (TOML value, or text from the environment or `/config`) into the typed value,
or raises ValueError whose text says what is valid. Nothing else decides what a setting accepts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

_UNUSABLE = re.compile("[\\0\ud800-\udfff]")
"""NUL and lone surrogates: what an undecodable environment variable holds, and no request can carry."""
_NUMBER = re.compile(r"[+-]?(\d[\d_,]*)(\.\d+)?([kKmM]?)")


SMALLEST_BARE_PERCENTAGE = 5
"""Without its sign, a number between 1 and this is no percentage: 1.5 and 2 are slips, not wishes for 2 %."""


class Misfit(ValueError):
    """A refusal that says more than what is valid.

    The text follows right behind the setting's name; `path` leads to the place inside the value.
    """

    def __init__(self, text: str, *path: str) -> None:
        super().__init__(text)
        self.path = path


@dataclass(frozen=True, slots=True)
class Kind:
    """What a setting accepts.

    valid    the phrase after "valid: "
    read     raises ValueError
    choices  feed completion
    confine  raises Misfit for a value that a project's own file may not give
    row      the dataclass of a list of tables, or of tables by name
    merge    joins the value of an earlier layer with a later one's, for tables by name; else the later replaces it
    """

    valid: str
    read: Callable[[Any], Any]
    choices: tuple[str, ...] = ()
    confine: Callable[[Any], None] | None = None
    row: Any = None
    merge: Callable[[Any, Any], Any] | None = None

    @property
    def is_named(self) -> bool:
        """A setting of tables by name: `[key.NAME]`."""
        return self.merge is not None


def _refuse() -> ValueError:
    return ValueError("not valid")


def boolean() -> Kind:
    words = {"true": True, "on": True, "yes": True, "1": True, "false": False, "off": False, "no": False, "0": False}

    def read(value: Any) -> bool:
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.strip().lower() in words:
            return words[value.strip().lower()]
        raise _refuse()

    return Kind("true or false", read, ("true", "false"))


def text() -> Kind:
    def read(value: Any) -> str:
        if not isinstance(value, str) or _UNUSABLE.search(value):
            raise _refuse()
        return value

    return Kind("text", read)


def one_line() -> Kind:
    def read(value: Any) -> str:
        if not isinstance(value, str) or not value.strip() or not value.isprintable():
            raise _refuse()
        return value.strip()

    return Kind("one line of text", read)


def file_path() -> Kind:
    """A file's path, relative to the project's directory or absolute; `~` is the person's home."""

    def confine(value: str) -> None:
        if not lies_inside(value):
            raise Misfit(f" = {value!r}: {OUTSIDE}")

    return Kind("a file's path", one_line().read, confine=confine)


OUTSIDE = "a project's own file may only name files inside of the project."


def lies_inside(name: str) -> bool:
    """Whether a path, as it is written, stays in the directory it is relative to. Links are judged on opening."""
    if name.startswith("~") or PurePosixPath(name).is_absolute() or PureWindowsPath(name).anchor:
        return False
    depth = 0
    for part in PureWindowsPath(name).parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return False
    return True


def choice(*options: str, aliases: dict[Any, str] | None = None) -> Kind:
    """One of `options`; `aliases` maps other accepted spellings (such as a seed's booleans)."""

    def read(value: Any) -> str:
        if isinstance(value, str):
            value = value.strip().lower()
        for alias, meaning in (aliases or {}).items():
            if type(alias) is type(value) and alias == value:
                return meaning
        if isinstance(value, str) and value in options:
            return value
        raise _refuse()

    return Kind("one of " + ", ".join(options), read, options)


def whole(minimum: int = 0, maximum: int = 1_000_000_000) -> Kind:
    """A whole number; `80k`, `1M`, `80_000` and `80,000` are read as people write them."""

    def read(value: Any) -> int:
        number = value
        if isinstance(value, str):
            match = _NUMBER.fullmatch(value.strip())
            if match is None:
                raise _refuse()
            scale = {"": 1, "k": 1_000, "m": 1_000_000}[match[3].lower()]
            number = float(match[1].replace("_", "").replace(",", "") + (match[2] or "")) * scale
            if value.strip().startswith("-"):
                number = -number
        if isinstance(number, bool) or not isinstance(number, int | float) or number != number:
            raise _refuse()
        if abs(number) == float("inf") or number != int(number) or not minimum <= number <= maximum:
            raise _refuse()
        return int(number)

    return Kind(f"a whole number from {minimum:,} to {maximum:,}", read)


def ratio(*, zero: bool = False) -> Kind:
    """A share: `0.8`, `80%` and `80` all mean 0.8. Zero only where it is said to be valid.

    Between 1 and 5 only with the sign: `2%`.
    """
    valid = f"a share {'from 0' if zero else 'above 0'} up to 1 (0.8, 80% and 80 mean the same)"

    def read(value: Any) -> float:
        number = value
        percent = False
        if isinstance(value, str):
            stripped = value.strip()
            percent = stripped.endswith("%")
            try:
                number = float(stripped.rstrip("%").strip())
            except ValueError:
                raise _refuse() from None
        if isinstance(number, bool) or not isinstance(number, int | float) or number != number:
            raise _refuse()
        try:
            share = float(number)
        except OverflowError:
            raise _refuse() from None
        if not percent and 1 < share < SMALLEST_BARE_PERCENTAGE:
            raise Misfit(f" = {_shown(value)} is not valid; valid: {valid}; {share:g} percent is {share:g}%.")
        if percent or share > 1:
            share /= 100
        if not (0 if zero else 1e-9) <= share <= 1:
            raise _refuse()
        return share

    return Kind(valid, read)


def _shown(value: Any) -> str:
    return repr(value)[:40]


def number(minimum: float, maximum: float) -> Kind:
    def read(value: Any) -> float:
        if isinstance(value, str):
            try:
                value = float(value.strip())
            except ValueError:
                raise _refuse() from None
        if isinstance(value, bool) or not isinstance(value, int | float) or not minimum <= value <= maximum:
            raise _refuse()
        return float(value)

    return Kind(f"a number from {minimum:g} to {maximum:g}", read)


def texts(options: Sequence[str] = (), aliases: dict[str, str] | None = None) -> Kind:
    """A list of texts; one text with commas is read as a list. With `options`, each must be one of them, once."""
    meanings: dict[str, str] = aliases or {}

    def read(value: Any) -> tuple[str, ...]:
        if isinstance(value, str):
            value = [item.strip() for item in value.strip().strip("[]").split(",")]
            value = [item.strip("\"'") for item in value if item]
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
            raise _refuse()
        if any(_UNUSABLE.search(item) for item in value):
            raise _refuse()
        items = tuple(meanings.get(item, str(item)) for item in value)
        if options and (len(set(items)) < len(items) or any(item not in options for item in items)):
            raise _refuse()
        return items

    valid = "a list of " + (", ".join(options) + ", each at most once" if options else "texts")
    return Kind(valid, read, tuple(options))


def model_names(kind: Kind) -> Kind:
    """The same kind for names of models; a project may not give one that leads to an address of its own.

    litellm takes `huggingface/https://HOST/` for the endpoint HOST.
    """

    def confine(value: Any) -> None:
        if "://" in str(value):
            raise Misfit(": a project's own file may only name models, not addresses.")

    return replace(kind, confine=confine)
