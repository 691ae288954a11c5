"""Apply overrides to settings: find the key that a name means, parse the value, or refuse it.

Every layer goes through here: files, environment, flags, `/config` and the library's settings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from nca.compat.names import FOREIGN_NAMES, ForeignName, join_summarizer
from nca.config.document import shown_name, shown_value
from nca.config.extensions import STAGES
from nca.config.schema import KEYS
from nca.config.value_types import InvalidValue, boolean
from nca.errors import ConfigError
from nca.humanize import check_kind

_LONGEST_NAME_CHARS = 80


class Name(NamedTuple):
    """A resolved name: `key` is nca's; `foreign` is None if nca's own name was written."""

    key: str
    foreign: ForeignName | None = None


def canonical(name: str) -> Name | None:
    """The meaning of a written name, or None. Dots separate tables: `memory.context.max_retained_messages`."""
    check_kind(name, str, "name", "the name of a setting")
    lowered = name.strip().lower()
    if lowered in KEYS:
        return Name(lowered)
    foreign = _BY_NAME.get(_plain(lowered))
    return Name(foreign.key, foreign) if foreign else None


def whole_name(typed: str) -> str:
    """The name that a person means: the end of one is enough if only one setting has it (`compact_threshold`).

    For what is typed, not for files: a later setting may end in the same way. A name that nothing has comes back as it
    is. Raises ConfigError if several settings have this end.
    """
    if canonical(typed) is not None:
        return typed
    ends = names_ending(typed)
    if len(ends) > 1:
        raise ConfigError(f"{typed.strip()} could be any of {', '.join(ends)}.", advice="Give more of the name.")
    return ends[0] if ends else typed


def key_meant(typed: str) -> str:
    """nca's name for the setting that a person means, as `whole_name` finds it; "" if that may be none or several."""
    try:
        found = canonical(whole_name(typed))
    except ConfigError:
        return ""
    return found.key if found is not None else ""


def names_ending(typed: str) -> list[str]:
    """The settings with these last parts."""
    end = typed.strip().lower().replace("-", "_")
    return [key for key in KEYS if key.endswith(f".{end}")]


def is_section(name: str) -> bool:
    """Whether the name is a table that holds settings, nca's or another program's: `context`, `memory.context`."""
    return _plain(name.strip()) in _SECTIONS


def nearest(name: str) -> str | None:
    """The known name that was probably meant, or None if none is near."""
    import difflib

    wanted = name.strip().lower()[:_LONGEST_NAME_CHARS]
    last = wanted.rpartition(".")[2]
    same_end = names_ending(last)
    if len(same_end) == 1:
        return same_end[0]
    candidates = {key: key for key in KEYS} | {one.lower(): one for foreign in FOREIGN_NAMES for one in foreign.names}
    matches = difflib.get_close_matches(wanted, candidates, n=1, cutoff=0.7)
    if not matches:
        ends = {key.rpartition(".")[2]: key for key in KEYS}
        return next((ends[end] for end in difflib.get_close_matches(last, ends, n=1, cutoff=0.8)), None)
    return candidates[matches[0]]


def converted(foreign: ForeignName, raw: Any, current: Any) -> Any:
    """The value written under another program's name, as nca's setting. Raises ValueError."""
    if foreign.stage:
        return _switched(foreign.stage, boolean().read(raw), current)
    return foreign.convert(raw) if foreign.convert is not None else raw


def _switched(stage: str, is_on: bool, current: tuple[str, ...]) -> tuple[str, ...]:
    if is_on == (stage in current):
        return current
    if not is_on:
        return tuple(one for one in current if one != stage)
    # It comes back at its usual place: before the first stage that usually follows it.
    rest = STAGES[STAGES.index(stage) + 1 :]
    at = next((index for index, one in enumerate(current) if one in rest), len(current))
    return (*current[:at], stage, *current[at:])


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


_BY_NAME: dict[str, ForeignName] = {_plain(name): foreign for foreign in FOREIGN_NAMES for name in foreign.names}

_SECTIONS = frozenset(
    _plain(name[:at])
    for name in (*KEYS, *(one for foreign in FOREIGN_NAMES for one in foreign.names))
    for at, char in enumerate(name)
    if char == "."
)


class Layer(IntEnum):
    """The layer that a value comes from; a higher layer wins."""

    DEFAULT = 0
    PROFILE = 1
    CHOSEN = 2
    USER = 3
    PROJECT = 4
    MODEL = 5
    ENVIRONMENT = 6
    FLAG = 7
    CHAT = 8


class SettingValue(NamedTuple):
    """A typed value and where it came from."""

    value: Any
    origin: str
    layer: Layer


