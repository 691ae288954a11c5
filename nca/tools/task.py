"""The tool that gives a question to an assistant with a separate context: task. Only the answer comes back.

The searches, long files and dead ends on the way never enter the conversation that asked.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Protocol

from nca.tools.tool import Permission, ToolError, ToolOutcome, TypedTool

NAME = "task"
_SHOWN_CHARS = 120


class Subtasks(Protocol):
    """Answers the questions; stops when cancelled."""

    async def answer(self, question: str) -> ToolOutcome: ...


class Task(TypedTool):
    """Needs no permission to write or execute: each call that the other assistant makes needs its own."""

    name: ClassVar[str] = NAME
    permission: ClassVar[Permission] = "read"

    def __init__(self, subtasks: Subtasks) -> None:
        self._subtasks = subtasks

    async def call(
        self, question: Annotated[str, "All it must know: it sees nothing of this conversation."]
    ) -> ToolOutcome:
        """Give a separate question that takes much searching or reading to an assistant with the same tools and a
        context of its own. Only its answer comes back."""
        if not question.strip():
            raise ToolError("give a question")
        return await self._subtasks.answer(question.strip())

    def summarize(self, arguments: dict[str, Any]) -> str:
        line = " ".join(str(arguments.get("question", "")).split())
        return f"task {line[:_SHOWN_CHARS]}{'…' if len(line) > _SHOWN_CHARS else ''}"
