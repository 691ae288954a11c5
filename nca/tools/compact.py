"""The tool with which a model has its context compacted where it suits the work: compact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, ClassVar

from nca.tools.tool import Permission, ToolError, ToolOutcome, TypedTool

LEAST_SHARE = 0.3
"""The share of the budget below which a compaction takes away more than it gives."""


class CompactionWish:
    """What the model wants of its context. Whoever sends the next request takes it.

    share  how much of the budget is used now
    """

    def __init__(self) -> None:
        self.share: Callable[[], float] = lambda: 1.0
        self._focus: str | None = None

    def note(self, focus: str) -> None:
        self._focus = focus

    def take(self) -> str | None:
        """What to keep above all, or "" for nothing special; None if no compaction is wanted."""
        taken, self._focus = self._focus, None
        return taken


class Compact(TypedTool):
    name: ClassVar[str] = "compact"
    permission: ClassVar[Permission] = "read"

    def __init__(self, wish: CompactionWish) -> None:
        self._wish = wish

    async def call(
        self,
        reason: Annotated[str, "Why now, in a few words."],
        keep: Annotated[str, "What the next steps need."] = "",
    ) -> ToolOutcome:
        """Have the older part of this conversation compacted, at the end of a step of your plan. Nothing is lost."""
        share = self._wish.share()
        if share < LEAST_SHARE:
            raise ToolError(f"only {share:.0%} of the context is used; go on")
        self._wish.note(keep.strip())
        return ToolOutcome("[The context is compacted before your next step.]", summary=reason.strip())
