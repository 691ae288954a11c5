"""The chat: read a line, run the command or send the message, and again until the person leaves."""

from __future__ import annotations

import asyncio
import contextlib
import copy
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from nca.errors import NcaError, StoreError, UsageError
from nca.events import MessageTaken
from nca.terminal.commands.command import find_command, find_whole, named, short_for, unknown
from nca.terminal.input.line_kind import held_line, line_kind, line_of, message_of
from nca.terminal.interrupts import Interrupts, Leave, Stopped
from nca.terminal.reader import Reader
from nca.terminal.render.event_lines import error_line
from nca.terminal.render.output import Output
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.sessions import short_id
from nca.terminal.render.stream_writer import write_error_exit_code
from nca.terminal.session_switcher import SessionSwitcher
from nca.terminal.shell_line import ShellLine
from nca.terminal.signals import INTERRUPTED_EXIT_CODE
from nca.terminal.told_once import ToldOnce
from nca.words import Words, part_of, source_at, stripped, text_of, words

if TYPE_CHECKING:
    from nca.agent.compaction_diff import Preview
    from nca.agent.conversation import Conversation
    from nca.agent.mentions import Beside
    from nca.agent.prompt_commands import PromptCommand

T = TypeVar("T")

SHORT_CHARS = 200
"""Characters shown of a text that is kept elsewhere."""


