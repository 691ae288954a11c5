"""Run shell commands for one conversation, keep the working directory between them, and report their results."""

from __future__ import annotations

import asyncio
import os
import shlex
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

from nca.config.paths import data_dir, user_config_file
from nca.config.schema import ToolSettings
from nca.context.admission import SAVED, LeftOut, Limits
from nca.context.file_reads import CUT_OFF_BY_USER
from nca.errors import system_reason
from nca.humanize import counted
from nca.models.providers import known_secrets
from nca.process_groups import signal_name
from nca.redact import Redactor
from nca.tools.files.workspace import shown
from nca.tools.programs import ANSWERED, command_environment, find_program, find_shell, path_outside, sandboxed
from nca.tools.shell.command_words import answers_with_1
from nca.tools.shell.output_capture import Output, OutputCapture
from nca.tools.shell.process import Ended, OnOutput, Start, run_process
from nca.tools.tool import EditorTerminal, ToolError, ToolOutcome

_SCRIPT = "trap 'command pwd -P >/dev/fd/{note}' EXIT; eval \"$1\""
"""Reports the final directory on a separate descriptor, so no output can imitate it. Works in POSIX sh."""
MOST_COMMAND_BYTES = 100_000
"""Linux accepts 131,072 bytes in one argument (MAX_ARG_STRLEN)."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command. `directory_note` says where the next one runs, if that has changed.

    `timeout_seconds` is 0 for a command in the background, which has no limit. `ended` is None if it was interrupted.
    """

    output: Output
    ended: Ended | None
    timeout_seconds: float
    directory_note: str = ""
    _: KW_ONLY
    command: str

    @property
    def is_error(self) -> bool:
        """An interrupted command has not failed: its result is unknown. Nor has one whose exit code is an answer."""
        if self.ended is None or (self.ended.exit_code == 1 and answers_with_1(self.command)):
            return False
        return self.ended.is_timeout or self.ended.exit_code != 0

    def summary(self) -> str:
        """In a few words how it ended, and how much it printed."""
        lines = self.output.text.count("\n") + bool(self.output.text and not self.output.text.endswith("\n"))
        printed = counted(lines, "line") if lines else "no output"
        size = f"{self.output.total_bytes:,} bytes" if self.output.saved else printed
        if self.ended is None:
            return f"interrupted · {size}"
        return f"{ending(self.ended, self.timeout_seconds)[1:-1] or 'done'} · {size}"

    @property
    def left_out(self) -> LeftOut | None:
        """The part of the output that the report lacks, if the file beside it has all of it."""
        return self.output.left_out if self.output.saved_bytes == self.output.total_bytes else None

    def outcome(self) -> ToolOutcome:
        """The result of the call that ran it."""
        output = self.output
        return ToolOutcome(
            self.report(),
            self.is_error,
            self.summary(),
            printed=output.text,
            printed_lines=output.lines,
            left_out=self.left_out,
        )

    def report(self) -> str:
        """The output with the notes below; the path of the saved output comes last (nca.sessions.passages)."""
        return "\n".join([self.output.text.rstrip("\n") or "[no output]", *self.notes()])

    def notes(self) -> list[str]:
        """Notes about the command, one line each."""
        notes = [ending(self.ended, self.timeout_seconds) if self.ended is not None else CUT_OFF_BY_USER]
        if self.ended is not None and self.ended.left_running:
            notes.append("[background processes were stopped]")
        if self.ended is not None and self.ended.is_detached:
            notes.append("[a process that it started runs on in another session]")
        notes += [self.directory_note, self._saved()]
        return [note for note in notes if note]

    def _saved(self) -> str:
        if self.output.saved is None:
            return ""
        if self.output.saved_bytes < self.output.total_bytes:
            mebibytes = self.output.saved_bytes // 1_048_576
            return f"[The first {mebibytes} MiB of the output are in {self.output.saved}]"
        return f"{SAVED}{self.output.saved}]"


def ending(ended: Ended, timeout_seconds: float) -> str:
    """A note that says how a command ended; "" for exit code 0."""
    if ended.is_timeout:
        return f"[stopped: it ran longer than {timeout_seconds:g} s]" if timeout_seconds else "[stopped]"
    if ended.exit_code < 0:
        return f"[ended by {signal_name(-ended.exit_code)}]"
    return f"[exit code {ended.exit_code}]" if ended.exit_code else ""


_NEXT = "[The next {} runs in "
_MOST_NOTES = 4
"""Lines below an output, at most."""


