"""A sub-question in a context of its own: the same turn loop over a window in memory; only its answer comes back.

It has the conversation's model, tools (but not this one), permissions and limits. What it costs is recorded in the
conversation's session as it is spent; its log is gone when it has answered.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import msgspec

from nca.agent.approvals import Approvals
from nca.agent.calls import Calls
from nca.agent.compactor import Compactor
from nca.agent.fallbacks import Fallbacks
from nca.agent.spending import Spending
from nca.agent.tool_selection import offered
from nca.agent.turn import Turn
from nca.agent.window import Window
from nca.config.loaded import LoadedSettings
from nca.errors import NcaError
from nca.events import (
    ContextCompaction,
    Event,
    Listener,
    Notice,
    RetryScheduled,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from nca.messages import Message, Usage, clean_text
from nca.models.model import Model
from nca.redact import Redactor
from nca.sessions.session import Session
from nca.sessions.store import Store
from nca.tools.task import NAME
from nca.tools.tool import ToolError, ToolOutcome
from nca.tools.toolbox import Toolbox

PROMPT = (
    "## This conversation\n"
    "You answer one question for another assistant, which sees nothing of your work but your last message. Nobody"
    " can be asked. Make that message short and complete: what was found, where (paths, lines), what was not found."
)
_ENDINGS = {
    "max_steps": "[the task reached its limit of {steps} steps]",
    "stuck": "[the task was stopped: it made the same call with the same result again and again]",
}
_ID_BYTES = 4


class MakeTools(Protocol):
    """nca's own tools for a window, with a state of their own, for what is too large an `outputs` folder."""

    def __call__(self, window: Callable[[], Window], outputs: Callable[[], Path | None]) -> Toolbox: ...


@dataclass(frozen=True, slots=True)
class Parent:
    """What a task shares with the conversation that asks."""

    loaded: LoadedSettings
    window: Window
    toolbox: Toolbox
    models: Fallbacks
    spending: Spending
    approvals: Approvals
    redactor: Redactor
    emit: Listener
    outputs: Path | None
    make_tools: MakeTools


class Subtasks:
    """Answers the tasks of one conversation. `parent` is asked when a task begins."""

    def __init__(self, parent: Callable[[], Parent]) -> None:
        self._parent = parent

    async def answer(self, question: str) -> ToolOutcome:
        """The answer, for the model that asked. Raises ToolError where there is none; cancelled, it just ends."""
        parent = self._parent()
        with Store.open(None) as store:
            task = _Task(parent, store)
            try:
                finished = await task.run(question)
            except NcaError as error:
                raise ToolError(f"the task failed: {error.message}") from error
            finally:
                await task.close()
        return _outcome(finished, task.window.spent_tokens)


def _outcome(finished: TurnFinished, tokens: int) -> ToolOutcome:
    ending = _ENDINGS.get(finished.reason, "").format(steps=finished.steps)
    text = "\n".join(part for part in (finished.text.strip(), ending) if part)
    is_error = not finished.text.strip()
    summary = f"{finished.steps} step{'s' if finished.steps != 1 else ''}, {tokens:,} tokens"
    return ToolOutcome(text or "[the task ended without an answer]", is_error=is_error, summary=summary)


class _Task:
    """One task while it runs."""

    def __init__(self, parent: Parent, store: Store) -> None:
        self._emit, self._within = parent.emit, f"task-{secrets.token_hex(_ID_BYTES)}"
        first = parent.models.active
        outputs = parent.outputs / self._within if parent.outputs is not None else None
        own = parent.make_tools(lambda: self.window, lambda: outputs)
        toolbox = parent.toolbox.renewed(own, without=NAME)
        # A person's wish to compact by hand is about their own conversation; nobody could do it here.
        self._loaded = parent.loaded.with_value("context.auto", "on", "a task")
        store.save_learned(first.facts.name, parent.window.store.learned(first.facts.name))
        session = store.create(directory="", model=first.facts.name)
        self.window = _TaskWindow(parent.window, store, session, self._loaded, first, toolbox)
        self._models = Fallbacks(first, parent.models.opened, self._use, self._hear)
        self._compactor = Compactor(self.window, first, self._hear, parent.models.opened, lambda _: None)
        approvals = parent.approvals.for_tools(toolbox)
        calls = Calls(self.window, toolbox, approvals, parent.redactor, self._hear, outputs, within=f"{self._within}/")
        self._turn = Turn(self.window, self._compactor, self._models, parent.spending, calls, lambda: None, self._hear)

    async def run(self, question: str) -> TurnFinished:
        self.window.append(Message("user", clean_text(question)))
        return await self._turn.run()

    async def close(self) -> None:
        # Also stops what would save the partial answer later, when the store is gone.
        self._turn.keep_partial()
        # Not the compactor's and the fallbacks' models: they are the conversation's.

    def _use(self, model: Model) -> None:
        self.window.use(self._loaded, model.facts)
        self._compactor.use(model)

    def _hear(self, event: Event) -> None:
        """What the conversation's listeners hear of it: its calls, a line each, and what a person should know."""
        match event:
            case ToolStarted() | ToolFinished():
                self._emit(msgspec.structs.replace(event, summary=f"task: {event.summary}"))
            case Notice(message):
                self._emit(Notice(f"task: {message}"))
            case ContextCompaction(phase="completed" | "failed" | "insufficient"):
                self._emit(Notice(f"task: {event.message}"))
            case RetryScheduled():
                self._emit(event)
            case _:
                pass


class _TaskWindow(Window):
    """A window whose usage is the parent's: recorded there when it is reported, and held against its limit."""

    def __init__(
        self, parent: Window, store: Store, session: Session, loaded: LoadedSettings, model: Model, toolbox: Toolbox
    ) -> None:
        self._parent = parent
        self.spent_tokens = 0
        """All that was read and written so far."""
        prompt = f"{parent.system_prompt}\n\n{PROMPT}".strip()
        super().__init__(store, session, loaded, model.facts, system_prompt=prompt, offer=partial(offered, toolbox))

    @property
    def spent(self) -> float:
        return self._parent.spent

    def record_beside(self, model: str, usage: Usage) -> None:
        super().record_beside(model, usage)
        self._charge(model, usage)

    def learn(self, raw_tokens: int, calls: int, head: int, usage: Usage, prompt_tokens: int | None = None) -> None:
        super().learn(raw_tokens, calls, head, usage, prompt_tokens)
        if prompt_tokens is None:
            # With several samplings it was recorded beside.
            self._charge(self.facts.name, usage)

    def _charge(self, model: str, usage: Usage) -> None:
        self.spent_tokens += usage.prompt_tokens + usage.completion_tokens
        self._parent.record_beside(model, usage)
