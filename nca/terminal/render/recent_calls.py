"""Details of the last tool calls that the log does not keep, for `/show`: diffs, durations, summaries."""

from __future__ import annotations

from collections import deque
from itertools import islice

import msgspec

from nca.events import Event, ToolFinished

MOST_CALLS = 200
MOST_CHARS = 4_000_000
"""The most text of all diffs together; the oldest are dropped first."""


class RecentCalls:
    """Collects the calls that finish."""

    def __init__(self) -> None:
        self._finished: deque[ToolFinished] = deque()
        self._chars = 0

    def on_event(self, event: Event) -> None:
        if not isinstance(event, ToolFinished):
            return
        self._finished.append(msgspec.structs.replace(event, printed=""))
        self._chars += len(event.diff)
        while len(self._finished) > MOST_CALLS or (self._chars > MOST_CHARS and len(self._finished) > 1):
            self._chars -= len(self._finished.popleft().diff)

    def of(self, call_id: str, *, later: int = 0) -> ToolFinished | None:
        """How a call finished; None if it is from an earlier chat or too old.

        Some providers reuse ids: `later` is the number of newer calls with the same id.
        """
        same = (event for event in reversed(self._finished) if event.call_id == call_id)
        return next(islice(same, later, None), None)
