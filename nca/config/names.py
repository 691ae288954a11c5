"""Resolve the name of a setting: nca's own, or one that another program uses for the same thing."""

from __future__ import annotations

from typing import Any, NamedTuple

from nca.compat.names import FOREIGN_NAMES, ForeignName
from nca.config.extensions import STAGES
from nca.config.schema import KEYS
from nca.config.value_types import boolean
from nca.errors import ConfigError

_LONGEST_NAME_CHARS = 80


class Name(NamedTuple):
    """A resolved name: `key` is nca's; `foreign` is None where nca's own name was written."""

    key: str
    foreign: ForeignName | None = None


def canonical(name: str) -> Name | None:
    """What a written name means, or None. Dots separate tables: `memory.context.max_retained_messages`."""
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


def names_ending(typed: str) -> list[str]:
    """The settings whose last parts are this."""
    return [key for key in KEYS if key.endswith(f".{_typed(typed)}")]


def _typed(name: str) -> str:
    return name.strip().lower().replace("-", "_")


def is_section(name: str) -> bool:
    """Whether the name is a table that holds settings, nca's or another program's: `context`, `memory.context`."""
    return _plain(name.strip()) in _SECTIONS


def nearest(name: str) -> str | None:
    """The known name that was probably meant, or None where none is near."""
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
    """What was written under another program's name, as nca's setting reads it. Raises ValueError."""
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
