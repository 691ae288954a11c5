"""The tool that keeps the list of steps of a longer task: todo.

The newest call in the log is the list. Compaction keeps it in view while a step is open
(nca.context.todo), and a resumed session reads it from the log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, ClassVar

from nca.context.todo import NAME
from nca.tools.tool import Permission, ToolError, ToolOutcome, TypedTool

MAX_CHARS = 2_000
"""The whole list: it is part of every request until it is done."""


class Todo(TypedTool):
    name: ClassVar[str] = NAME
    permission: ClassVar[Permission] = "read"

    def __init__(self, earlier: Callable[[], dict[str, Any]] = dict) -> None:
        """`earlier` gives the arguments of the newest call in the log, which may be from an earlier process."""
        self._earlier = earlier

    async def call(
        self,
        doing: Annotated[str | None, "The step worked on now."] = None,
        open: Annotated[list[str] | None, "Steps to do, in order."] = None,
        done: Annotated[list[str] | None, "Steps that are done."] = None,
    ) -> ToolOutcome:
        """Keep the steps of a longer task: give all each time. No arguments: show them."""
        if doing is None and open is None and done is None:
            return self._shown()
        current, waiting, finished = (doing or "").strip(), _steps(open), _steps(done)
        total = len(waiting) + len(finished) + bool(current)
        if sum(map(len, (current, *waiting, *finished))) > MAX_CHARS:
            raise ToolError(f"the list has more than {MAX_CHARS:,} characters; use fewer words, drop what is done")
        now = f"; now: {current}" if current else ""
        return ToolOutcome(f"[{len(finished)} of {total} done{now}]", summary=f"{len(finished)} of {total} done")

    def summarize(self, arguments: dict[str, Any]) -> str:
        return f"todo {arguments.get('doing') or ''}".strip()

    def _shown(self) -> ToolOutcome:
        arguments = self._signature.read(self._earlier())
        lines = [f"- [x] {step}" for step in _steps(arguments.get("done"))]
        lines += [f"- [>] {arguments['doing']}"] if arguments.get("doing") else []
        lines += [f"- [ ] {step}" for step in _steps(arguments.get("open"))]
        return ToolOutcome("\n".join(lines) or "[the list is empty]", summary=f"{len(lines)} steps")


def _steps(texts: Sequence[str] | None) -> list[str]:
    return [text.strip() for text in texts or () if text.strip()]
