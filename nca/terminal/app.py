"""The chat: prompt, command or message, answer, and again; until somebody leaves."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from nca.agent.approvals import Nobody, Person
from nca.errors import NcaError, UsageError
from nca.events import ApprovalGiven, ErrorRaised, Event
from nca.terminal.commands import CommandContext, Leave, find_command
from nca.terminal.render.output import BROKEN_PIPE_EXIT_CODE, UNWRITTEN_EXIT_CODE, Output, is_unread
from nca.terminal.render.plain import LineReader
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.wording import error_line
from nca.terminal.session_switcher import Exchange, OpenSession
from nca.terminal.shell_line import ShellLine, is_shell_line
from nca.terminal.signals import INTERRUPTED_EXIT_CODE, Interrupts

if TYPE_CHECKING:
    from nca.agent.conversation import Conversation
    from nca.sessions.session import SessionInfo
    from nca.sessions.store import Store
    from nca.terminal.input.first_prompt import FirstPrompt
    from nca.terminal.render.draw import Draw

UNFINISHED_EXIT_CODE = 1
"""The limit of steps, going round in circles, or an approval that nobody could give."""
_STOPPED = object()
_LEAVING_WORDS = frozenset({"exit", "quit", ":q"})


class Reader(Protocol):
    """Where lines come from; `Prompt` and `LineReader` are the two there are."""

    async def read(self, default: str = "") -> str:
        """What was typed. Raises EOFError at the end, Leave when somebody wants to go."""


class Chat:
    """One run of the loop over a conversation. `run` returns the exit code."""

    def __init__(self, context: CommandContext, reader: Reader, *, is_interactive: bool) -> None:
        self._context = context
        self._output: Output = context.output
        self._reader = reader
        self._is_interactive = is_interactive
        self._work: asyncio.Task[Any] | None = None
        self._is_reading = False
        self._failed_text = ""
        self._exit_code = 0
        self._error_code = NcaError.exit_code
        self._is_unanswered = False
        self._shell_line = ShellLine(context)
        self.interrupts = Interrupts(
            on_interrupt=self.stop_work, on_end=self._stop_all, is_working=lambda: not self._is_reading
        )
        self.while_chatting: Callable[[], AbstractContextManager[object]] = nullcontext
        self.while_working: Callable[[], AbstractContextManager[None]] = nullcontext
        self.on_stopped: Callable[[], None] = lambda: None
        context.put_in_prompt = self._put_in_prompt
        self.interrupt_prompt: Callable[[], bool] = lambda: True
        """False: the line was taken already; what begins with it is to be stopped."""
        self._is_stopped_early = False

    @property
    def _conversation(self) -> Conversation:
        return self._context.conversation

    async def run(self) -> int:
        with self.interrupts.handled(), self.while_chatting():
            try:
                while self.interrupts.exit_code is None and not self._output.is_gone:
                    await self._round()
            except Leave as leave:
                return leave.exit_code or self._exit_code
            except EOFError:
                return self._exit_code
            if self.interrupts.exit_code is not None:
                return self.interrupts.exit_code
            return BROKEN_PIPE_EXIT_CODE if is_unread(self._output.failure) else UNWRITTEN_EXIT_CODE

    async def _round(self) -> None:
        """One line of text, from the prompt to its end."""
        text = await self._read()
        if text is None or not text.strip():
            return
        if text.strip().lower() in _LEAVING_WORDS:
            raise Leave(0)
        if text.startswith("//"):
            await self._send(text[1:])
        elif text.startswith("/") and "\n" not in text.strip():
            await self._command(text.strip())
        elif is_shell_line(text):
            await self._run_shell(text)
        else:
            await self._send(text)

    async def _read(self) -> str | None:
        default, self._failed_text = self._failed_text, ""
        self._is_reading, self._is_stopped_early = True, False
        try:
            text = await self._do(self._reader.read(default))
            return None if text is _STOPPED else text
        finally:
            self._is_reading = False

    async def _send(self, text: str, *, asked_by: str = "") -> None:
        """asked_by: the line for which somebody else wrote the text; it is what stands in the prompt if this fails."""
        self._output.apply(self._conversation.loaded.settings.terminal)
        self._is_unanswered = False
        stop_listening = self._conversation.subscribe(self._note_error)
        try:
            finished = await self._working("Thinking", self._conversation.send(text, is_own=not asked_by))
        except NcaError as error:
            self._failed(error.exit_code, text, asked_by)
            self._output.error(*error_line(error))
            return
        finally:
            stop_listening()
        if finished is _STOPPED or finished.reason == "interrupted":
            self.on_stopped()
            if finished is _STOPPED:
                # Nothing was sent.
                self._put_in_prompt(_as_typed(text))
            if not self._is_interactive:
                self.interrupts.end(INTERRUPTED_EXIT_CODE)
        elif finished.reason == "failed":
            self._failed(self._error_code, text, asked_by)
        elif finished.reason in ("max_steps", "stuck") or self._is_unanswered:
            self._leave_with(UNFINISHED_EXIT_CODE)

    def _failed(self, exit_code: int, text: str, asked_by: str = "") -> None:
        """The text stands in the next prompt, so that Enter sends it again."""
        self.on_stopped()
        self._failed_text = asked_by or _as_typed(text)
        self._leave_with(exit_code)

    def _put_in_prompt(self, text: str) -> None:
        self._failed_text = text

    def _leave_with(self, exit_code: int) -> None:
        """Without a terminal, what failed is told when the chat ends, whatever succeeds later; the last failure's."""
        if not self._is_interactive:
            self._exit_code = exit_code

    def _note_error(self, event: Event) -> None:
        if isinstance(event, ErrorRaised):
            self._error_code = event.exit_code
        elif isinstance(event, ApprovalGiven) and event.decision == "unanswered":
            self._is_unanswered = True

    async def _command(self, line: str) -> None:
        name, _, argument = line[1:].partition(" ")
        if name.startswith("mcp:"):
            await self._prompt_of_server(name.removeprefix("mcp:"), argument.strip())
            return
        command = find_command(name)
        if command is None:
            from nca.terminal.commands.foreign_names import meant

            self._output.error(f"There is no command /{one_line(name, 60)}; nothing was sent.", meant(name))
            return
        try:
            await self._stoppable("", command.run(self._context, argument.strip()))
        except NcaError as error:
            self._output.error(*error_line(error))

    async def _run_shell(self, line: str) -> None:
        if not self._is_interactive:
            # What comes down a pipe may be anyone's text.
            self._output.error("!COMMAND runs only what a person types; nothing was run and nothing was sent.")
            self._leave_with(UsageError.exit_code)
            return
        try:
            await self._stoppable("Running", self._shell_line.run(line))
        except NcaError as error:
            self._failed_text = line
            self._output.error(*error_line(error))

    async def _prompt_of_server(self, name: str, words: str) -> None:
        """`/mcp:SERVER:PROMPT words`: a message that the server writes."""
        server, _, prompt = name.partition(":")
        try:
            text = await self._working("Asking", self._conversation.servers.prompt(server, prompt, words))
        except NcaError as error:
            self._output.error(*error_line(error))
            return
        if text is not _STOPPED:
            await self._send(text, asked_by=f"/mcp:{name} {words}".rstrip())

    async def _stoppable(self, label: str, work: Coroutine[Any, Any, None]) -> None:
        """Do it; where a signal stops it, say so."""
        if await self._working(label, work) is _STOPPED:
            self.on_stopped()
            self._output.warn("Stopped.")

    async def _working(self, label: str, work: Coroutine[Any, Any, Any]) -> Any:
        """Do it while keys are kept and something moves on the screen."""
        with self.while_working():
            async with self._output.at_work(label):
                return await self._do(work)

    async def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Await `work` so that a signal can stop it; `_STOPPED` when it was stopped and had nothing to say."""
        if self.interrupts.exit_code is not None or (self._is_stopped_early and not self._is_reading):
            work.close()
            return _STOPPED
        self._work = asyncio.create_task(work)
        try:
            return await self._work
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return _STOPPED
        finally:
            self._work = None

    def stop_work(self) -> None:
        if self._is_reading:
            self._is_stopped_early = not self.interrupt_prompt()
        elif self._work is not None:
            self._work.cancel()

    def _stop_all(self) -> None:
        if self._work is not None:
            self._work.cancel()


def _as_typed(text: str) -> str:
    """A message as it is typed, so that it is one again: a first `/` would be a command's."""
    return f"/{text}" if text.startswith("/") else text


