"""A conversation: the way in for the chat, for `nca run` and for programs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec

from nca.agent import mentions, reply_checks
from nca.agent.approvals import Nobody, Person
from nca.agent.assembly import Given, assemble, check_argument, check_arguments, secrets_of
from nca.agent.beside import SideQuestions
from nca.agent.context import Context
from nca.agent.mcp import join_servers
from nca.agent.parts import ConversationParts, OneTurn
from nca.agent.rewinding import Rewinds, progress_told
from nca.agent.turn import Turn
from nca.config.document import read_folder
from nca.config.loaded import LoadedSettings
from nca.config.overrides import canonical
from nca.config.paths import PathLike, read_paths
from nca.errors import ConfigError, ContextDoesNotFit, NcaError, StoreError, UsageError
from nca.events import ErrorRaised, Listener, Listeners, Notice, TurnFinished, TurnStarted
from nca.file_history.restore import Watch
from nca.humanize import UsualNotice
from nca.messages import Message
from nca.models.model import Model
from nca.sessions.session import Kind
from nca.sessions.store import Store
from nca.telemetry import telemetry
from nca.tools.tool import Tool
from nca.tools.toolbox import Toolbox
from nca.wire import read_words
from nca.words import Source, Words, text_of


class Conversation:
    """One session, its model and its tools. Use from one asyncio loop; one turn at a time.

    `async with` closes it at the end of the block.

    Events of every turn and compaction go to the listeners; nothing here prints.

    context    stats, compaction, undo, pins, search
    rewinds    going back to before a message, and forward again
    beside     questions that are not part of the conversation
    session    the stored session: log, views, usage, info
    approvals  what tools may do, and who is asked
    memory     notes for later sessions
    servers    the MCP servers
    jobs       commands in the background
    spending   what the session costs
    files      what the session changed in the directory, and the way back
    """

    def __init__(
        self, parts: ConversationParts, listeners: Listeners, notified: set[str], *, has_own_tools: bool, kind: Kind
    ) -> None:
        """For `open`, which programs call."""
        self._parts, self._window, self._compactor = parts, parts.window, parts.compactor
        self.store, self.directory, self.session = self._window.store, parts.directory, self._window.session
        self.notified = notified
        """Notices that the person has had: none is shown twice in a chat."""
        self._listeners, self._emit, self._has_own_tools = listeners, listeners.emit, has_own_tools
        self.user_input, self._hooks = parts.user_input, parts.hooks
        self._one_turn, self._kind, self.beside = OneTurn(), kind, SideQuestions(parts)
        self.memory, self.servers, self.jobs, self.files = parts.memory, parts.servers, parts.jobs, parts.files
        self.approvals, self.spending, self.toolbox = parts.approvals, parts.spending, parts.toolbox
        self.context = Context(self._window, self._compactor, parts.archive)
        self.rewinds = Rewinds(self._window, self._compactor, self.user_input, self.files, self.jobs)
        if self._hooks.are_any:
            listeners.subscribe(self._hooks.hear)

    @classmethod
    def open(
        cls,
        loaded: LoadedSettings,
        *,
        store: Store,
        model: Model,
        directory: PathLike = ".",
        session: str | None = None,
        listener: Listener | None = None,
        toolbox: Toolbox | None = None,
        tools: Sequence[Tool] = (),
        prepares: bool = False,
        sees_all_sessions: bool = False,
        read_only: bool = False,
        kind: Kind = "chat",
        notified: set[str] | None = None,
        person: Person | None = None,
    ) -> Conversation:
        """Open `session` (an id or its beginning), or a new one. Recoveries and assumptions go to the listener.

        toolbox    the only tools; None: nca's own
        tools      more tools, beside these
        prepares   prepare compactions in the background after a turn, for programs in which a person reads and types
                   between the turns (`context.idle_threshold`)
        sees_all_sessions  the model's recall may search and read all sessions of the store, as in the chat, where they
                   are one person's
        read_only  open `session` while another process may write it; changing it raises StoreError
        kind       what makes a new session; an older one becomes a chat with the first message in one
        notified   `notified` of the conversation before, in the same chat
        person     approves calls and types ahead; without a person, no call that needs an approval runs, and a message
                   that is larger than the window is refused where `context.fit` is `auto`
        Raises UsageError for a wrong argument, SessionNotFound, SessionLocked, StoreError, ConfigError.
        """
        check_arguments(loaded, store, model, listener, toolbox, tools, person, session=session, kind=kind)
        directory = read_folder(directory, "directory")
        opened = (
            store.open_session(session, read_only=read_only)
            if session
            else store.create(directory=str(directory), model=model.facts.name, kind=kind)
        )
        with contextlib.ExitStack() as on_error:
            on_error.callback(opened.close)
            receiver = telemetry(os.environ, opened.info.id)
            listeners = Listeners(*(one for one in (listener, receiver.hear) if one is not None))
            given = Given(toolbox, tools, prepares=prepares and not read_only, sees_all=sees_all_sessions)
            parts = assemble(loaded, store, opened, model, directory, person or Nobody(), listeners.emit, given)
            notified = set() if notified is None else notified
            conversation = cls(parts, listeners, notified, has_own_tools=toolbox is None, kind=kind)
            on_error.pop_all()
        conversation._notify(receiver.problems)
        conversation._begin(read_only=read_only, is_resumed=bool(session))
        return conversation

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _begin(self, *, read_only: bool, is_resumed: bool) -> None:
        """Finish interrupted work, and report recoveries."""
        if self.session.recovered:
            self._emit(Notice(reply_checks.CUT_OFF))
        if not read_only:
            self._finish_interrupted()
            for number in self.user_input.gone_jobs():
                ended = "has ended, at the latest when the session was closed"
                self._emit(Notice(f"Job {number} of this session {ended}."))
        if self.session.views.is_damaged:
            self._emit(Notice(reply_checks.VIEW_DAMAGED))
        restores = is_resumed and not read_only and self.loaded.settings.session.restore == "text"
        if restores and self.context.restore_text() is not None:
            self._emit(Notice("Restored as text (session.restore); /context undo shows the steps again."))

    def _finish_interrupted(self) -> None:
        """Finish a rewind that a crash cut off, files and chat, before anybody acts in the folder."""
        self.files.recorder.begin(Watch(progress_told(self._emit)))
        self._say_of_files()
        if told := self.rewinds.finish_interrupted():
            self._emit(Notice(told))

    def _say_of_files(self) -> None:
        for notice in self.files.recorder.take_notices():
            self._emit(Notice(notice))

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Hear all events from now on; call the returned function to stop. Raises UsageError."""
        check_argument(listener, "listener")
        return self._listeners.subscribe(listener)

    async def send(
        self,
        text: str | Words,
        *,
        source: Source = "typed",
        attachments: Sequence[PathLike] = (),
        beside: Sequence[mentions.Beside] = (),
    ) -> TurnFinished:
        """Run one turn. The text is on disk before the model is asked.

        An error ends the turn with reason "failed", its `error` says why, and listeners get an ErrorRaised event.
        Any other exception, such as one of a model or a person of the program's own, ends it likewise, and is raised.
        A cancelled task ends it too: what there is of the answer is kept, then CancelledError is raised. In both cases
        the session can continue. A blank text without attachments fails, and nothing is stored. Raises UsageError for
        what is no text, and while another message is answered; then nothing is stored either.

        source       who said the text, unless it is Words. `@path` attaches a file only in typed text
        attachments  files that go along; a relative path is one in the conversation's directory
        beside       texts that go along with this message only, as files would
        """
        task = asyncio.current_task()
        before = task.cancelling() if task else 0
        with self._one_turn:
            finished, cancelled = await self._turn(read_words(text, source), attachments, beside)
        if task and task.cancelling() > before:
            # The one that came in: anyio knows its own by what it holds.
            raise cancelled or asyncio.CancelledError
        return finished

    async def run_turn(
        self, text: str | Words, attachments: Sequence[PathLike] = (), beside: Sequence[mentions.Beside] = ()
    ) -> TurnFinished:
        """As `send`, but cancelling the task, as for Ctrl-C, makes this return, with the reason "interrupted".

        Raises UsageError, as `send` does.
        """
        with self._one_turn:
            return (await self._turn(read_words(text, "typed"), attachments, beside))[0]

    async def _turn(
        self, said: Words, attachments: Sequence[PathLike], beside: Sequence[mentions.Beside]
    ) -> tuple[TurnFinished, asyncio.CancelledError | None]:
        said = self.user_input.without_keys(said)
        text, cancelled, paths = text_of(said), None, read_paths(attachments, "attachments")
        mentions.check_beside(beside)
        self.approvals.unanswered.clear()
        turn, started, asked = Turn(self._parts), time.monotonic(), self._window.history.head
        try:
            self.spending.begin_turn()
            if not text.strip() and not paths:
                raise UsageError("The message is empty; nothing was sent.")
            self.session.refuse_reader()
            await self._compactor.swap_in(text)
            await self._enter(said, paths, beside)
            self.session.begin_turn(self.model.facts.name, self._kind)
            if self._has_own_tools:
                self.files.recorder.start()
            asked = self._window.history.head
            self._emit(TurnStarted(self.session.info.id, self._window.history.turns))
            finished = await turn.run(lambda: self._missing(text, asked))
        except NcaError as error:
            if isinstance(error, ContextDoesNotFit) and (way_out := self._window.state.way_out):
                error.advice += f" {way_out}"
            finished = turn.fail(error, started)
            self._emit(ErrorRaised.of(error))
        except (asyncio.CancelledError, KeyboardInterrupt) as error:
            interrupted = turn.interrupt(started)
            finished = msgspec.structs.replace(interrupted, is_empty=self._window.history.head == asked)
            cancelled = error if isinstance(error, asyncio.CancelledError) else None
        except BaseException as error:
            # A fault of the program's or of our own: the caller gets it, after the log is closed and the end is told.
            self._ended(turn.fail(error, started), text, asked)
            raise
        return self._ended(finished, text, asked), cancelled

    def _ended(self, finished: TurnFinished, text: str, asked: int) -> TurnFinished:
        """Finish a turn: prepare or announce a compaction, and tell listeners how the turn ended."""
        self.beside.settle()
        cost, files_changed = None, tuple[str, ...]()
        try:
            if finished.reason == "answered":
                self._compactor.consider()
            self._compactor.after_turn(is_preparing=self.context.is_preparing)
            cost, files_changed = self.spending.of_turn, self.rewinds.files_changed_since(asked)
        except StoreError as error:  # the turn has ended all the same
            if finished.error is None:
                self._emit(ErrorRaised.of(error))
        self._say_of_files()
        is_unanswered = bool(self.approvals.unanswered)
        code = finished.exit_code or int(is_unanswered)
        finished = msgspec.structs.replace(
            finished, cost=cost, exit_code=code, is_unanswered=is_unanswered, files_changed=files_changed
        )
        is_checked, has_changed = self.model.facts.is_small and finished.reason == "answered", bool(files_changed)
        if is_checked and (undone := reply_checks.undone(text, self._since(asked), has_changed=has_changed)):
            self._emit(Notice(undone))
        self._emit(finished)
        return finished

    def _missing(self, text: str, asked: int) -> str:
        """The text for a small model that should have changed a file or run something, and has not since `asked`."""
        facts = self.model.facts
        if not (facts.is_small and facts.can_use_tools) or self.approvals.mode == "plan":
            return ""
        changed = self.rewinds.files_changed_since(asked)
        return reply_checks.once_more(text, self._since(asked), has_changed=bool(changed))

    def _since(self, asked: int) -> list[Message]:
        return [entry.message for entry in self._window.history.entries[asked:]]

    async def _enter(self, said: Words, attachments: Sequence[Path], beside: Sequence[mentions.Beside]) -> None:
        """Append the message with all that goes with it. Raises NcaError; then nothing of it waits for the next one."""
        waiting = self.user_input.begin()
        try:
            await join_servers(self.servers, said, self.toolbox, self._window, self.user_input)
            for one in beside:
                self.user_input.share(*one)
            await self.user_input.admit(text_of(said))
            self.user_input.enter(said, attachments)
        except BaseException:
            self.user_input.keep_waiting(waiting)
            raise

    @property
    def model(self) -> Model:
        """The chat's own model; while its provider is down another one may answer (`model.fallbacks`)."""
        return self._parts.models.first

    def take_back(self, again: Words | None = None) -> None:
        """The newest message, unanswered, leaves the conversation; with `again`, only if it is that text."""
        self.user_input.take_back(again)

    def transcript(self) -> str:
        """The path of a file with the messages so far, for programs that read Claude Code's transcripts."""
        return self._hooks.transcript()

    @property
    def loaded(self) -> LoadedSettings:
        """The settings in force, with their origins."""
        return self._window.loaded

    def set(self, name: str, value: Any) -> str:
        """Change a setting for this session; returns its canonical name. Raises ConfigError; then nothing changed.

        `model.name` is what a later start reads: `use_model` switches the model of this conversation.
        """
        before, facts, known = self.loaded, self._window.facts, canonical(name)
        self._window.use(before.with_value(name, value, "set in this chat"), facts)
        key = known.key if known else name
        if key == "context.provider_side" and (refusal := self._window.provider_side_refusal):
            self._window.use(before, facts)
            raise ConfigError(f"{key}: {refusal}.", advice="nca compacts here, as before.")
        self._parts.redactor.learn(secrets_of(self.loaded))
        self._parts.models.take_settings(self.loaded)
        return key

    def choose_level(self, level: str | None) -> None:
        """Reason as much as was chosen with the model, "" as the settings say. None forgets the chosen model too."""
        chosen = self.loaded.without_chosen_model() if level is None else self.loaded.with_chosen_level(level)
        self._window.use(chosen, self._window.facts)
        self._parts.models.take_settings(self.loaded)
        if level is None and not self.session.is_read_only:
            self.session.remember_model("")

    def file_changed(self, loaded: LoadedSettings) -> None:
        """The project's file changed: values have other origins now, and no other value."""
        self._window.state.loaded = loaded

    async def use_model(self, model: Model) -> None:
        """Go on with another model. A smaller window cuts instructions and tools, and may make a compaction due.

        Raises UsageError for what is no model.
        """
        check_argument(model, "model")
        await self._compactor.close()
        self._parts.redactor.learn(secrets_of(self.loaded))
        old = self._parts.models.replace_first(model)
        self.session.set_model(model.facts.name)
        self._notify()
        # Report now what is due in this model's window, not only after the next message.
        self._compactor.after_turn()
        await old.close()

    async def close(self, *, keeps_model: bool = False, keeps_empty: bool = False) -> None:
        """Close the session, deleted if empty (not if `keeps_empty`), and, unless another `keeps_model`, the model.

        A turn that runs ends first, as interrupted.
        """
        await self._one_turn.stop()
        await self._compactor.close()
        await self.beside.close()
        self.user_input.close()
        running = [job.name for job in self.jobs.all if job.is_running]
        await self.jobs.close()
        if running:
            self._emit(Notice(f"Stopped in the background, as the {self.session.info.kind} ends: {'; '.join(running)}"))
        await asyncio.to_thread(self.files.recorder.close)
        try:
            await self.servers.close()
            finishes = self._window.settings.memory.auto_compact_on_finish and not self.session.is_read_only
            if finishes and self._window.history.head:
                with contextlib.suppress(NcaError):
                    await self._compactor.compact("manual")
                try:
                    self.memory.note_session()
                except ConfigError as error:
                    self._emit(Notice(str(error)))
            await self._hooks.close()
        finally:
            await self._parts.models.close(keeps_first=keeps_model)
            session_id, is_empty = self.session.info.id, self._window.history.head == 0
            self.session.close()
        if is_empty and not (keeps_empty or self.session.is_read_only):
            self.store.delete_empty(session_id)

    def _notify(self, more: Sequence[str] = ()) -> None:
        """Show the notices about the settings, the prompt and the window that the person has not had."""
        window = self._window
        for text in (*self.loaded.notes, *window.prompt.notices, *window.notices(), *more):
            if text not in self.notified:
                self.notified.add(text)
                # Plain text: what encodes events knows no other.
                self._emit(Notice(str(text), is_usual=isinstance(text, UsualNotice)))
