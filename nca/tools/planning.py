"""Tools with which a model plans its work: its steps (todo), separate questions (task), less context (compact).

The newest call of todo in the log is the list. Compaction keeps it in view while a step is open (nca.context.todo), and
a resumed session reads it from the log.

Only the answer of a task comes back: the searches, long files and dead ends on the way never enter the conversation
that asked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Annotated, Any, ClassVar, Protocol

from nca.context.todo import NAME, marked
from nca.humanize import one_line
from nca.tools.tool import Permission, ToolError, ToolOutcome, TypedTool

MAX_CHARS = 2_000
"""The whole list: it is part of every request until it is done."""


MOST_LINES = 5
"""Lines of the list for a person: as many as the screen shows of a command's output."""


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
        steps = marked({"doing": doing, "open": open, "done": done}, "✓", "›", "·")
        finished = sum(mark == "✓" for mark, _ in steps)
        if sum(len(step) for _, step in steps) > MAX_CHARS:
            raise ToolError(f"the list has more than {MAX_CHARS:,} characters; use fewer words, drop what is done")
        now = next((f"; now: {step}" for mark, step in steps if mark == "›"), "")
        count = f"{finished} of {len(steps)} done"
        return ToolOutcome(f"[{count}{now}]", summary=count, printed="\n".join(_for_person(steps, finished)))

    def summarize(self, arguments: dict[str, Any]) -> str:
        return f"todo {arguments.get('doing') or ''}".strip()

    def _shown(self) -> ToolOutcome:
        lines = [f"- [{mark}] {step}" for mark, step in marked(self._earlier(), "x", ">", " ")]
        return ToolOutcome("\n".join(lines) or "[the list is empty]", summary=f"{len(lines)} steps")


def _for_person(steps: list[tuple[str, str]], finished: int) -> list[str]:
    """The list in few lines: where they do not hold all steps, those that are done and the last ones are counted."""
    lines = [f"{mark} {' '.join(step.split())}" for mark, step in steps]
    if len(lines) > MOST_LINES and finished > 1:
        lines = [f"✓ {finished} done", *lines[finished:]]
    if len(lines) > MOST_LINES:
        kept = MOST_LINES - 1
        lines = [*lines[:kept], f"· {len(lines) - kept} more"]
    return lines


TASK = "task"
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

    name: ClassVar[str] = TASK
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
        line = ": ".join(str(arguments[key]) for key in ("agent", "question") if arguments.get(key))
        return f"task {one_line(line, _SHOWN_CHARS)}"


LEAST_SHARE = 0.3
"""The share of the budget below which a compaction takes away more than it gives."""


class CompactionWish:
    """The model's wish for its context. The sender of the next request takes it.

    share  how much of the budget is used now
    """

    def __init__(self) -> None:
        self.share: Callable[[], float] = lambda: 1.0
        self._focus: str | None = None

    def note(self, focus: str) -> None:
        self._focus = focus

    def take(self) -> str | None:
        """The subject to keep above all, or "" for nothing special; None if no compaction is wanted."""
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
        return ToolOutcome("[The context is compacted before your next step.]", summary="before the next step")
