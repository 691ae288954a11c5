"""A conversation: the way in for the chat, for `nca run` and for programs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from nca.agent.approvals import Permits
from nca.agent.archive import Archive, Scope
from nca.agent.background import Background
from nca.agent.calls import Calls
from nca.agent.compactor import CompactionOutcome, Compactor
from nca.agent.fallbacks import Fallbacks
from nca.agent.instructions import Briefings
from nca.agent.manual_edits import ByHand
from nca.agent.mcp_updates import take_up
from nca.agent.memory import Memory
from nca.agent.permission_rules import KeptRules
from nca.agent.preview import Preview
from nca.agent.reply_checks import CUT_OFF
from nca.agent.spending import Spending
from nca.agent.stats import ContextStats, stats_of
from nca.agent.subtask import Parent, Subtasks
from nca.agent.tool_selection import offered, own_toolbox
from nca.agent.turn import Turn
from nca.agent.user_input import Incoming
from nca.agent.window import Window
from nca.config.loaded import LoadedSettings
from nca.config.names import canonical
from nca.context.log import LogSoFar
from nca.context.view import Range, Summary, View
from nca.errors import ConfigError, NcaError, UsageError
from nca.events import ErrorRaised, Event, Listener, Notice, TurnFinished, TurnStarted
from nca.messages import Entry, Usage
from nca.models.api_keys import known_secrets
from nca.models.catalog import ModelFacts
from nca.models.choose import named, open_model
from nca.models.client import Model, ModelRequest
from nca.redact import Redactor
from nca.sessions.results import Hit
from nca.sessions.session import Kind, Session, SessionInfo
from nca.sessions.store import Store
from nca.sessions.views import CompactionRecord
from nca.tools.files.read_files import FilesRead
from nca.tools.mcp.servers import Servers
from nca.tools.toolbox import Toolbox


class Conversation:
    """One session, its model and its tools. Use from one asyncio loop; one turn at a time.

    Events of every turn and compaction go to the listeners; nothing here prints.
    """

    def __init__(
        self,
        loaded: LoadedSettings,
        store: Store,
        session: Session,
        model: Model,
        directory: Path,
        toolbox: Toolbox | None,
        listener: Listener | None,
        prepares: bool,
        told: set[str] | None,
    ) -> None:
        """For `open`, which programs call."""
        self.loaded = loaded
        self.store = store
        self.directory = directory
        self._session = session
        self.memory = Memory(lambda: self._window.settings.memory, directory)
        self.archive = Archive(store, session, lambda: self.memory.file)
        self._outputs = store.originals_of(session.info.id)
        settings = loaded.for_model(model.facts.name).settings
        self._briefings = Briefings(directory, has_skills=toolbox is None)
        briefing = self._briefings.of(settings, model.facts)
        self.told = set[str]() if told is None else told
        """Notices that the person has had: nothing is told twice in a chat."""
        files_read = FilesRead()
        self._own_tools = partial(own_toolbox, directory, self.archive, skills=briefing.skills)
        self._toolbox = toolbox or self._own_tools(
            lambda: self._window, lambda: self._outputs, files_read=files_read, subtasks=Subtasks(self._as_parent)
        )
        self._listeners: list[Listener] = [listener] if listener else []
        offer = partial(offered, self._toolbox)
        self._window: Window = Window(store, session, loaded, model.facts, system_prompt=briefing.text, offer=offer)
        self._redactor = Redactor(known_secrets(os.environ))
        self._incoming = Incoming(self._window, directory, self._redactor, self._emit, files_read)
        self.rules = KeptRules(lambda: self.loaded, self._use)
        """Permission rules that outlive the chat."""
        self.permits = Permits(self._toolbox, directory, lambda: self._window.settings, self.rules.keep, self._emit)
        """What tools may do here, and who is asked."""
        self.said_meanwhile: Callable[[], Sequence[str]] = tuple
        """What the person has typed while a turn runs; asked between two steps, and then it belongs to the turn."""
        self._compactor = Compactor(self._window, model, self._emit, self._open_model, self._keep_trimmed)
        self._models = Fallbacks(model, self._open_model, self._answer_with, self._emit)
        self.spending = Spending(self._window, self._emit)
        self.servers = Servers(settings.mcp, directory, lambda: self._window.facts.can_see, self._emit)
        self.by_hand = ByHand(self._window)
        """Pins, and originals put back into the view."""
        self._background = Background(self._window, self._compactor) if prepares else None

    @classmethod
    def open(
        cls,
        loaded: LoadedSettings,
        *,
        store: Store,
        model: Model,
        directory: Path,
        session: str | None = None,
        listener: Listener | None = None,
        toolbox: Toolbox | None = None,
        prepares: bool = False,
        read_only: bool = False,
        kind: Kind = "chat",
        told: set[str] | None = None,
    ) -> Conversation:
        """Open `session` (an id or its beginning), or a new one; what was recovered or assumed goes to the listener.

        `prepares`: compaction is prepared in the background after a turn at `context.idle_threshold`, for programs
        in which a person reads and types between the turns.
        `read_only`: `session` as it is now, while another process may write it; what would change it raises StoreError.
        `kind`: what makes a new session; an older one that is gone on with in a chat is a chat.
        `told`: the one of the conversation before, in the same chat.
        Raises SessionNotFound, SessionLocked, StoreError, ConfigError.
        """
        opened = (
            store.open_session(session, read_only=read_only)
            if session
            else store.create(directory=str(directory), model=model.facts.name, kind=kind)
        )
        try:
            if kind == "chat":
                opened.become_chat()
            prepares = prepares and not read_only
            conversation = cls(loaded, store, opened, model, directory, toolbox, listener, prepares, told)
        except BaseException:
            opened.close()
            raise
        conversation._tell()
        if opened.recovered:
            conversation._emit(Notice(CUT_OFF))
        if session and not read_only and conversation._window.settings.session.restore == "text":
            restored = conversation._window.restore_text()
            if restored is not None:
                conversation._emit(Notice("Restored as text (session.restore); /context undo shows the steps again."))
        return conversation

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Hear all events from now on; call what is returned to stop."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def send(self, text: str, *, attachments: Sequence[Path] = (), is_own: bool = True) -> TurnFinished:
        """Run one turn. The text is on disk before the model is asked.

        Errors of the model's side end the turn with reason "failed" and an ErrorRaised event; cancelling the task
        ends it with reason "interrupted". In both cases this returns, and the session can go on. A blank text without
        attachments is refused in the same way, and nothing is stored. What a text that is not the person's own (a
        server's prompt) names with @ does not come along.
        """
        parts = self._window, self._compactor, self._models, self.spending
        calls = Calls(self._window, self._toolbox, self.permits, self._redactor, self._emit, self._outputs)
        turn = Turn(*parts, calls, lambda: self._incoming.enter_meanwhile(self.said_meanwhile()), self._emit)
        started = time.monotonic()
        self.spending.begin_turn()
        try:
            if not text.strip() and not attachments:
                raise UsageError("The message is empty; nothing was sent.")
            self._session.refuse_reader()
            if self._background is not None:
                await self._background.swap_in()
            await take_up(self.servers, text if is_own else "", self._toolbox, self._window, self._incoming)
            self._incoming.enter(text, attachments, is_own=is_own)
            self._emit(TurnStarted(self.info.id, self._window.history.turns))
            finished = await turn.run()
        except NcaError as error:
            self._keep(turn)
            self._emit(ErrorRaised(error.message, error.advice, error.exit_code))
            finished = TurnFinished("failed", turn.text, turn.steps, time.monotonic() - started)
        except BaseException as error:
            # Cancelled, or a fault of our own: either way the log is closed properly first.
            finished = turn.interrupt(started)
            if not isinstance(error, asyncio.CancelledError | KeyboardInterrupt):
                raise
        if self._background is not None and finished.reason == "answered":
            self._background.consider()
        self._compactor.ladder.after_turn(is_preparing=self.is_preparing)
        finished = msgspec.structs.replace(finished, cost=self.spending.of_turn)
        self._emit(finished)
        return finished

    @property
    def model(self) -> Model:
        """The chat's own model; while its provider is down another one may answer (`model.fallbacks`)."""
        return self._models.first

    def stats(self, *, with_details: bool = True) -> ContextStats:
        """`with_details=False` leaves out the parts and what weighs, which costs a look at all that is shown."""
        project = self._briefings.of(self._window.settings, self._window.facts).project
        return stats_of(self._window, self._background, project=project, with_details=with_details)

    @property
    def is_read_only(self) -> bool:
        """The session was opened for reading: it can be looked at and searched, and nothing can be sent."""
        return self._session.is_read_only

    def needs_compaction(self) -> bool:
        return self._window.measure().used_tokens >= self._window.budget.trigger_tokens(self._window.context)

    @property
    def is_preparing(self) -> bool:
        """A compaction is being prepared in the background."""
        return self._background is not None and self._background.is_running

    async def compact(self, focus: str = "", only: Range | None = None) -> CompactionOutcome:
        """Compact now, or `only` these messages. Raises ContextDoesNotFit; StoreError for a reader."""
        self._session.refuse_reader()
        await self._stop_preparing()
        return await self._compactor.compact("manual", focus=focus, only=only)

    async def preview(self, focus: str = "", only: Range | None = None) -> Preview:
        """What `compact` would do; nothing changes (a model may be asked for the summary)."""
        await self._stop_preparing()
        return await self._compactor.preview(focus, only)

    def accept(self, preview: Preview) -> CompactionOutcome:
        """Put a preview in force. Raises UsageError where the view has changed since, or it would save nothing."""
        return self._compactor.accept(preview)

    def undo(self) -> CompactionRecord | None:
        """Back to the exact view before the last compaction; later messages stay. None where there is none."""
        return self._window.undo()

    def redo(self) -> CompactionRecord | None:
        return self._window.redo()

    def clear(self) -> CompactionRecord | None:
        """An empty view; the log keeps everything, and `undo` brings it back. None where it is empty already."""
        return self._window.clear()

    def history(self) -> list[CompactionRecord]:
        return self._session.compactions()

    def summaries(self) -> list[Summary]:
        """The summaries that the model sees now, oldest first."""
        return [item for item in self._window.history.view.items if isinstance(item, Summary)]

    def all_summaries(self) -> list[Summary]:
        """Every summary there ever was, oldest first, those that later ones took over too."""
        return self._session.summaries()

    @property
    def view(self) -> View:
        """What the model sees of the log."""
        return self._window.history.view

    @property
    def entries(self) -> Sequence[Entry]:
        """The whole log, as it is now; what the view does not show is read where it is asked for."""
        return LogSoFar(self._window.history.entries)

    def search(self, question: str, *, scope: Scope = "session", limit: int = 10) -> list[Hit]:
        """What of the whole log answers a question, best first, compacted away or not; notes come last.

        Any text is a question; `scope="all"` looks into every session of the store. Raises StoreError.
        """
        return self.archive.search(question, scope=scope, limit=limit)

    def effective_history(self) -> list[dict[str, Any]]:
        """The messages of the next request, OpenAI-shaped."""
        return self._window.request_messages()

    def next_request(self) -> ModelRequest:
        """How the next request begins: what is there of it before the person has typed."""
        return ModelRequest(self._window.next_messages(), self._window.tools)

    def share(self, name: str, text: str) -> None:
        """Have a text come along with the next message, such as what a command said. Raises StoreError for a reader."""
        self._session.refuse_reader()
        self._incoming.share(name, text)

    def costs(self) -> Usage:
        """What the session used so far, as reported."""
        return self._session.totals()

    @property
    def info(self) -> SessionInfo:
        return self._session.info

    def set(self, name: str, value: Any) -> str:
        """Change a setting for this session, by its own or a seed's name; returns the canonical name.

        Raises ConfigError, and nothing has changed.
        """
        before = self.loaded
        self._use(before.with_value(name, value, "set in this chat"))
        known = canonical(name)
        key = known.key if known else name
        refusal = self._window.provider_side_refusal
        if refusal and key == "context.provider_side":
            self._use(before)
            raise ConfigError(f"{key}: {refusal}.", advice="nca compacts here, as before.")
        return key

    def file_changed(self, loaded: LoadedSettings) -> None:
        """The project's file says something else now: where values come from changed, and no value."""
        self.loaded = loaded

    def rename(self, name: str) -> None:
        self._session.rename(name)

    async def use_model(self, model: Model) -> None:
        """Go on with another model; a smaller window cuts instructions and tools, and compacts before it is asked."""
        await self._stop_preparing()
        old = self._models.replace_first(model)
        if not self.is_read_only:
            self._session.set_model(model.facts.name)
        self._tell()
        # What is due with this model's window is said now and not only when the person has typed.
        self._compactor.ladder.after_turn()
        await old.close()

    async def close(self, *, keeps_model: bool = False) -> None:
        """Let go of the session and, unless another conversation `keeps_model`, of the model, also when cancelled.

        A session without messages leaves nothing behind.
        """
        await self._stop_preparing()
        try:
            await self.servers.close()
            finishes = self._window.settings.memory.auto_compact_on_finish and not self.is_read_only
            if finishes and self._window.history.head:
                with contextlib.suppress(NcaError):
                    await self._compactor.compact("manual")
        finally:
            await self._compactor.close()
            await self._models.close(keeps_first=keeps_model)
            session_id, is_empty = self.info.id, self._window.history.head == 0
            self._session.close()
        if is_empty and not self.is_read_only:
            self.store.delete(session_id)

    def _answer_with(self, model: Model) -> None:
        """Ask this model from now on, in its own window. Raises ConfigError where that makes no budget."""
        self._use(self.loaded, model.facts)
        self._compactor.use(model)

    def _as_parent(self) -> Parent:
        shared = self._models, self.spending, self.permits, self._redactor, self._emit, self._outputs
        return Parent(self.loaded, self._window, self._toolbox, *shared, self._own_tools)

    def _use(self, loaded: LoadedSettings, facts: ModelFacts | None = None) -> None:
        facts = facts or self._models.active.facts
        self._window.use(loaded, facts, self._briefings.of(loaded.for_model(facts.name).settings, facts).text)
        self.loaded = loaded

    async def _stop_preparing(self) -> None:
        if self._background is not None:
            await self._background.close()

    def _keep(self, turn: Turn) -> None:
        """Keep what a failed turn has seen; a store that fails too must not hide the first error."""
        if self.is_read_only:
            return
        try:
            turn.keep_partial()
        except NcaError as error:
            self._emit(ErrorRaised(error.message, error.advice))

    def _keep_trimmed(self, text: str) -> None:
        """Trimmed turns go to the day's memory file; the compaction stands whether or not that can be written."""
        if problem := self.memory.keep_trimmed(text, self.info.title):
            self._emit(Notice(problem))

    async def _open_model(self, name: str) -> Model:
        settings = self.loaded.for_model(name).settings.model
        return await open_model(settings, named(name, settings, os.environ), self._emit)

    def _tell(self) -> None:
        briefing = self._briefings.of(self._window.settings, self._window.facts)
        for text in (*self.store.notes, *self.loaded.notes, *briefing.notices, *self._window.notices()):
            if text not in self.told:
                self.told.add(text)
                self._emit(Notice(text))

    def _emit(self, event: Event) -> None:
        self._incoming.hear(event)
        for listener in tuple(self._listeners):
            listener(event)
