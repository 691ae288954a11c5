"""Whether the model goes round in circles: the same calls with the same results, step after step."""

from __future__ import annotations

MOST_STEPS = 3
"""Spec 8: the same call with the same result three times is once too often. Then one nudge, then the turn ends."""
NUDGE = (
    "[This is the same call with the same result for the third time. "
    "Do something else, or say what is missing; once more, and the turn ends.]"
)

Done = tuple[str, str, str]
"""A call that has run: name, arguments, result."""


class Repeats:
    """The steps of one turn. A step's calls count together, in their order."""

    def __init__(self) -> None:
        self._last: tuple[tuple[Done, ...], int] | None = None
        self._times = 0

    def note(self, step: tuple[Done, ...], view_id: int) -> bool:
        """A step is done; True where the model is to be nudged.

        Another view means a compaction in between: what the model read before may have gone, so it may ask again.
        """
        self._times = self._times + 1 if (step, view_id) == self._last else 1
        self._last = step, view_id
        return self._times == MOST_STEPS

    @property
    def is_stuck(self) -> bool:
        """The nudge did not help."""
        return self._times > MOST_STEPS

    @property
    def times(self) -> int:
        return self._times
