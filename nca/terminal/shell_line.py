"""Run `!command` in the chat: show its output as it runs, and add it to the next message. `!` alone takes it away.

The output of `!!command` is not shared, so that one has the person's terminal, as in a shell. Both run in the same
environment as the model's commands, so no key is shown by mistake. A `cd` lasts for the person's next commands in the
same session.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from nca.errors import UsageError
from nca.terminal.render.output import Output
from nca.terminal.render.sanitize import LineSanitizer, one_line
from nca.terminal.render.sessions import place
from nca.terminal.session_switcher import SessionSwitcher

if TYPE_CHECKING:
    from nca.agent.conversation import Conversation
    from nca.tools.shell.runner import CommandResult, CommandRunner

SHOWN_CHARS, SHOWN_LINES = 65_536, 1_000
"""How much output is shown while the command runs. Of the rest, only the end is shown."""
LAST_LINES = 20
SHOWN_NAMES_CHARS = 200
"""Of the names of what goes with the next message."""
_NOT_FOUND = (126, 127)
"""The exit codes of a shell that found no program of this name, or may not run it."""
_TAKES_SCREEN = re.compile(r"\x1b\[\?(?:47|1047|1049)h")
"""How a program begins to draw on the whole screen, as an editor does. It would wait for keys that never come."""
_CODE_CHARS = 8


class ShellLine:
    """Runs the commands of one chat."""

    def __init__(
        self,
        sessions: SessionSwitcher,
        output: Output,
        lend_terminal: Callable[[], AbstractContextManager[object]] | None = None,
    ) -> None:
        """`lend_terminal` is entered while a command has the person's terminal; None: there is none."""
        self._sessions = sessions
        self._output = output
        self._lend_terminal = lend_terminal
        self._told: Path | None = None
        """The directory that was named last."""
        self._made: CommandRunner | None = None
        self._made_for: Conversation | None = None
        self.was_found = True
        """Whether there was such a program the last time; one that ran and failed was found."""

    def gets_terminal(self, line: str) -> bool:
        return line.startswith("!!") and self._lend_terminal is not None

    async def run(self, line: str) -> None:
        """Run `!command` or `!!command`. Raises UsageError, and StoreError if the output could not be shared: then
        nothing was run."""
        from nca.tools.tool import ToolError

        is_shared = not line.startswith("!!")
        command = line.removeprefix("!").removeprefix("!").strip()
        conversation = self._sessions.conversation
        if not command and (waiting := ", ".join(conversation.user_input.waiting)):
            conversation.user_input.forget_waiting()
            self._output.notice(f"Detached from your next message: {one_line(waiting, SHOWN_NAMES_CHARS)}")
            return
        if not command:
            raise UsageError("There is no command after the !.", advice="As in !git status; !!command is not shared.")
        if "\n" in command:
            raise UsageError("A command after ! must be one line; nothing was run and nothing was sent.")
        if is_shared:
            conversation.session.refuse_reader()
        runner = self._runner()
        directory = runner.current_directory()
        where = "" if directory == runner.root else f"in {place(str(directory), runner.root)}"
        if directory != self._told:
            self._output.notice(f"It runs {where}." if where else "It runs in the project's directory.")
        try:
            if self.gets_terminal(line):
                await self._run_with_terminal(command, runner)
            else:
                await self._run_shown(command, where, runner, is_shared=is_shared)
        except ToolError as error:
            raise UsageError(f"!{one_line(command, 60)}: {error}.") from error
        finally:
            self._told = runner.directory

    async def _run_with_terminal(self, command: str, runner: CommandRunner) -> None:
        from nca.tools.shell.process import Ended
        from nca.tools.shell.runner import ending

        assert self._lend_terminal is not None
        with self._lend_terminal():
            code, note = await runner.run_with_terminal(command)
        self.was_found = code not in _NOT_FOUND
        if said := ending(Ended(code, False, False, False, b""), 0):
            self._output.notice(said[1:-1])
        if note:
            self._output.notice(f"{note[1:-1]}.")

    async def _run_shown(self, command: str, where: str, runner: CommandRunner, *, is_shared: bool) -> None:
        """Show its output as it comes, and share it. Raises UsageError, ToolError."""
        from nca.agent.calls import CUT

        conversation, shown = self._sessions.conversation, _Shown(self._output)
        name = f"$ {command}{f'  ({where})' if where else ''}"

        def end(result: CommandResult) -> None:
            if shown.wants_screen:
                return
            shown.finish(result)
            if is_shared:
                conversation.user_input.share_output(name, result.report())
                cut = f", {CUT}" if result.output.lines else ""
                self._output.notice(f"Attached to your next message{cut} (! alone detaches it).")

        running = asyncio.create_task(runner.run(command, on_output=shown.take, on_interrupt=end))
        shown.on_screen = running.cancel
        try:
            result = await running
        except asyncio.CancelledError:
            if not shown.wants_screen:
                raise
            advice = f"!!{command} gives it your terminal." if self._lend_terminal else "Run it in a terminal."
            raise UsageError(
                f"{one_line(command, 60)} draws on the whole screen, so it was stopped.", advice=one_line(advice, 80)
            ) from None
        self.was_found = result.ended is None or result.ended.exit_code not in _NOT_FOUND
        end(result)

    def _runner(self) -> CommandRunner:
        # Imported here: most chats run no command.
        from nca.context.admission import Limits
        from nca.tools.shell.runner import CommandRunner

        sessions = self._sessions
        if self._made is None or self._made_for is not sessions.conversation:
            self._made_for = sessions.conversation
            self._made = CommandRunner(
                sessions.conversation.directory,
                settings=lambda: sessions.conversation.loaded.settings.tools,
                limits=lambda: Limits.of(sessions.conversation.loaded.settings.context.admission),
                outputs=lambda: sessions.conversation.store.outputs_folder(sessions.conversation.session.info.id),
                stays_inside=False,
            )
            self._told = self._made.root
        return self._made


class _Shown:
    """Shows output: whole lines as they arrive, up to a size, then its end."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._sanitizer = LineSanitizer()
        self._chars = 0
        self._lines = 0
        self._last = ""
        self.wants_screen = False
        self.on_screen: Callable[[], object] = lambda: None
        """Called once the program begins to draw on the whole screen; nothing is shown from then on."""

    def take(self, text: str) -> None:
        begun, self._last = self._last + text, text[-_CODE_CHARS:]
        if not self.wants_screen and _TAKES_SCREEN.search(begun):
            self.wants_screen = True
            self.on_screen()
        if self.wants_screen:
            return
        if self._is_full:
            self._chars += len(text)
            return
        self._show(self._sanitizer.feed(text))

    def finish(self, result: CommandResult) -> None:
        was_full = self._is_full
        self._show([rest] if (rest := self._sanitizer.finish()) and not was_full else [])
        if was_full:
            self._output.notice("… not all of it is shown; it ends with:")
            self._output.show("\n".join(result.output.text.split("\n")[-LAST_LINES:]))
        # A person who stopped it knows that.
        for note in result.notes()[result.ended is None :]:
            self._output.notice(f"{note[1:-1]}{'.' * (note == result.directory_note)}")

    @property
    def _is_full(self) -> bool:
        return self._chars > SHOWN_CHARS or self._lines > SHOWN_LINES

    def _show(self, lines: list[str]) -> None:
        if lines:
            self._lines += len(lines)
            self._chars += sum(map(len, lines))
            self._output.show("\n".join(lines))