UNSET = object()
"""Instead of a value: remove the setting, so that the layer below decides."""
_SIMILAR = 4
"""So many names are offered that contain what was written; more would be a list."""


class Override(NamedTuple):
    """One `name = raw` as it was written.

    place       gives the location for messages, "" if it is obvious; its arguments lead to a part of the value
    is_trusted  the user wrote it, not an untrusted project
    """

    name: str
    raw: Any
    origin: str
    place: Callable[..., str]
    is_trusted: bool = True

    def error(self, text: str, *inner: str) -> ConfigError:
        """A refusal of this override; `inner` leads to the invalid part of its value."""
        return ConfigError(f"{prefix(self.place(*inner))}{shown_name(self.name)}{text}")


def apply_overrides(
    overrides: list[Override],
    values: dict[str, SettingValue],
    layer: Layer,
    *,
    current: Mapping[str, SettingValue] | None = None,
    check: Callable[[str, Override], None] | None = None,
) -> list[str]:
    """Parse each override into `values` and return notes for the user.

    Names from other programs are applied first, so that nca's own name wins if both are given.
    """
    found = [(resolve(override.name, override.place()), override) for override in overrides]
    notes: list[str] = []
    taken: dict[str, str] = {}
    now = dict(current if current is not None else values)
    for name, override in sorted(found, key=lambda pair: pair[0].foreign is None):
        if check is not None:
            check(name.key, override)
        if name.foreign is not None:
            notes.append(f"{prefix(override.place())}{shown_name(override.name)} is {name.key} in nca.")
        before = taken.get(name.key)
        if before is not None and not _is_partial(name):
            notes.append(f"{prefix(override.place())}{shown_name(override.name)} overrules {shown_name(before)}.")
        taken[name.key] = override.name
        value = _read(name, override, now[name.key].value, found)
        values[name.key] = now[name.key] = SettingValue(value, override.origin, layer)
    return notes


def _read(name: Name, override: Override, current: Any, found: list[tuple[Name, Override]]) -> Any:
    """The typed value. Raises ConfigError."""
    key = KEYS[name.key]
    value_type = key.value_type
    try:
        raw = override.raw
        if name.foreign is not None and name.foreign.part:
            halves = {one.foreign.part: other.raw for one, other in found if one.foreign is not None}
            raw = join_summarizer(halves.get("provider"), halves.get("model"), current)
        elif name.foreign is not None:
            raw = converted(name.foreign, raw, current)
        value = value_type.read(raw)
        if value_type.confine is not None and not override.is_trusted:
            value_type.confine(value)
        return value_type.merge(current, value) if value_type.merge is not None else value
    except InvalidValue as invalid:
        raise override.error(str(invalid), *invalid.path) from None
    except ValueError:
        valid = name.foreign.valid if name.foreign is not None and name.foreign.valid else value_type.valid
        also = f" (nca's {key.name})" if name.foreign is not None else ""
        raise override.error(f" = {shown_value(override.raw)}{also} is not valid; valid: {valid}.") from None


def _is_partial(name: Name) -> bool:
    """Whether the name sets a part of the value, so that another name beside it does not overrule it."""
    foreign = name.foreign
    return foreign is not None and bool(foreign.part or foreign.stage or foreign.convert)


def resolve(written: str, place: str) -> Name:
    """The setting that a written name means. Raises ConfigError with the nearest name."""
    if found := canonical(written):
        return found
    shown = shown_name(written)
    if is_section(written):
        raise ConfigError(f"{prefix(place)}{shown} is a section, not a setting; its settings are {shown}.…")
    if rows := next(
        (key for key in KEYS.values() if key.value_type.row and shown.lower().startswith(f"{key.name}.")), None
    ):
        if rows.value_type.is_named:
            raise ConfigError(f"{prefix(place)}{rows.name} is set in a file, as [{rows.name}.NAME].")
        raise ConfigError(f"{prefix(place)}{rows.name} is a list of tables; write [[{rows.name}]] above {shown}.")
    near = nearest(written)
    similar = [near] if near else [name for name in KEYS if shown.lower() in name]
    is_few = 0 < len(similar) <= _SIMILAR
    hint = f"Did you mean {' or '.join(similar)}?" if is_few else "`nca config show` lists them all."
    there = f"{place}: there" if place else "There"
    raise ConfigError(f"{there} is no setting {shown}.", advice=hint)


def fixed_place(text: str) -> Callable[..., str]:
    """A location that is the same for every part of the value."""
    return lambda *_: text


def prefix(place: str) -> str:
    return f"{place}: " if place else ""
