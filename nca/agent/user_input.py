"""Append the person's message to the log, with the files that it names and the reminders that are due."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from nca.agent.approvals import Person
from nca.agent.context_notices import has_no_room
from nca.agent.hooks import Hooks
from nca.agent.mentions import HOOK, Beside, attached_lines, mentioned, name_in, real_path, went_along, with_attachments
from nca.agent.window import Window
from nca.config.tables import Injection
from nca.context.admission import file_token_budget
from nca.context.budget import Budget, Measurement
from nca.context.fit import fits_once_cut, too_large
from nca.context.plan import is_answered
from nca.context.reminders import Reminders, shown_injections, with_reminders
from nca.context.tokens import message_tokens, part_tokens
from nca.context.view import is_in, is_shown
from nca.errors import StoreError, UsageError
from nca.events import Listener, MessageTaken, Notice
from nca.file_history.history import FileHistory
from nca.humanize import UsualNotice, counted
from nca.messages import AttachmentPart, Message, clean_text, user_message
from nca.redact import Redactor
from nca.tools.files.reading_rules import FilesRead
from nca.tools.files.workspace import shown
from nca.tools.mcp.servers import Servers
from nca.tools.shell.jobs import Job, Jobs, left_running
from nca.wire import content_text
from nca.words import Source, Words, merged, text_of, words

CUT_SHORT = "Your last answer was cut short. The person has seen as much of it as you see here."
TAKEN_BACK = "The user took files back to what they were earlier. These are not as you left them: {}."
NOT_SENT = "What you typed was not sent"
_NAMED_FILES = 50
_LOOKS_BACK = 200
"""So many of the newest messages that are shown are searched for jobs: no more of a log is read to open it."""


class TaskInput:
    """The input of a subtask: nobody types ahead, but a hook may have it continue."""

    def __init__(self, window: Window, hooks: Hooks, task: str, agent: str) -> None:
        self._window, self._hooks = window, hooks
        self._task, self._agent, self._stops = task, agent, 0

    async def enter_typed_ahead(self) -> None:
        """Nothing to append."""

    async def goes_on(self, answer: str) -> bool:
        """Whether a hook has it continue; then its words are appended."""
        said = await self._hooks.before_task_stop(self._task, self._agent, answer, self._stops)
        if said:
            self._stops += 1
            self._window.append(Message("user", f"[a hook says: {said}]", source="nca"))
        return bool(said)


@dataclass(eq=False)
class UserInput:
    """Appends messages; each is durable when the call returns.

    What the person typed stays as it is. Keys are redacted in everything else.
    """

    window: Window
    directory: Path
    redactor: Redactor
    emit: Listener
    files_read: FilesRead
    servers: Servers
    person: Person
    hooks: Hooks
    jobs: Jobs
    files: FileHistory

    def __post_init__(self) -> None:
        self._shared: list[Beside] = []
        self._ended: list[Job] = []
        """The jobs whose end goes with the message that is about to come."""
        self._again: list[Beside] = []
        """What went with a message that came back to the person. The log has it."""
        self._is_entered = False
        """Whether the newest message is the one that was sent last: that one may have been refused."""
        self.begin_anew()

    def begin_anew(self) -> None:
        """Continue from the current view: the session was opened, or the person went back in it."""
        self._take_view()
        self.files_read.forget()

    def go_forward(self) -> None:
        """As `begin_anew`, when the person takes a rewind back: reads from before it count again."""
        self._take_view()
        self.files_read.recall()

    def _take_view(self) -> None:
        window = self.window
        seen = [entry.message for entry in window.history.visible()]
        self._reminders = Reminders(shown_injections(window.context.inject, seen))
        self._newest_view = window.session.views.current_id
        """The newest view that was looked at for reminders."""
        self._taken_back = 0
        """The message of a turn without an answer; the person has its text again."""

    def go_along_again(self, with_message: Message | None) -> None:
        """What went with this message goes with the next one: it came back to the person, and no other did."""
        self._again = went_along(with_message) if with_message is not None else []
        self._weigh()

    @property
    def _waiting(self) -> list[Beside]:
        return [*self._again, *self._shared]

    @property
    def waiting(self) -> list[str]:
        """The names of the texts that go with the next message, such as commands whose output it is."""
        return [one.name for one in self._waiting]

    @property
    def is_alone(self) -> bool:
        """Whether nothing goes with the next message."""
        return not self._waiting and not self.files_taken_back()

    def files_taken_back(self) -> tuple[str, ...]:
        """What the model has not heard of its files: the person took them back, and the chat stayed."""
        history = self.window.history
        # The newest message of the conversation: what is aside, the model does not see.
        newest = next((first - 1 for first, last in history.view.aside if last >= history.head), history.head)
        with suppress(StoreError):  # the recorder says what is wrong with the record
            if found := self.files.taken_back_since(newest):
                names = [f"{one.name}{' (deleted)' * (one.after.kind == 'absent')}" for one in found]
                more = [f"and {len(names) - _NAMED_FILES:,} more"] * (len(names) > _NAMED_FILES)
                return (TAKEN_BACK.format(", ".join([*names[:_NAMED_FILES], *more])),)
        return ()

    def forget_waiting(self) -> None:
        """Nothing goes with the next message."""
        self._again.clear()
        self._shared.clear()
        self._weigh()

    def _weigh(self) -> None:
        """Between turns, what waits counts as a part of the next request."""
        parts = (AttachmentPart(one.name, self.redactor.text(one.text), len(one.text)) for one in self._waiting)
        self.window.meter.waiting_raw = sum(map(part_tokens, parts))

    def share_output(self, name: str, text: str) -> None:
        """Attach what the person's command printed, between turns."""
        self.share(name, text, "tool")
        self._weigh()

    def share(self, name: str, text: str, source: Source) -> None:
        """Attach a text to the next message, as a file of this name would be."""
        self._shared.append(Beside(self.redactor.text(clean_text(name)), clean_text(text), source))

    def close(self) -> None:
        """Name what waited for a message that never came, such as a command's output: it is not stored."""
        if self._shared:
            self.emit(Notice(f"Not sent with a message, and not kept: {'; '.join(one.name for one in self._shared)}"))

    def begin(self) -> int:
        """A message is about to come; the ends of jobs go with it. Returns how many texts go with any message."""
        self._is_entered, waiting, self._ended = False, len(self._shared), self.jobs.take_ended()
        self.window.meter.waiting_raw = 0
        for job in self._ended:
            self.share(job.name, job.headline(), "tool")
        for number in self.gone_jobs():
            self.share(f"job {number}", f"[job {number} has ended, at the latest when the session was closed]", "tool")
        return waiting

    def keep_waiting(self, most: int) -> None:
        """Forget all but this many: the message of the others was not sent."""
        del self._shared[most:]
        self._weigh()
        for job in self._ended:
            job.is_told = False

    def gone_jobs(self) -> list[int]:
        """Those of which the model was told last that they run, and which ended with the program that ran them."""
        messages = [entry.message for entry in self.window.history.visible()][-_LOOKS_BACK:]
        told = left_running(content_text(one.content) for one in messages if one.role in ("tool", "user"))
        return [number for number in told if number not in {job.number for job in self.jobs.all}]

    def take_back(self, again: Words | None = None) -> None:
        """The message sent last had no answer, and its text went back to the person: it is no part of the conversation.

        Nothing happens if it was refused before it was in the log. If steps followed it, it stays: they go on where the
        same text is sent next.

        again  what is sent next, if nothing else says that the newest message was not answered: it was not if this is
               the same, and the log has no whole answer to it
        """
        window, history = self.window, self.window.history
        if not (self._is_entered if again is None else self._is_tried_again(again)):
            return
        self._taken_back = first = history.newest_user or 0
        if first and first not in history.pins and not self._steps(first):
            window.put_aside(first)
            self.go_along_again(history.message(first))

    def without_keys(self, said: Words) -> Words:
        """The words as they enter. A line says if keys were left out of them."""
        clean = self.redactor.said(said)
        if text_of(clean) != text_of(said):
            self.emit(Notice("Text that you did not type has what looks like a key; it is sent as [redacted]."))
        return clean

    def _is_tried_again(self, said: Words) -> bool:
        history, said = self.window.history, self.redactor.said(said)
        first = history.newest_user
        if not first or (is_answered(history) and not next(history.backwards()).message.is_interrupted):
            return False
        return is_shown(history.view, first) and merged(history.message(first).said) == merged(said)

    def _steps(self, first: int) -> list[Message]:
        """What followed a message, without an answer that broke off."""
        history = self.window.history
        since = [one.message for one in history.entries[first:] if not is_in(one.seq, history.view.aside)]
        return since[:-1] if since and since[-1].is_interrupted else since

    async def admit(self, text: str) -> None:
        """Ask the hooks about a message; their additions are attached to it. Raises UsageError if one stops it."""
        if said := await self.hooks.before_prompt(text):
            self.share(HOOK, said, "tool")

    def enter(self, said: Words, attachments: Sequence[Path]) -> None:
        """Append a turn's message, unless a failed turn left the same one unanswered.

        Raises UsageError for a file that cannot be attached, ContextDoesNotFit for a message that can never be sent
        and must not be cut; then nothing is stored.
        """
        self._enter(said, attachments)
        self._is_entered = True

    def _enter(self, said: Words, attachments: Sequence[Path]) -> None:
        taken_back = self.files_taken_back()
        is_alone = not self._waiting and not taken_back
        if not attachments and is_alone and self._goes_on(said):
            return
        measured = self.window.measure()
        named = mentioned(said, self.directory, self.servers.names)
        message = self._with_files(said, [*named, *(real_path(self.directory / path) for path in attachments)])
        history = self.window.history
        # A message that the view no longer shows (after a clear) is not waiting for an answer.
        seq = next((seq for seq in range(history.head, 0, -1) if not is_in(seq, history.view.aside)), 0)
        last = history.entries[seq - 1] if seq and is_shown(history.view, seq) else None
        is_waiting = last is not None and last.message.role == "user" and merged(last.message.said) == merged(said)
        if is_waiting and is_alone:
            return
        if self.window.context.fit == "refuse":
            self._refuse_too_large(message, measured.budget)
        cut = (CUT_SHORT,) if last is not None and last.message.is_interrupted else ()
        self.window.append(with_reminders(message, (*cut, *taken_back, *self._due_reminders(measured))))
        self.forget_waiting()
        self._say_attached(message)

    def _refuse_too_large(self, message: Message, budget: Budget) -> None:
        """Raises ContextDoesNotFit for a message that has no room beside what stays."""
        if error := has_no_room(self.window):
            raise error
        history, meter, context = self.window.history, self.window.meter, self.window.context
        tokens = meter.scaled(message_tokens(message))
        # Nothing else of the log is read: what is said while it cannot be read is kept.
        beside = meter.total(meter.fixed_raw + sum(history.run_tokens(seq, seq) for seq in history.pins))
        left = budget.budget_tokens - beside
        if tokens > left:
            can_fit = context.auto == "on" and fits_once_cut(message, history.head + 1, left, meter)
            raise too_large(tokens, beside, budget, fits_once_cut=can_fit, has_pins=bool(history.pins))

    def _goes_on(self, said: Words) -> bool:
        """Whether this is the message that was taken back, and its steps continue."""
        window, history = self.window, self.window.history
        first, self._taken_back = self._taken_back, 0
        if not first or first != history.newest_user or merged(history.message(first).said) != merged(said):
            return False
        steps = self._steps(first)
        if not steps or steps[-1].role != "tool":
            return False
        if (broken := next(history.backwards())).message.is_interrupted:
            window.put_aside(broken.seq)
        return True

    async def goes_on(self, answer: str) -> bool:
        """Whether a hook has the model go on instead of ending its turn; then its words are appended."""
        if said := await self.hooks.before_stop(answer):
            self.window.append(Message("user", f"[a hook says: {said}]", source="nca"))
        return bool(said)

    async def enter_typed_ahead(self) -> None:
        """Append the text that the person typed while the turn runs, if any, as one message.

        A file that cannot be attached is reported, and the text is appended without it.
        """
        if said := await self.hooks.begun():
            self.window.append(Message("user", f"[a hook says: {said}]", source="nca"))
            self.emit(Notice(f"A hook added {counted(len(said.splitlines()), 'line')}.", is_usual=True))
        queued = self._queued()
        if not (text := text_of(queued)):
            return
        try:
            message = await self._append_typed(queued, text)
        except BaseException as error:
            # The person no longer has the text, and the log does not have it: nobody has it but this line.
            why = error.message.rstrip(".") if isinstance(error, UsageError) else NOT_SENT
            self.emit(Notice(f"{why}. It was: {text}"))
            if isinstance(error, UsageError):
                return
            raise
        self.emit(MessageTaken(text))
        self._say_attached(message)

    async def _append_typed(self, queued: Words, text: str) -> Message:
        """Raises UsageError if a hook stops it. Whatever is raised, nothing is stored, and what waited waits on."""
        waiting = len(self._shared)
        try:
            await self.admit(text)
            message, has_files = self._with_named(queued)
            self.window.append(message)
        except BaseException:
            del self._shared[waiting:]
            raise
        if has_files:
            self.forget_waiting()
        return message

    def _with_named(self, queued: Words) -> tuple[Message, bool]:
        """The message with the files that it names, and all that waits for one; without both if a file cannot be
        attached."""
        try:
            return self._with_files(queued, mentioned(queued, self.directory, self.servers.names)), True
        except UsageError as error:
            self.emit(Notice(str(error)))
            return user_message(queued), False

    def _queued(self) -> Words:
        """The lines typed while the turn runs, a blank line between two."""
        queued: Words = ()
        for one in self.person.typed_ahead():
            if text_of(one).strip():
                queued = (*queued, *words("\n\n"), *one) if queued else one
        return self.without_keys(queued)

    def _with_files(self, said: Words, paths: Sequence[Path]) -> Message:
        room = self.window.budget.budget_tokens, self.window.used_beside_more()
        budget = file_token_budget(*room, 0, file_ratio=self.window.context.admission.file_ratio)
        for path in paths:
            if denial := self.window.state.reading(self.directory).denial(path):
                raise UsageError(f"@{shown(name_in(path, self.directory))} {denial}.", advice="Nothing was sent.")
        raw_budget = int(budget / self.window.meter.calibration.ratio)
        message = with_attachments(
            said,
            paths,
            self.directory,
            raw_budget,
            shared=self._waiting,
            can_see=self.window.can_see,
            files_read=self.files_read,
        )
        if not isinstance(message.content, tuple):
            return message
        parts = tuple(
            msgspec.structs.replace(part, text=self.redactor.text(part.text))
            if isinstance(part, AttachmentPart)
            else part
            for part in message.content
        )
        return msgspec.structs.replace(message, content=parts)

    def _say_attached(self, message: Message) -> None:
        for text in attached_lines(message, self.window.meter.scaled):
            self.emit(Notice(str(text), is_usual=isinstance(text, UsualNotice)))

    def _due_reminders(self, measured: Measurement) -> tuple[str, ...]:
        inject = self.window.context.inject
        if not inject:
            return ()
        self._rearm_reminders(inject)
        turn = self.window.history.turns + 1
        used, usage = measured.used_tokens, measured.usage_ratio
        return self._reminders.due(inject, turn=turn, used_tokens=used, usage_ratio=usage)

    def _rearm_reminders(self, inject: Sequence[Injection]) -> None:
        """A threshold that usage fell below in a compaction since the last message may be crossed again."""
        before, current = self._newest_view, self.window.session.views.current_id
        if current <= before:
            return
        self._newest_view = current
        for record in self.window.session.views.compactions():
            if record.view_after > before:
                usage = record.tokens_after / self.window.budget.budget_tokens
                self._reminders.observe(inject, used_tokens=record.tokens_after, usage_ratio=usage)