def is_message(line: str) -> bool:
    """Whether a line typed while a turn runs is for the model, and not for the prompt to come."""
    text = line.strip()
    is_command = text.startswith("/") and not text.startswith("//")
    return not is_command and not is_shell_line(text) and text.lower() not in _LEAVING_WORDS


@dataclass(slots=True)
class LoopOptions:
    """What `run_loop` gets beside the conversation; see CommandContext for the callbacks.

    banner         lines above the first prompt
    first_prompt   the prompt, where it stands already
    history_file   where typed lines are kept; None: nowhere
    open_session   what /new and /resume open another session with; None: the session stays
    switch_model   opens the named model for a conversation and hands it over, returns what to say; raises NcaError
    after_prompt   called when a conversation's first prompt is on the screen (to warm what is slow)
    """

    banner: Sequence[str] = ()
    first_prompt: FirstPrompt | None = None
    history_file: Path | None = None
    store: Store | None = None
    open_session: OpenSession | None = None
    switch_model: Callable[[Conversation, str], Awaitable[str]] | None = None
    save_setting: Callable[[str, Any], Path] | None = None
    models: Callable[[], Sequence[str]] = tuple
    after_prompt: Callable[[Conversation], None] | None = None


async def run_loop(conversation: Conversation, output: Output, options: LoopOptions, *, directory: Path) -> int:
    """Chat until somebody leaves; returns the exit code. `output` is what listens to the conversation.

    0 left · 130 interrupted · 143, 129 ended by a signal · 141 nobody reads. Without a terminal, where turns failed:
    the code of the last one's error, 1 where a turn ended unfinished or a call needed an approval.
    The conversation that it ends with is closed: /new and /resume put another one in the place of the first.
    """
    from nca.terminal.render.draw import Draw

    context = CommandContext(
        conversation=conversation,
        output=output,
        store=options.store,
        save_setting=options.save_setting,
        models=options.models,
    )
    if options.switch_model:
        switch = options.switch_model
        context.switch_model = lambda name: switch(context.conversation, name)
    context.exchange = exchange = Exchange(context, options.open_session)
    try:
        for line in options.banner:
            output.notice(line)
        if isinstance(output, Draw):
            chat = _with_prompt(context, output, options, directory)
        else:
            chat = _with_lines(context, options)
        exchange.take_up(conversation)
        return await chat.run()
    finally:
        await exchange.close()