@dataclass(eq=False)
class CommandRunner:
    """Runs commands in `root`, or in the directory that the command before changed to.

    settings      called for each command, as is `limits`
    outputs       the folder for outputs that are too large to show, or None
    env           nca's own environment; commands get a part of it
    stays_inside  if a command leaves the project, the next one starts inside again
    left_in       the directory in which an earlier nca left this conversation, as `directory_left` finds it
    terminal      an editor's, which shows the person what is run; commands in the sandbox do not run there
    """

    root: Path
    _: KW_ONLY
    settings: Callable[[], ToolSettings]
    limits: Callable[[], Limits]
    outputs: Callable[[], Path | None] = lambda: None
    env: Mapping[str, str] = field(default_factory=lambda: os.environ)
    stays_inside: bool = True
    left_in: Callable[[], str] = str
    terminal: EditorTerminal | None = None

    def __post_init__(self) -> None:
        self.root = self.directory = Path(os.path.realpath(self.root))
        self._is_begun = False

    def environment(self, *, is_answered: bool = False) -> dict[str, str]:
        """The whole environment of a command. `is_answered`: by a person, in a terminal."""
        settings = self.settings()
        more = (*settings.environment, *(ANSWERED if is_answered else ()))
        return command_environment(self.env, more, settings.variables)

    def check(self, command: str) -> None:
        """Raises ToolError, in one line, for a command that cannot be run here."""
        if not command.strip():
            raise ToolError("there is no command")
        if "\0" in command or any("\ud800" <= char <= "\udfff" for char in command):
            raise ToolError("the command contains a character that is not allowed in a command line")
        if len(command.encode()) > MOST_COMMAND_BYTES:
            raise ToolError(f"the command is longer than {MOST_COMMAND_BYTES:,} bytes; write it to a file and run that")
        self._wrap((self._shell(),), self.root)

    async def run(
        self,
        command: str,
        *,
        argv: tuple[str, ...] | None = None,
        timeout_seconds: float = 0,
        on_output: OnOutput | None = None,
        on_interrupt: Callable[[CommandResult], None] | None = None,
    ) -> CommandResult:
        """Run a command to its end. Raises ToolError. If cancelled, stops the command.

        argv             run this without a shell, and with no program of the project on the PATH; the command must be
                         exactly these words
        timeout_seconds  0: use the setting
        on_output        called with each piece of output, unsanitized
        on_interrupt     called with the output so far if it is cancelled; not for an editor's terminal, which keeps it
        """
        await asyncio.to_thread(self.check, command)
        settings = self.settings()
        limit = min(timeout_seconds or settings.timeout_seconds, settings.max_timeout_seconds)
        directory, captured = self.current_directory(), self.capture()
        start = self.starting(command, directory, argv)
        terminal = self.terminal if argv is None and settings.sandbox == "off" else None
        try:
            try:
                if terminal is not None:
                    ended = await run_in_terminal(
                        terminal, command, start(0), root=self.root, seconds=limit, captured=captured
                    )
                else:
                    ended = await run_process(
                        start, time_limit=asyncio.timeout(limit), captured=captured, on_output=on_output
                    )
            except asyncio.CancelledError:
                # The person waits for the prompt, and to redact a large file takes long.
                captured.drop()
                if terminal is None and on_interrupt is not None:
                    on_interrupt(CommandResult(await self.finished(captured), None, limit, command=command))
                raise
            output = await self.finished(captured)
        except BaseException as error:
            captured.drop()
            if isinstance(error, OSError):
                raise ToolError(f"the command cannot be started: {system_reason(error)}") from error
            raise
        note = self._go_to(directory, ended.note) if argv is None else ""
        return CommandResult(output, ended, limit, note, command=command)

    def current_directory(self) -> Path:
        """The next command's directory: the project's, if the last one's has been removed."""
        if not self._is_begun:
            self._is_begun = True
            with suppress(ValueError):  # the name comes from a log: it may be no path
                left = Path(os.path.realpath(self.root / self.left_in()))
                self.directory = left if left.is_relative_to(self.root) else self.root
        return self.directory if os.path.isdir(self.directory) else self.root

    async def run_with_terminal(self, command: str) -> tuple[int, str]:
        """Run a command that has nca's own terminal, where the person answers it, however long it takes.

        Returns its exit code, and a note of the directory if that has changed. Raises ToolError. If cancelled, ends it.
        """
        await asyncio.to_thread(self.check, command)
        directory, (reader, writer) = self.current_directory(), os.pipe()
        with os.fdopen(reader, "rb", 0) as note:
            os.set_blocking(reader, False)  # a program in the background may hold the other end
            with os.fdopen(writer, "wb", 0):
                start = self.starting(command, directory, None, is_answered=True)(writer)
                try:
                    process = await asyncio.create_subprocess_exec(
                        *start.argv, cwd=directory, env=start.environment, pass_fds=(writer,)
                    )
                except OSError as error:
                    raise ToolError(f"the command cannot be started: {system_reason(error)}") from error
            try:
                code = await process.wait()
            finally:
                if process.returncode is None:
                    with suppress(ProcessLookupError):
                        process.terminate()
            return code, self._go_to(directory, note.read() or b"")

    def starting(
        self, command: str, directory: Path, argv: tuple[str, ...] | None, *, is_answered: bool = False
    ) -> Callable[[int], Start]:
        """How `run_process` starts a command; `argv` as for `run`, `is_answered` as for `environment`."""

        def start(note: int) -> Start:
            script = (self._shell(), "-c", _SCRIPT.format(note=note), "nca", command)
            environment = {**self.environment(is_answered=is_answered), "PWD": str(directory)}
            if argv:
                # Nobody was asked, so what it starts must not be the project's.
                environment["PATH"] = path_outside(environment["PATH"], outside=self.root)
            return Start(self._wrap(argv or script, directory), directory, environment)

        return start

    def capture(self) -> OutputCapture:
        return OutputCapture(self.limits(), self.outputs())

    async def finished(self, captured: OutputCapture) -> Output:
        """What was captured, without keys in its file."""
        return await asyncio.to_thread(captured.finish, Redactor(known_secrets(self.env)).text)

    def _go_to(self, before: Path, note: bytes) -> str:
        """Keep the directory in which the command ended; a note if it has changed."""
        name = os.fsdecode(note.removesuffix(b"\n"))
        if not name.startswith("/") or not os.path.isdir(reached := Path(os.path.realpath(name))):
            self.directory = before
            return ""
        if self.stays_inside and not reached.is_relative_to(self.root):
            self.directory = before
            return f"[{shown(name)} is outside of the project; the next command runs in {self._name(before)} again]"
        self.directory = reached
        # A command that the person runs moves none of the model's.
        which = "command" if self.stays_inside else "! command"
        return "" if reached == before else f"{_NEXT.format(which)}{self._name(reached)}]"

    def _name(self, directory: Path) -> str:
        if directory == self.root or not directory.is_relative_to(self.root):
            return shown(str(directory))
        return shown(directory.relative_to(self.root).as_posix())

    def _shell(self) -> str:
        shell = find_shell(self.environment()["PATH"], outside=self.root)
        if shell is None:
            raise ToolError("there is no shell here (bash or sh)")
        return str(shell)

    def _wrap(self, argv: tuple[str, ...], directory: Path) -> tuple[str, ...]:
        if self.settings().sandbox == "off":
            return argv
        own = (data_dir(self.env), user_config_file(self.env).parent)
        return sandboxed(argv, root=self.root, directory=directory, environment=self.environment(), private=own)


