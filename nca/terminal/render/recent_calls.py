"""What the log does not keep of the last tool calls: their diffs, how long they took, what was said of them.

`/show` asks for it.
"""

from __future__ import annotations

from collections import deque
from itertools import islice

from nca.events import Event, ToolFinished

MOST_CALLS = 200
MOST_CHARS = 4_000_000
"""Of all diffs together; the oldest go first."""


class RecentCalls:
    """A listener beside the one that draws."""

    def __init__(self) -> None:
        self._ended: deque[ToolFinished] = deque()
        self._chars = 0

    def on_event(self, event: Event) -> None:
        if not isinstance(event, ToolFinished):
            return
        self._ended.append(event)
        self._chars += len(event.diff)
        while len(self._ended) > MOST_CALLS or (self._chars > MOST_CHARS and len(self._ended) > 1):
            self._chars -= len(self._ended.popleft().diff)

    def of(self, call_id: str, *, later: int = 0) -> ToolFinished | None:
        """How a call ended; None where it was before this chat, or too long ago.

        Some providers use their ids again: `later` calls with this id came after it.
        """
        same = (event for event in reversed(self._ended) if event.call_id == call_id)
        return next(islice(same, later, None), None)
