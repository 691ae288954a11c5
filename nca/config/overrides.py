"""What someone wrote, `name = value`, and how it becomes a typed value or a refusal.

All layers go through here: files, environment, flags, `/config` and the library's settings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from nca.config.document import shown_name, shown_value
from nca.config.names import Name, canonical, is_section, join_summarizer, nearest
from nca.config.schema import KEYS
from nca.config.value_types import Misfit
from nca.errors import ConfigError


class Rank(IntEnum):
    """How strong a layer is."""

    DEFAULT = 0
    PROFILE = 1
    USER = 2
    PROJECT = 3
    MODEL = 4
    ENVIRONMENT = 5
    FLAG = 6
    CHAT = 7


@dataclass(frozen=True, slots=True)
class Placed:
    """A typed value and where it came from."""

    value: Any
    origin: str
    rank: Rank


class Unset:
    """In the place of a value: take back what was set, and leave the one below in force."""


UNSET = Unset()


@dataclass(frozen=True, slots=True)
class Wish:
    """One `name = raw` as someone wrote it.

    place       tells where, for messages ("" where it is plain to the reader); takes the way into the value, if any
    is_trusted  whether the person wrote it, and not a project that may be anyone's
    """

    name: str
    raw: Any
    origin: str
    place: Callable[..., str]
    is_trusted: bool = True


def apply_wishes(
    wishes: list[Wish],
    values: dict[str, Placed],
    rank: Rank,
    *,
    current: Mapping[str, Placed] | None = None,
    check: Callable[[str, Wish], None] | None = None,
) -> list[str]:
    """Read each wish into `values`; seeds' names first, so that a canonical name beside them wins. Returns notes."""
    found = [(resolve(wish.name, wish.place()), wish) for wish in wishes]
    notes: list[str] = []
    taken: dict[str, str] = {}
    now = dict(current if current is not None else values)
    for name, wish in sorted(found, key=lambda pair: pair[0].seed is None):
        if check is not None:
            check(name.key, wish)
        if name.seed is not None:
            notes.append(f"{prefix(wish.place())}{shown_name(wish.name)} is {name.key} in nca.")
        before = taken.get(name.key)
        if before is not None and (name.seed is None or not (name.seed.part or name.seed.convert)):
            notes.append(f"{prefix(wish.place())}{shown_name(wish.name)} overrules {shown_name(before)}.")
        taken[name.key] = wish.name
        value = _read(name, wish, now[name.key].value, found)
        values[name.key] = now[name.key] = Placed(value, wish.origin, rank)
    return notes


def _read(name: Name, wish: Wish, current: Any, found: list[tuple[Name, Wish]]) -> Any:
    """The typed value of a wish, or ConfigError."""
    key = KEYS[name.key]
    try:
        raw = wish.raw
        if name.seed is not None and name.seed.part:
            halves = {one.seed.part: other.raw for one, other in found if one.seed is not None and one.seed.part}
            raw = join_summarizer(halves.get("provider"), halves.get("model"), current)
        elif name.seed is not None and name.seed.convert is not None:
            raw = name.seed.convert(raw, current)
        value = key.kind.read(raw)
        if key.kind.confine is not None and not wish.is_trusted:
            key.kind.confine(value)
        return key.kind.merge(current, value) if key.kind.merge is not None else value
    except Misfit as misfit:
        raise ConfigError(f"{prefix(wish.place(*misfit.path))}{shown_name(wish.name)}{misfit}") from None
    except ValueError:
        valid = name.seed.valid if name.seed is not None and name.seed.valid else key.kind.valid
        also = f" (nca's {key.name})" if name.seed is not None else ""
        raise ConfigError(
            f"{prefix(wish.place())}{shown_name(wish.name)} = {shown_value(wish.raw)}{also} is not valid; "
            f"valid: {valid}."
        ) from None


def resolve(written: str, place: str) -> Name:
    if found := canonical(written):
        return found
    shown = shown_name(written)
    if is_section(written):
        raise ConfigError(f"{prefix(place)}{shown} is a section, not a setting; its settings are {shown}.…")
    if rows := next((key for key in KEYS.values() if key.kind.row and shown.lower().startswith(f"{key.name}.")), None):
        if rows.kind.is_named:
            raise ConfigError(f"{prefix(place)}{rows.name} is set in a file, as [{rows.name}.NAME].")
        raise ConfigError(f"{prefix(place)}{rows.name} is a list of tables; write [[{rows.name}]] above {shown}.")
    near = nearest(written)
    hint = f"Did you mean {near}?" if near else "`nca config show` lists them all."
    there = f"{place}: there" if place else "There"
    raise ConfigError(f"{there} is no setting {shown}.", advice=hint)


def said(text: str) -> Callable[..., str]:
    """A place that is the same wherever in the value one looks."""
    return lambda *_: text


def prefix(place: str) -> str:
    return f"{place}: " if place else ""
