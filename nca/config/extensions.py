"""Compaction stages: the names that `context.stages` accepts, and how those of installed packages are loaded.

Packages provide stages in the entry-point group `nca.stages`:

    [project.entry-points."nca.stages"]
    shorten_logs = "my_package.stages:ShortenLogs"

The entry is a strategy (nca.Strategy: `should_compact`, `compact`, `token_estimate`), or a class or function without
arguments that returns one. `context.stages` can then contain its name. Entry points are searched only for names that
are not built in, and a stage's code is loaded only when it runs.
"""

from __future__ import annotations

from typing import Any

from nca.compat import names as compat
from nca.config.value_types import InvalidValue, ValueType, texts
from nca.errors import ConfigError

STAGES = ("prune", "deduplicate", "summarize", "truncate")
"""The default stages in their default order."""
BUILT_IN = (*STAGES, *compat.STAGES)
GROUP = "nca.stages"
"""The entry-point group."""


def registered_stages() -> tuple[str, ...]:
    """The names that installed packages register, sorted."""
    from importlib.metadata import entry_points

    return tuple(sorted({entry.name for entry in entry_points(group=GROUP)}))


def stage_names() -> ValueType:
    """A list of stages, each at most once. Packages are looked through only for a name that is not built in."""
    known = texts(BUILT_IN, dict(compat.STAGE_ALIASES))

    def read(value: Any) -> tuple[str, ...]:
        names = texts((), dict(compat.STAGE_ALIASES)).read(value)
        others = [name for name in names if name not in BUILT_IN]
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
        if others := [name for name in value if name not in BUILT_IN]:
            raise InvalidValue(f": only your own file may name a stage of a package ({', '.join(others)}).")

    return ValueType(known.valid + "; or stages that installed packages register", read, BUILT_IN, confine=confine)


METHODS = ("should_compact", "compact", "token_estimate")


def load_stage(name: str) -> Any:
    """The stage registered under this name. Raises ConfigError if there is none, or if it cannot be loaded."""
    from importlib.metadata import entry_points

    entry = next(iter(entry_points(group=GROUP, name=name)), None)
    if entry is None:
        others = ", ".join(registered_stages()) or "none"
        raise ConfigError(f"context.stages: no installed package registers the stage {name}; registered: {others}.")
    try:
        loaded = entry.load()
        stage = loaded() if isinstance(loaded, type) or not _is_stage(loaded) else loaded
    except Exception as error:
        raise ConfigError(
            f"context.stages: the stage {name} ({entry.value}) cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    if not _is_stage(stage):
        raise ConfigError(
            f"context.stages: the stage {name} ({entry.value}) lacks one of {', '.join(METHODS)}; see nca.Strategy."
        )
    return stage


def _is_stage(value: Any) -> bool:
    return all(callable(getattr(value, method, None)) for method in METHODS)
