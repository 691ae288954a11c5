"""Detect a model that repeats itself: the same calls with the same results, step after step."""

from __future__ import annotations

MOST_STEPS = 3
"""After the same call with the same result three times, nudge the model once; then end the turn."""
NUDGE = (
    "[This is the same call with the same result for the third time. "
    "Do something else, or say what is missing; once more, and the turn ends.]"
)

Done = tuple[str, str, str]
"""A call that has run: name, arguments, result."""


class Repeats:
    """Counts repeated steps of one turn. A step is all calls of one answer, in order."""

    def __init__(self) -> None:
        self._last: tuple[tuple[Done, ...], int] | None = None
        self._times = 0

    def note(self, step: tuple[Done, ...], view_id: int) -> bool:
        """Count a step; True if the model is to be nudged.

        Another view means a compaction in between, after which the model may need to read the same again.
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
