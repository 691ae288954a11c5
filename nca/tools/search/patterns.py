"""Glob patterns: `*.py` in any folder, `src/**/*.ts` from where the search starts, `*.{ts,tsx}`.

Patterns are matched component by component, so that none takes exponential time (as gitignore rules and fnmatch can).
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence

MOST_OPTIONS = 64
MAX_PATTERN_CHARS = 1_000
_BRACES = re.compile(r"\{([^{}]*)\}")
_Component = Callable[[str], object] | None
"""Matches one name; None stands for `**`, any number of folders."""


def matcher(pattern: str) -> Callable[[str], bool]:
    """A function that tests a path with slashes. Raises ValueError for an invalid pattern."""
    cleaned = pattern.strip().removeprefix("./")
    if not cleaned or cleaned.startswith(("!", "/")) or len(cleaned) > MAX_PATTERN_CHARS:
        raise ValueError(f"{pattern[:60]!r} is not a pattern; patterns look like *.py or src/**/*.ts")
    options = [_components(option) for option in _options(cleaned)]
    return lambda path: any(_fits(option, path.split("/")) for option in options)


def _options(pattern: str) -> list[str]:
    """Expand the braces: one pattern for each combination of alternatives."""
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        one = waiting.pop()
        match = _BRACES.search(one)
        if match is None:
            done.append(one)
        else:
            waiting += [one[: match.start()] + inner + one[match.end() :] for inner in match[1].split(",")]
        if len(done) + len(waiting) > MOST_OPTIONS:
            raise ValueError(f"the pattern has more than {MOST_OPTIONS} alternatives")
    return done


def _components(pattern: str) -> list[_Component]:
    names = [name for name in pattern.split("/") if name not in ("", ".")]
    if pattern.endswith("/"):
        names.append("**")
    elif len(names) == 1 and names[0] != "**":
        names.insert(0, "**")
    return [None if name == "**" else re.compile(fnmatch.translate(name)).match for name in names]


def _fits(components: Sequence[_Component], names: Sequence[str]) -> bool:
    """Dynamic programming: `reached` holds how many names the components so far can have matched."""
    reached = {0}
    for component in components:
        if component is None:
            reached = set(range(min(reached), len(names) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(names) and component(names[at])}
        if not reached:
            return False
    return len(names) in reached