def _with_lines(context: CommandContext, options: LoopOptions) -> Chat:
    is_terminal = sys.stdin.isatty()
    reader = LineReader(sys.stdin, prompt=sys.stdout if is_terminal and sys.stdout.isatty() else None)
    chat = Chat(context, reader, is_interactive=is_terminal)

    def interrupt() -> bool:
        if not is_terminal or chat.interrupts.is_second():
            chat.interrupts.end(INTERRUPTED_EXIT_CODE)
        else:
            context.output.notice("Ctrl-C again leaves.")
        return True

    chat.interrupt_prompt = interrupt
    approver: Person = Nobody()
    if is_terminal and sys.stdout.isatty():
        from nca.terminal.panels.plain_approval import LineApprover
        from nca.terminal.panels.plain_question import LineQuestion

        approver = LineApprover(context.output, reader)
        context.ask = LineQuestion(context.output, reader).ask

    def wire(conversation: Conversation) -> None:
        conversation.approvals.person = approver
        if options.after_prompt:
            options.after_prompt(conversation)

    if context.exchange:
        context.exchange.wire = wire
    return chat


def _with_prompt(context: CommandContext, draw: Draw, options: LoopOptions, directory: Path) -> Chat:
    # Imported here: line mode does without prompt_toolkit.
    from nca.terminal.input.first_prompt import FirstPrompt
    from nca.terminal.panels.approval import TerminalApprover
    from nca.terminal.panels.question import KeyQuestion
    from nca.terminal.prompt_reader import PromptReader

    settings = context.conversation.loaded.settings.terminal
    first = options.first_prompt or FirstPrompt(settings, directory, options.history_file)
    reader = PromptReader(context, draw, first, directory, options.after_prompt)
    chat = Chat(context, reader, is_interactive=True)
    reader.is_leaving = chat.interrupts.is_second
    chat.while_chatting = first.quiet_terminal
    chat.while_working = reader.while_working
    chat.on_stopped = reader.prompt.hold_typed_lines
    chat.interrupt_prompt = reader.prompt.interrupt
    reader.prompt.hear_interrupts(chat.interrupts.interrupt)
    context.ask = KeyQuestion(draw, reader.prompt).ask

    def wire(conversation: Conversation) -> None:
        conversation.approvals.person = TerminalApprover(draw, reader.prompt, chat.stop_work)

    if context.exchange:
        context.exchange.wire = wire

    @contextmanager
    def lend_terminal() -> Iterator[None]:
        with chat.interrupts.lent(), reader.prompt.lent_terminal():
            yield

    async def pick() -> SessionInfo | None:
        with lend_terminal():
            return await reader.pick(context.conversation.store)

    context.lend_terminal = lend_terminal
    context.pick = pick
    return chat
