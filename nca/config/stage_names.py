"""The names that `context.stages` accepts: the built-in ones, and those that installed packages register."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nca.config.value_types import InvalidValue, ValueType, texts

GROUP = "nca.stages"
"""The entry-point group; nca.config.extensions says what an entry is."""


def registered_stages() -> tuple[str, ...]:
    """The names that installed packages register, sorted."""
    from importlib.metadata import entry_points

    return tuple(sorted({entry.name for entry in entry_points(group=GROUP)}))


def stage_names(built_in: Sequence[str], aliases: Mapping[str, str]) -> ValueType:
    """A list of stages, each at most once. Packages are looked through only for a name that is not built in."""
    known = texts(built_in, dict(aliases))

    def read(value: Any) -> tuple[str, ...]:
        names = texts((), dict(aliases)).read(value)
        others = [name for name in names if name not in built_in]
        registered = registered_stages() if others else ()
        if len(set(names)) == len(names) and all(name in registered for name in others):
            return tuple(names)
        if not registered:
            raise ValueError("not valid")
        raise InvalidValue(
            f" = {', '.join(names)!r} is not valid; valid: {known.valid}; registered: {', '.join(registered)}."
        )

    def confine(value: tuple[str, ...]) -> None:
        """A project that may be anyone's does not choose which of the installed code sees the conversation."""
        if others := [name for name in value if name not in built_in]:
            raise InvalidValue(f": only your own file may name a stage of a package ({', '.join(others)}).")

    return ValueType(
        known.valid + "; or stages that installed packages register", read, tuple(built_in), confine=confine
    )