def directory_left(results: Iterable[str]) -> str:
    """The directory in which the next command runs by the notes of these results, newest first; "" if none has one."""
    begin = _NEXT.format("command")
    for text in results:
        for line in reversed(text.splitlines()[-_MOST_NOTES:]):
            if line.startswith(begin) and line.endswith("]"):
                return line[len(begin) : -1]
    return ""


MOST_OUTPUT_BYTES = 1_048_576
"""What the editor is asked to keep of an output. It comes in one message, at the end."""
_CUT = b"[the editor did not keep the beginning]\n"


async def run_in_terminal(
    terminal: EditorTerminal,
    command: str,
    start: Start,
    *,
    root: Path,
    seconds: float,
    captured: OutputCapture,
) -> Ended:
    """Run the command as `run_process` would, with the shell, the directory and the environment of `start`.

    root  the project; none of its programs is started here
    Raises ToolError, OSError. If cancelled, the command is stopped.
    """
    clear = find_program("env", start.environment["PATH"], outside=root)
    if clear is None:
        raise ToolError("there is no program env here, which the editor's terminal needs")
    with tempfile.TemporaryDirectory(prefix="nca-command-") as folder:
        script, note = Path(folder) / "command.sh", Path(folder) / "directory"
        text = _script(command, start.environment, note)
        await asyncio.to_thread(script.write_bytes, os.fsencode(text))
        run = await terminal.run(
            (str(clear), "-i", start.argv[0], str(script)),
            start.directory,
            seconds=seconds,
            most_bytes=MOST_OUTPUT_BYTES,
        )
        said = await asyncio.to_thread(lambda: note.read_bytes() if os.path.exists(note) else b"")
    captured.feed((_CUT if run.is_cut else b"") + run.output.encode("utf-8", "replace"))
    return Ended(run.exit_code, run.is_timeout, False, False, said)


def _script(command: str, environment: Mapping[str, str], note: Path) -> str:
    """Works in POSIX sh. As anywhere else, the command has no input and cannot write where it should not report."""
    variables = [f"export {name}={shlex.quote(value)}" for name, value in environment.items() if name.isidentifier()]
    report = shlex.quote(f"command pwd -P >{shlex.quote(str(note))}")
    return "\n".join([*variables, f"trap {report} EXIT", f"eval {shlex.quote(command)} </dev/null", ""])
