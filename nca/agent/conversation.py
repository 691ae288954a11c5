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

from nca.agent.approvals import Approvals, Nobody, Person
from nca.agent.archive import Archive
from nca.agent.background import Background
from nca.agent.calls import Calls
from nca.agent.compactor import Compactor
from nca.agent.context import Context
from nca.agent.fallbacks import Fallbacks
from nca.agent.instructions import Briefings
from nca.agent.mcp_updates import take_up
from nca.agent.memory import Memory
from nca.agent.permission_rules import KeptRules
from nca.agent.reply_checks import CUT_OFF
from nca.agent.spending import Spending
from nca.agent.subtask import Parent, Subtasks
from nca.agent.tool_selection import offered, own_toolbox
from nca.agent.turn import Turn
from nca.agent.user_input import Incoming
from nca.agent.window import Window
from nca.config.loaded import LoadedSettings
from nca.config.names import canonical
from nca.errors import ConfigError, NcaError, UsageError
from nca.events import ErrorRaised, Event, Listener, Notice, TurnFinished, TurnStarted
from nca.models.api_keys import known_secrets
from nca.models.catalog import ModelFacts
from nca.models.choose import named, open_model
from nca.models.client import Model
from nca.redact import Redactor
from nca.sessions.session import Kind, Session
from nca.sessions.store import Store
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
        person: Person,
    ) -> None:
        """For `open`, which programs call."""
        self.loaded = loaded
        self.store = store
        self.directory = directory
        self.session = session
        self.memory = Memory(lambda: self._window.settings.memory, directory)
        archive = Archive(store, session, lambda: self.memory.file)
        self._outputs = store.outputs_folder(session.info.id)
        settings = loaded.for_model(model.facts.name).settings
        self._briefings = Briefings(directory, has_skills=toolbox is None)
        briefing = self._briefings.of(settings, model.facts)
        self.told = set[str]() if told is None else told
        """Notices that the person has had: nothing is told twice in a chat."""
        files_read = FilesRead()
        self._own_tools = partial(own_toolbox, directory, archive, skills=briefing.skills)
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
        self.approvals = Approvals(
            self._toolbox, directory, lambda: self._window.settings, self.rules.keep, self._emit, person
        )
        """What tools may do here, and who is asked."""
        self._compactor = Compactor(self._window, model, self._emit, self._open_model, self._keep_trimmed)
        self._models = Fallbacks(model, self._open_model, self._answer_with, self._emit)
        self.spending = Spending(self._window, self._emit)
        self.servers = Servers(settings.mcp, directory, lambda: self._window.facts.can_see, self._emit)
        self._background = Background(self._window, self._compactor) if prepares else None
        self.context = Context(self._window, self._compactor, archive, self._briefings, self._background)

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
        person: Person | None = None,
    ) -> Conversation:
        """Open `session` (an id or its beginning), or a new one; what was recovered or assumed goes to the listener.

        `prepares`: compaction is prepared in the background after a turn at `context.idle_threshold`, for programs
        in which a person reads and types between the turns.
        `read_only`: `session` as it is now, while another process may write it; what would change it raises StoreError.
        `kind`: what makes a new session; an older one that is gone on with in a chat is a chat.
        `told`: the one of the conversation before, in the same chat.
        `person`: who approves calls and types ahead; without one, nothing that needs an approval runs.
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
            conversation = cls(
                loaded, store, opened, model, directory, toolbox, listener, prepares, told, person or Nobody()
            )
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
        self.approvals.unanswered.clear()
        parts = self._window, self._compactor, self._models, self.spending
        calls = Calls(self._window, self._toolbox, self.approvals, self._redactor, self._emit, self._outputs)
        turn = Turn(
            *parts, calls, lambda: self._incoming.enter_meanwhile(self.approvals.person.typed_ahead()), self._emit
        )
        started = time.monotonic()
        self.spending.begin_turn()
        try:
            if not text.strip() and not attachments:
                raise UsageError("The message is empty; nothing was sent.")
            self.session.refuse_reader()
            if self._background is not None:
                await self._background.swap_in()
            await take_up(self.servers, text if is_own else "", self._toolbox, self._window, self._incoming)
            self._incoming.enter(text, attachments, is_own=is_own)
            self._emit(TurnStarted(self.session.info.id, self._window.history.turns))
            finished = await turn.run()
        except NcaError as error:
            self._keep(turn)
            self._emit(ErrorRaised(error.message, error.advice, error.exit_code))
            finished = TurnFinished(
                "failed", turn.text, turn.steps, time.monotonic() - started, exit_code=error.exit_code
            )
        except BaseException as error:
            # Cancelled, or a fault of our own: either way the log is closed properly first.
            finished = turn.interrupt(started)
            if not isinstance(error, asyncio.CancelledError | KeyboardInterrupt):
                raise
        if self._background is not None and finished.reason == "answered":
            self._background.consider()
        self._compactor.after_turn(is_preparing=self.context.is_preparing)
        is_unanswered = bool(self.approvals.unanswered)
        finished = msgspec.structs.replace(
            finished,
            cost=self.spending.of_turn,
            exit_code=finished.exit_code or int(is_unanswered),
            is_unanswered=is_unanswered,
        )
        self._emit(finished)
        return finished

    @property
    def model(self) -> Model:
        """The chat's own model; while its provider is down another one may answer (`model.fallbacks`)."""
        return self._models.first

    def share(self, name: str, text: str) -> None:
        """Have a text come along with the next message, such as what a command said. Raises StoreError for a reader."""
        self.session.refuse_reader()
        self._incoming.share(name, text)

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

    async def use_model(self, model: Model) -> None:
        """Go on with another model; a smaller window cuts instructions and tools, and compacts before it is asked."""
        await self.context.stop_preparing()
        old = self._models.replace_first(model)
        if not self.session.is_read_only:
            self.session.set_model(model.facts.name)
        self._tell()
        # What is due with this model's window is said now and not only when the person has typed.
        self._compactor.after_turn()
        await old.close()

    async def close(self, *, keeps_model: bool = False) -> None:
        """Let go of the session and, unless another conversation `keeps_model`, of the model, also when cancelled.

        A session without messages leaves nothing behind.
        """
        await self.context.stop_preparing()
        try:
            await self.servers.close()
            finishes = self._window.settings.memory.auto_compact_on_finish and not self.session.is_read_only
            if finishes and self._window.history.head:
                with contextlib.suppress(NcaError):
                    await self._compactor.compact("manual")
        finally:
            await self._compactor.close()
            await self._models.close(keeps_first=keeps_model)
            session_id, is_empty = self.session.info.id, self._window.history.head == 0
            self.session.close()
        if is_empty and not self.session.is_read_only:
            self.store.delete(session_id)

    def _answer_with(self, model: Model) -> None:
        """Ask this model from now on, in its own window. Raises ConfigError where that makes no budget."""
        self._use(self.loaded, model.facts)
        self._compactor.use(model)

    def _as_parent(self) -> Parent:
        shared = self._models, self.spending, self.approvals, self._redactor, self._emit, self._outputs
        return Parent(self.loaded, self._window, self._toolbox, *shared, self._own_tools)

    def _use(self, loaded: LoadedSettings, facts: ModelFacts | None = None) -> None:
        facts = facts or self._models.active.facts
        self._window.use(loaded, facts, self._briefings.of(loaded.for_model(facts.name).settings, facts).text)
        self.loaded = loaded

    def _keep(self, turn: Turn) -> None:
        """Keep what a failed turn has seen; a store that fails too must not hide the first error."""
        if self.session.is_read_only:
            return
        try:
            turn.keep_partial()
        except NcaError as error:
            self._emit(ErrorRaised(error.message, error.advice))

    def _keep_trimmed(self, text: str) -> None:
        """Trimmed turns go to the day's memory file; the compaction stands whether or not that can be written."""
        if problem := self.memory.keep_trimmed(text, self.session.info.title):
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
