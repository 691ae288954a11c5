"""Load compaction stages that installed packages provide in the entry-point group `nca.stages`.

    [project.entry-points."nca.stages"]
    shorten_logs = "my_package.stages:ShortenLogs"

The entry is a strategy (nca.Strategy: `should_compact`, `compact`, `token_estimate`), or a class or function without
arguments that returns one. `context.stages` can then contain its name. Entry points are searched only for names that
are not built in, and a stage's code is loaded only when it runs.
"""

from __future__ import annotations

from typing import Any

from nca.compat import names as compat
from nca.config.schema import STAGES
from nca.config.stage_names import GROUP, registered_stages
from nca.errors import ConfigError

METHODS = ("should_compact", "compact", "token_estimate")


def is_built_in(name: str) -> bool:
    return name in STAGES or name in compat.STAGES


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