class ChatApp:
    """One chat: it owns the conversation, the output, the reader and the interrupts.

    `models` are names that `/model` suggests. `output` listens to the conversation already. `first` is the first line.
    """

    def __init__(
        self,
        conversation: Conversation,
        output: Output,
        reader: Reader,
        interrupts: Interrupts,
        *,
        models: Sequence[str] = (),
        first: str = "",
    ) -> None:
        self.output = output
        self.reader = reader
        self.interrupts = interrupts
        self.models = models
        self._first = first
        self.sessions = SessionSwitcher(conversation, output, reader, self.put_in_prompt)
        self._shell_line = ShellLine(self.sessions, output, reader.lend_terminal if reader.can_choose else None)
        self._preview: tuple[Conversation, Preview] | None = None
        self.prompts: Mapping[str, PromptCommand] = {}
        self._next_words: Words = ()
        self._is_next_new = False
        self.argument: Words = ()
        self.can_walk = reader.can_walk
        self.is_answering = False
        self._exit_code = 0
        self._told = ToldOnce(output, reader)
        self._warmed: Conversation | None = None
        self._warming: set[asyncio.Task[None]] = set()

    @property
    def conversation(self) -> Conversation:
        return self.sessions.conversation

    @property
    def preview(self) -> Preview | None:
        """The compaction of this conversation that waits for the person to accept it."""
        return self._preview[1] if self._preview and self._preview[0] is self.conversation else None

    def hold_preview(self, preview: Preview | None) -> None:
        """None forgets the one before."""
        self._preview = (self.conversation, preview) if preview is not None else None

    def put_in_prompt(self, said: Words, *, is_new: bool = False) -> None:
        """The next prompt starts with this. What is typed ahead replaces it, unless it `is_new`: never sent before."""
        self._next_words, self._is_next_new = said, is_new

    def suggestions(self, name: str, argument: str) -> Iterable[tuple[str, str]]:
        """See `Chat`."""
        command = find_command(name)
        with contextlib.suppress(NcaError):
            if command is not None:
                return list(command.complete(self, argument))
        return ()

    async def show(self, line: Words, output: Output) -> None:
        """See `Chat`."""
        chat = copy.copy(self)
        chat.output, chat.can_walk = output, False
        name, argument = named(text_of(line))
        if (command := find_command(name)) is not None:
            await command.call(chat, argument.strip())

    async def run(self) -> int:
        """Chat until the person leaves, and close the conversation. Returns the exit code.

        0 left · 130 interrupted · 143, 129, 131 ended by a signal · 141 nobody reads. Without a terminal, if turns or
        commands failed: the code of the last error, or 1 if a turn ended unfinished or a call needed an approval.
        """
        try:
            with self.interrupts.handled(), self.reader.chatting(self):
                try:
                    while self.interrupts.exit_code is None and self.output.failure is None:
                        await self._round_or_stay()
                except Leave as leave:
                    self._say_how_to_go_on()
                    return leave.exit_code or self._exit_code
                except EOFError:
                    self._say_how_to_go_on()
                    return self._exit_code
                if self.interrupts.exit_code is not None:
                    if self.interrupts.exit_code == INTERRUPTED_EXIT_CODE:
                        self._say_how_to_go_on()
                    return self.interrupts.exit_code
                return write_error_exit_code(self.output.failure)
        finally:
            await self.sessions.close()

    def _say_how_to_go_on(self) -> None:
        """To a person who leaves: their unsent text, and how to open the session again."""
        unsent, is_kept = self.reader.keep_unsent()
        for text in unsent:
            self.output.notice(f"Not sent: {one_line(text, SHORT_CHARS if is_kept else len(text))}")
        if unsent and is_kept:
            self.output.notice("Up brings it back at the next prompt.")
        conversation = self.conversation
        is_kept = conversation.store.path is not None and bool(conversation.context.entries)
        if is_kept and self.reader.is_interactive:
            self.output.notice(f"To continue this session: nca loop --resume {short_id(conversation.session.info.id)}")

    async def _round_or_stay(self) -> None:
        told = self.sessions.told_jobs
        try:
            await self._round()
            if self.sessions.told_jobs is told:
                # Whatever the person did instead: before it ends them they are told again.
                self.sessions.told_jobs = []
        except (EOFError, Leave) as leaving:
            is_hurried = isinstance(leaving, Leave) and leaving.exit_code
            if is_hurried or not self.sessions.holds_back("Ctrl-D or /exit again"):
                raise

    async def _round(self) -> None:
        """Read one line and carry it out."""
        line = await self._read()
        self.conversation.beside.settle()
        if not text_of(line).strip():
            return
        try:
            await self._carry_out(line)
        except NcaError as error:
            # Whatever refuses, and wherever: the chat goes on.
            self.output.error(*error_line(error))
            self._leave_with(error.exit_code)

    async def _carry_out(self, line: Words) -> None:
        self.output.apply(self.conversation.loaded.settings.terminal)
        match line_kind(line, self._own):
            case "leave":
                raise Leave(0)
            case "command":
                await self._command(stripped(line))
            case "shell":
                await self._run_shell(line)
            case "message":
                await self._send(message_of(line))

    async def _read(self) -> Words:
        """The line; nothing if reading was interrupted."""
        conversation = self.conversation
        if conversation is not self._warmed:
            self._warmed = conversation
            task = asyncio.create_task(self._warm(conversation))
            self._warming.add(task)
            task.add_done_callback(self._warming.discard)
        if line := self._first:
            self._first = ""
            self.output.on_event(MessageTaken(line))
            return words(line)
        default: Words = ()
        if not self.reader.is_typing:
            default = self._next_words
        if default or not self._is_next_new:
            self._next_words = ()
        try:
            reading = self.reader.read(conversation, default)
            return await self.interrupts.run(reading, interrupt_reader=self.reader.interrupt)
        except Stopped:
            return ()

    async def _warm(self, conversation: Conversation) -> None:
        """Load what the first answer needs while the person types."""
        await self.reader.shown()
        from nca.models.client import ProviderModel
        from nca.models.model import KeepsPrefix

        if not conversation.session.is_read_only:
            conversation.servers.begin()
        self.prompts = await asyncio.to_thread(self._own)
        await self._told.tell(conversation)
        # The error is reported when the model is asked.
        with contextlib.suppress(ImportError, NcaError):
            if isinstance(conversation.model, KeepsPrefix):
                await conversation.model.warm(conversation.context.next_request())
            elif isinstance(conversation.model, ProviderModel):
                await conversation.model.load()

    async def _send(
        self,
        said: Words,
        *,
        asked_by: Words = (),
        attachments: Sequence[Path] = (),
        beside: Sequence[Beside] = (),
    ) -> None:
        """Run one turn. `asked_by` is the line from which the message was made, for the prompt if this fails."""
        line = asked_by or line_of(said)
        try:
            self.sessions.send_again(said)
            sending = self.conversation.run_turn(said, attachments, beside)
            awaited = self.conversation.servers.awaited
            label = f"Waiting for MCP: {', '.join(awaited)}" if awaited else "Thinking"
            self.is_answering = True
            finished = await self._working(label, sending)
        except Stopped:
            # Nothing was sent.
            self._give_back(line)
            self._interrupted()
            return
        except NcaError as error:
            self.output.error(*error_line(error))
            self._take_back(line)
            self._leave_with(error.exit_code)
            return
        finally:
            self.is_answering = False
        if finished.reason == "interrupted":
            self._take_back(line if finished.is_empty else ())
            self._interrupted()
        elif finished.error is not None:
            self._take_back(line)
            self._leave_with(finished.exit_code)
        elif finished.exit_code:
            self._leave_with(finished.exit_code)
        else:
            await self._offer_plan()

    async def _offer_plan(self) -> None:
        """A plan that was written in plan mode is carried out if the person says so, unless they type already."""
        if self.conversation.approvals.mode != "plan" or not self.reader.can_choose or self.reader.is_typing:
            return
        from nca.terminal.commands.permissions import CARRY_OUT, carry_out, is_plan_written

        if not is_plan_written(self.conversation):
            return
        with contextlib.suppress(Stopped):
            if await self._working("", carry_out(self.conversation, self.reader, self.output)):
                self.output.on_event(MessageTaken(CARRY_OUT))
                await self._send(words(CARRY_OUT))

    def _interrupted(self) -> None:
        if not self.reader.is_interactive:
            self.interrupts.end(INTERRUPTED_EXIT_CODE)

    def _take_back(self, line: Words) -> None:
        """A line had no answer. A person has it again, in the prompt or in the history, and the model does not."""
        is_given = self._give_back(line)
        if line and self.reader.is_interactive:
            with contextlib.suppress(StoreError):  # a full disk: the turn's own error says so
                self.conversation.take_back()
            if not is_given:
                self.output.notice("Your message was not sent: Up in an empty prompt brings it back.")

    def _give_back(self, line: Words) -> bool:
        """Put a line that had no effect in the next prompt, and send nothing until Enter is pressed again.

        False if there is none, or another line is being typed there.
        """
        held = self.reader.hold_typed_lines()
        is_given = bool(line) and self.reader.is_interactive and not self.reader.is_typing
        if is_given:
            self.put_in_prompt(line)
        if held:
            self.output.notice(held_line(held, is_first_next=not is_given and not self.reader.is_typing))
        return is_given

    def _leave_with(self, exit_code: int) -> None:
        """Without a terminal, the chat ends with the code of the last failure, whatever succeeds later."""
        if not self.reader.is_interactive:
            self._exit_code = exit_code

    async def _command(self, line: Words) -> None:
        name, argument = named(text_of(line))
        self.argument = stripped(part_of(line, len(f"/{name}")))
        command = find_command(name)
        is_piped = source_at(line, 0) != "typed"
        if is_piped and command is not None and (what := command.needs_person(self, argument.strip())):
            self._refuse_piped(f"/{command.name} {argument}".rstrip(), what)
            return
        if name.startswith("mcp:"):
            await self._send_server_prompt(name.removeprefix("mcp:"), argument.strip(), line)
            return
        is_whole = find_whole(name) is not None
        begun = () if is_whole else await self._short_for(name)
        if command is not None and (is_whole or begun == [command.name]):
            await self._do("", command.call(self, argument.strip()), line)
        elif len(begun) == 1:
            await self._call(self.prompts[begun[0]], self.argument, line)
        else:
            self.reader.note_outcome(line, was_refused=True)
            raise unknown(name, self.prompts)

    def _own(self) -> Mapping[str, PromptCommand]:
        """The person's own commands, as they are on disk now."""
        from nca.agent.prompt_commands import find_prompts

        return find_prompts(self.conversation.directory)

    async def _short_for(self, name: str) -> Sequence[str]:
        """The commands that it may mean. The person's own count like nca's."""
        self.prompts = await asyncio.to_thread(self._own)
        return [name] if name in self.prompts else list(short_for(name, self.prompts))

    async def _call(self, prompt: PromptCommand, argument: Words, line: Words) -> None:
        """`/NAME argument`: send a skill or a custom command."""
        called = await asyncio.to_thread(prompt.call, argument, self.conversation.directory)
        await self._send(called.message, attachments=called.files, asked_by=line, beside=called.beside)

    async def _run_shell(self, line: Words) -> None:
        if source_at(line, 0) != "typed":
            self._refuse_piped("!COMMAND", "starts a program")
            return
        label = "" if self._shell_line.gets_terminal(text_of(line)) else "Running"
        try:
            await self._do(label, self._shell_line.run(text_of(line)), line)
        except NcaError:
            self.put_in_prompt(line)
            raise
        if not self._shell_line.was_found:
            self.reader.note_outcome(line, was_refused=True)

    def _refuse_piped(self, command: str, what: str) -> None:
        """Anybody may have written piped text."""
        said = f"{one_line(command, 60)} {what}: type it at a terminal, or use a flag of nca loop. Nothing was done."
        self.output.error(said)
        self._leave_with(UsageError.exit_code)

    async def _send_server_prompt(self, name: str, argument: str, line: Words) -> None:
        """`/mcp:SERVER:PROMPT argument`: send a message that the server writes."""
        server, _, prompt = name.partition(":")
        try:
            text = await self._working("Asking", self.conversation.servers.prompt(server, prompt, argument))
        except Stopped:
            return
        await self._send(words(text, "tool"), asked_by=line)

    async def _do(self, label: str, work: Coroutine[Any, Any, None], line: Words) -> None:
        """Do it, or say that the person stopped it. Raises what it raises."""
        try:
            await self._working(label, work)
        except Stopped as stopped:
            if not stopped.is_said:
                self.output.warn("Stopped.")
            self._give_back(())
        except NcaError:
            self.reader.note_outcome(line, was_refused=True)
            raise
        self.reader.note_outcome(line, was_refused=False)

    async def _working(self, label: str, work: Coroutine[Any, Any, T]) -> T:
        """Do it while keys are kept and something moves on the screen. Raises Stopped."""
        with self.reader.while_working():
            async with self.output.at_work(label):
                return await self.interrupts.run(work)
