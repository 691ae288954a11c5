"""A conversation: the way in for the chat, for `nca run` and for programs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from nca.agent.background import Background
from nca.agent.compactor import CompactionOutcome, Compactor
from nca.agent.instructions import system_prompt
from nca.agent.memory import Note, add_note, append_day, load_notes, notes_file
from nca.agent.mentions import mentioned, with_attachments
from nca.agent.stats import ContextStats, stats_of
from nca.agent.turn import Turn
from nca.agent.window import Window
from nca.config.loaded import LoadedSettings
from nca.config.names import canonical
from nca.context.admission import file_token_budget
from nca.context.budget import Measurement
from nca.context.reminders import Reminders, told, with_reminders
from nca.context.view import Summary
from nca.errors import NcaError
from nca.events import ContextCompaction, ErrorRaised, Event, Listener, Notice, TurnFinished, TurnStarted
from nca.messages import Entry, Usage
from nca.models.choose import named, open_model
from nca.models.client import Model, ModelRequest
from nca.sessions.session import Session, SessionInfo
from nca.sessions.store import Store
from nca.sessions.views import CompactionRecord
from nca.tools.toolbox import Toolbox, default_toolbox


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
        toolbox: Toolbox,
        listener: Listener | None,
        prepares: bool,
    ) -> None:
        """For `open`, which programs call."""
        self.loaded = loaded
        self.model = model
        self.store = store
        self.directory = directory
        self._session = session
        self._toolbox = toolbox
        self._listeners: list[Listener] = [listener] if listener else []
        self._window = Window(
            store,
            session,
            loaded,
            model.facts,
            system_prompt=system_prompt(loaded.for_model(model.facts.name).settings, directory),
            tools=toolbox.definitions() if model.facts.can_use_tools else (),
        )
        shown = [entry.message for entry in self._window.history.visible()]
        self._reminders = Reminders(told(self._window.context.inject, shown))
        self._compactor = Compactor(self._window, model, self._emit, self._open_model, self._keep_trimmed)
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
    ) -> Conversation:
        """Open `session` (an id or its beginning), or a new one; what was recovered or assumed goes to the listener.

        `prepares`: compaction is prepared in the background after a turn at `context.idle_threshold`, for programs
        in which a person reads and types between the turns.
        Raises SessionNotFound, SessionLocked, StoreError, ConfigError.
        """
        opened = (
            store.open_session(session) if session else store.create(directory=str(directory), model=model.facts.name)
        )
        try:
            tools = toolbox or default_toolbox(directory)
            conversation = cls(loaded, store, opened, model, directory, tools, listener, prepares)
        except BaseException:
            opened.close()
            raise
        conversation._tell()
        if session and conversation._window.settings.session.restore == "text":
            restored = conversation._window.restore_text()
            if restored is not None:
                conversation._emit(Notice("Restored as text (session.restore); /context undo shows the steps again."))
        return conversation

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Hear all events from now on; call what is returned to stop."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def send(self, text: str, *, attachments: Sequence[Path] = ()) -> TurnFinished:
        """Run one turn. The text is on disk before the model is asked.

        Errors of the model's side end the turn with reason "failed" and an ErrorRaised event; cancelling the task
        ends it with reason "interrupted". In both cases this returns, and the session can go on.
        """
        turn = Turn(self._window, self._compactor, self.model, self._toolbox, self._emit, self._outputs())
        started = time.monotonic()
        try:
            if self._background is not None:
                await self._background.swap_in()
            self._enter(text, attachments)
            self._emit(TurnStarted(self.info.id, self.stats().turns))
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
        self._compactor.after_turn()
        if self._background is not None and finished.reason == "answered":
            self._background.consider()
        self._emit(finished)
        return finished

    def stats(self) -> ContextStats:
        return stats_of(self._window)

    def needs_compaction(self) -> bool:
        measured = self._window.measure()
        return measured.used_tokens >= self._window.budget.trigger_tokens(self._window.context)

    @property
    def is_preparing(self) -> bool:
        """A compaction is being prepared in the background."""
        return self._background is not None and self._background.is_running

    async def compact(self, focus: str = "") -> CompactionOutcome:
        """Compact now, even below the threshold. Raises ContextDoesNotFit."""
        await self._stop_preparing()
        return await self._compactor.compact("manual", focus=focus)

    async def preview(self, focus: str = "") -> CompactionOutcome:
        """What `compact` would do; nothing changes (a model may be asked for the summary)."""
        return await self._compactor.compact("manual", focus=focus, preview=True)

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

    @property
    def entries(self) -> Sequence[Entry]:
        """The whole log."""
        return tuple(self._window.history.entries)

    def effective_history(self) -> list[dict[str, Any]]:
        """The messages of the next request, OpenAI-shaped."""
        return self._window.request_messages()

    def next_request(self) -> ModelRequest:
        """How the next request begins: what is there of it before the person has typed."""
        history = self._window.history
        messages = self._window.request_messages() if history.head else []
        if not messages and self._window.system_prompt:
            messages = [{"role": "system", "content": self._window.system_prompt}]
        return ModelRequest(messages, self._window.tools)

    def notes(self) -> list[Note]:
        """What was noted for later sessions here, oldest first. Raises ConfigError where the file cannot be used."""
        return load_notes(notes_file(self._window.settings.memory, self.directory))

    def note(self, text: str) -> list[Note]:
        """Keep a note beyond this session, of all the newest `memory.max_notes`. Raises ConfigError."""
        settings = self._window.settings.memory
        path = notes_file(settings, self.directory)
        return add_note(path, text, at=time.time(), max_notes=settings.max_notes)

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
        changed = self.loaded.with_value(name, value, "set in this chat")
        self._window.use(changed, self.model.facts)
        self.loaded = changed
        known = canonical(name)
        return known.key if known else name

    def rename(self, name: str) -> None:
        self._session.rename(name)

    async def use_model(self, model: Model) -> None:
        """Go on with another model; a smaller window compacts before the next request."""
        await self._stop_preparing()
        self._window.tools = self._toolbox.definitions() if model.facts.can_use_tools else []
        self._window.use(self.loaded, model.facts)
        old, self.model = self.model, model
        self._compactor.model = model
        self._session.set_model(model.facts.name)
        self._tell_window()
        await old.close()

    async def close(self) -> None:
        """Let go of the session and the model; a session without messages leaves nothing behind."""
        await self._stop_preparing()
        if self._window.settings.memory.auto_compact_on_finish and self._window.history.head:
            with contextlib.suppress(NcaError):
                await self._compactor.compact("manual")
        await self._compactor.close()
        await self.model.close()
        session_id, is_empty = self._session.info.id, self._window.history.head == 0
        self._session.close()
        if is_empty:
            self.store.delete(session_id)

    def _enter(self, text: str, attachments: Sequence[Path]) -> None:
        """Append the person's message, unless it is the one that a failed turn left unanswered."""
        paths = [*mentioned(text, self.directory), *(path.resolve() for path in attachments)]
        measured = self._window.measure()
        share = self._window.context.admission.file_ratio
        budget = file_token_budget(
            self._window.budget.window_tokens,
            measured.used_tokens,
            self._window.budget.reserve_tokens,
            file_ratio=share,
        )
        raw_budget = int(budget / self._window.meter.calibration.ratio)
        message = with_attachments(text, paths, self.directory, raw_budget)
        history = self._window.history
        # What the view no longer shows (after a clear) is not waiting for an answer.
        last = history.entries[-1] if history.head >= history.view.tail else None
        if last is not None and last.message.role == "user" and last.message.text == message.text:
            return
        self._window.append(with_reminders(message, self._due_reminders(measured)))
        for part in message.attachments:
            if part.is_cut:
                kept = len(part.text.encode())
                self._emit(Notice(f"{part.path} was cut to fit: {kept:,} of {part.original_bytes:,} bytes."))

    def _due_reminders(self, measured: Measurement) -> tuple[str, ...]:
        users = sum(e.message.role == "user" and not e.message.is_synthetic for e in self._window.history.entries)
        used, usage = measured.used_tokens, measured.usage_ratio
        return self._reminders.due(self._window.context.inject, turn=users + 1, used_tokens=used, usage_ratio=usage)

    async def _stop_preparing(self) -> None:
        if self._background is not None:
            await self._background.close()

    def _keep(self, turn: Turn) -> None:
        """Keep what a failed turn has seen; a store that fails too must not hide the first error."""
        try:
            turn.keep_partial()
        except NcaError as error:
            self._emit(ErrorRaised(error.message, error.advice))

    def _keep_trimmed(self, text: str) -> None:
        """Trimmed turns go to the day's memory file; the compaction stands whether or not that can be written."""
        settings = self._window.settings.memory
        try:
            append_day(notes_file(settings, self.directory), text, date.today(), heading=self.info.title)
        except NcaError as error:
            self._emit(Notice(str(error)))

    def _outputs(self) -> Path | None:
        return self.store.path.parent / "outputs" / self.info.id if self.store.path else None

    async def _open_model(self, name: str) -> Model:
        settings = self.loaded.for_model(name).settings.model
        return await open_model(settings, named(name, settings, os.environ), self._emit)

    def _tell(self) -> None:
        for note in (*self.store.notes, *self.loaded.notes):
            self._emit(Notice(note))
        if self._session.recovered:
            self._emit(Notice("The last turn was cut off; what was there of it is kept and marked as interrupted."))
        self._tell_window()

    def _tell_window(self) -> None:
        facts = self.model.facts
        if facts.window_is_assumed and not self._window.settings.model.context_window:
            tokens = f"{self._window.budget.window_tokens:,}"
            self._emit(
                Notice(
                    f"The context window of {facts.name} is not known; {tokens} tokens are assumed"
                    " (/config model.context_window N says better)."
                )
            )

    def _emit(self, event: Event) -> None:
        if isinstance(event, ContextCompaction) and event.phase == "completed":
            usage = event.tokens_after / self._window.budget.budget_tokens
            self._reminders.observe(self._window.context.inject, used_tokens=event.tokens_after, usage_ratio=usage)
        for listener in tuple(self._listeners):
            listener(event)
