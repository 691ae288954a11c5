"""Detect a model that goes round in circles: the same calls with the same results, again and again."""

from __future__ import annotations

MOST_ROUNDS = 3
"""After the same steps with the same results three times, nudge the model once; then end the turn."""
LONGEST_ROUND_STEPS = 4
"""More steps with the same results are hardly a circle. A test that fails the same way after several changes is none
either: the changes differ."""
NUDGE = (
    "[You have made the same calls with the same results three times. "
    "Do something else, or say what is missing; once more, and the turn ends.]"
)

Done = tuple[str, str, str]
"""A call that has run: name, arguments, result."""


class Repeats:
    """Counts repeated rounds of one turn. A step is all calls of one answer, in order; a round is a few steps."""

    def __init__(self) -> None:
        self._steps: list[tuple[tuple[Done, ...], int]] = []
        self._rounds = 0

    def note(self, step: tuple[Done, ...], view_id: int) -> bool:
        """Add a step; True if the model is to be nudged.

        Another view means a compaction in between, after which the model may need to read the same again.
        """
        self._steps.append((step, view_id))
        del self._steps[: -LONGEST_ROUND_STEPS * (MOST_ROUNDS + 1)]
        before, self._rounds = self._rounds, max(map(self._repeated, range(1, LONGEST_ROUND_STEPS + 1)))
        return before < MOST_ROUNDS == self._rounds

    @property
    def is_stuck(self) -> bool:
        """The nudge did not help."""
        return self._rounds > MOST_ROUNDS

    def _repeated(self, length: int) -> int:
        """How many times the newest `length` steps stand at the end, one round right after the other."""
        steps = self._steps[::-1]
        newest = steps[:length]
        rounds = 1
        while steps[rounds * length : (rounds + 1) * length] == newest:
            rounds += 1
        return rounds
