"""Answer a question in a context of its own. Only the answer comes back.

A subtask is the same turn loop over a session in memory. It has the conversation's model, tools (but not the task
tool), permissions and limits. An agent (a file, see nca.tools.skills) adds its text, and may have fewer tools
and a model of its own (`agent.models`). The cost is recorded in the conversation's session as it is spent. The log is
gone once it has answered.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from nca import events
from nca.agent.compactor import Compactor
from nca.agent.fallbacks import Fallbacks
from nca.agent.instructions import SystemPrompt
from nca.agent.parts import Parts
from nca.agent.project_instructions import NestedInstructions
from nca.agent.state import SessionState
from nca.agent.tool_selection import own_toolbox
from nca.agent.turn import Turn
from nca.agent.user_input import TaskInput
from nca.agent.window import Window
from nca.errors import NcaError
from nca.humanize import counted
from nca.messages import Message, Usage, clean_text
from nca.models.model import Model
from nca.sessions.store import Store
from nca.sessions.usage import BESIDE as BESIDE_SEQ
from nca.tools.files.reading_rules import FilesRead
from nca.tools.planning import TASK, CompactionWish
from nca.tools.skills import AgentFile
from nca.tools.tool import ToolError, ToolOutcome
from nca.tools.toolbox import Toolbox, ToolContext

PROMPT = (
    "## This conversation\n"
    "You answer one question for another assistant, which sees nothing of your work but your last message. Nobody"
    " can be asked. Make that message short and complete: what was found, where (paths, lines), what was not found."
)
_ENDINGS = {
    "max_steps": "[the task reached its limit of {steps} steps]",
    "stuck": "[the task was stopped: it made the same calls with the same results again and again]",
    "length": "[the task was stopped: two answers in a row reached their length limit]",
    "content_filter": "[the provider's content filter ended the answer]",
}
_ID_BYTES = 4


class Subtasks:
    """Answers the questions of one conversation's task tool.

    A task runs with the conversation's own parts, and the toolbox with this tool is one of them: so `serve` is called
    when all of them are built.
    """

    _parent: Parts

    def __init__(self, agents: Sequence[AgentFile] = ()) -> None:
        self.agents = {agent.about.name: agent for agent in agents}

    def serve(self, parent: Parts) -> None:
        """Answer for the conversation with these parts."""
        self._parent = parent

    async def answer(self, question: str, agent: str) -> ToolOutcome:
        """The answer, for the model that asked. Raises ToolError if there is none; if cancelled, it just ends."""
        found = self.agents.get(agent)
        text = await asyncio.to_thread(found.text) if found is not None else ""
        model = await _model_of(self._parent, agent)
        with Store.open(None) as store:
            task = _Task(self._parent, store, model, found, text)
            try:
                finished = await task.run(question)
            except NcaError as error:
                raise ToolError(f"the task failed: {error.message}") from error
            finally:
                task.close()
        return _outcome(finished, task.window.spent_tokens)


async def _model_of(parent: Parts, agent: str) -> Model:
    """The model that the settings name for an agent; the conversation's where there is none, or it does not open."""
    models = dict(one.split("=", 1) for one in parent.window.settings.agent.models)
    if agent in models:
        try:
            return await parent.models.open(models[agent])
        except NcaError as error:
            parent.emit(
                events.Notice(f"The agent {agent} works with {parent.models.active.facts.name}: {error.message}")
            )
    return parent.models.active


def _outcome(finished: events.TurnFinished, tokens: int) -> ToolOutcome:
    ending = _ENDINGS.get(finished.reason, "").format(steps=finished.steps)
    text = "\n".join(part for part in (finished.text.strip(), ending) if part)
    is_error = not finished.text.strip()
    summary = f"{counted(finished.steps, 'step')}, {tokens:,} tokens"
    return ToolOutcome(text or "[the task ended without an answer]", is_error=is_error, summary=summary)


