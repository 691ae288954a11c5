"""The tool that gives a question to an assistant with a separate context: task. Only the answer comes back.

The searches, long files and dead ends on the way never enter the conversation that asked.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, ClassVar, Protocol

from nca.tools.tool import Permission, ToolError, ToolOutcome, TypedTool

NAME = "task"
_SHOWN_CHARS = 120


class Subtasks(Protocol):
    """Answers the questions; stops when cancelled."""

    @property
    def agents(self) -> Collection[str]:
        """The names of those that may be asked for by name."""
        ...

    async def answer(self, question: str, agent: str) -> ToolOutcome: ...


class Task(TypedTool):
    """Needs no permission to write or execute: each call that the other assistant makes needs its own."""

    name: ClassVar[str] = NAME
    permission: ClassVar[Permission] = "read"

    def __init__(self, subtasks: Subtasks) -> None:
        self._subtasks = subtasks

    async def call(
        self,
        question: Annotated[str, "All it must know: it sees nothing of this conversation."],
        agent: Annotated[str, "One of the listed agents."] = "",
    ) -> ToolOutcome:
        """Give a separate question that takes much searching or reading to an assistant with the same tools and a
        context of its own. Only its answer comes back."""
        if not question.strip():
            raise ToolError("give a question")
        agent = agent.strip()
        if agent and agent not in self._subtasks.agents:
            known = ", ".join(self._subtasks.agents) or "none"
            raise ToolError(f"there is no agent {agent!r}; the agents are: {known}")
        return await self._subtasks.answer(question.strip(), agent)

    @property
    def parameters(self) -> dict[str, Any]:
        """Without agents no model is offered one."""
        parameters = super().parameters
        properties = parameters["properties"]
        kept = {name: one for name, one in properties.items() if name != "agent" or self._subtasks.agents}
        return {**parameters, "properties": kept}

    def summarize(self, arguments: dict[str, Any]) -> str:
        line = ": ".join(" ".join(str(arguments[key]).split()) for key in ("agent", "question") if arguments.get(key))
        return f"task {line[:_SHOWN_CHARS]}{'…' if len(line) > _SHOWN_CHARS else ''}"