class _Task:
    """One subtask while it runs."""

    def __init__(self, parent: Parts, store: Store, first: Model, agent: AgentFile | None, text: str) -> None:
        """agent: None for none. text: the agent's."""
        self._emit, within = parent.emit, f"task-{secrets.token_hex(_ID_BYTES)}"
        # Compacting by hand (context.auto = off) is for the person's own conversation; nobody could do it here.
        loaded = parent.window.loaded.with_value("context.auto", "on", "a task")
        store.save_learned(first.facts.name, parent.window.store.learned(first.facts.name))
        session, is_chat = store.create(directory="", model=first.facts.name), parent.window.state.is_chat
        state = SessionState(store, session, loaded, first.facts, is_chat=is_chat)
        outputs = parent.outputs / within if parent.outputs is not None else None
        wish, recorder, skills = CompactionWish(), parent.files.recorder, parent.window.prompt.skills
        read = (parent.outputs,) if parent.outputs is not None else ()
        seen = FilesRead()
        given = ToolContext(
            files_read=seen, recorder=recorder, jobs=parent.jobs, skills=skills, wish=wish, readable=lambda: read
        )
        own = own_toolbox(state, parent.directory, parent.archive, outputs, given)
        toolbox = parent.toolbox.renewed(own, has=lambda name: name != TASK and (agent is None or agent.has(name)))
        self.window = _TaskWindow(parent.window, state, toolbox, text)
        models = Fallbacks(first, parent.models.open, self.window.use_model, self._hear)
        has_own, reading = state.settings.agent.use_claude_home, state.reading(parent.directory)
        parts = replace(
            parent,
            window=self.window,
            toolbox=toolbox,
            models=models,
            compactor=Compactor(self.window, models, self._hear, wish=wish),
            outputs=outputs,
            nested=NestedInstructions(parent.directory, parent.redactor, reading, has_own=has_own),
            user_input=TaskInput(self.window, parent.hooks, within, agent.about.name if agent is not None else ""),
            emit=self._hear,
        )
        self._turn = Turn(parts, f"{within}/")

    async def run(self, question: str) -> events.TurnFinished:
        self.window.append(Message("user", clean_text(question), source="model"))
        return await self._turn.run()

    def close(self) -> None:
        """Stop what would save the partial answer later, when the store is gone. The models are the conversation's."""
        self._turn.keep_partial()

    def _hear(self, event: events.Event) -> None:
        """Pass on to the conversation's listeners: the calls, one line each, and what a person should know."""
        match event:
            case events.ToolStarted():
                self._emit(msgspec.structs.replace(event, summary=f"task: {event.summary}"))
            case events.Notice(message):
                self._emit(events.Notice(f"task: {message}"))
            case events.ContextCompaction(phase="completed" | "failed" | "insufficient"):
                self._emit(events.Notice(f"task: {event.message}"))
            case events.ToolFinished() | events.RetryScheduled() | events.ToolOutput():
                self._emit(event)
            case _:
                pass


class _TaskWindow(Window):
    """A window that charges its reported usage to the parent, where it counts against the limit."""

    def __init__(self, parent: Window, state: SessionState, toolbox: Toolbox, agent: str) -> None:
        self._parent = parent
        self.spent_tokens = 0
        """All that was read and written so far."""
        prompt = SystemPrompt(f"{parent.prompt.text}\n\n{PROMPT}\n\n{agent}".strip())
        super().__init__(state, toolbox, lambda *_: prompt)

    @property
    def spent(self) -> float:
        return self._parent.spent

    def record_beside(self, model: str, usage: Usage, *, seq: int = BESIDE_SEQ) -> None:
        super().record_beside(model, usage, seq=seq)
        self._charge(model, usage, seq)

    def learn(self, raw_tokens: int, calls: int, head: int, usage: Usage, prompt_tokens: int | None = None) -> None:
        super().learn(raw_tokens, calls, head, usage, prompt_tokens)
        if prompt_tokens is None:
            # With several samplings it was recorded beside.
            self._charge(self.facts.name, usage)

    def _charge(self, model: str, usage: Usage, seq: int = BESIDE_SEQ) -> None:
        self.spent_tokens += usage.prompt_tokens + usage.completion_tokens
        self._parent.record_beside(model, usage, seq=seq)
