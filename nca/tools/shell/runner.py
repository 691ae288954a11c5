"""Commands of one chat, run one after the other: the shell, its working directory, and what is said of an outcome."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from nca.config.paths import data_dir, user_config_file
from nca.config.schema import AdmissionSettings, ToolSettings
from nca.models.api_keys import known_secrets
from nca.redact import Redactor
from nca.tools.files.workspace import shown
from nca.tools.programs import find_shell
from nca.tools.shell.environment import command_environment
from nca.tools.shell.output_capture import Output, OutputCapture
from nca.tools.shell.process import Ended, OnOutput, Start, run_process
from nca.tools.shell.sandbox import sandboxed
from nca.tools.tool import ToolError

_SCRIPT = "trap 'command pwd -P >/dev/fd/{note}' EXIT; eval \"$1\""
"""The directory in which the command ends comes by a descriptor of its own, so no output can pass for it. POSIX sh."""
MOST_COMMAND_BYTES = 100_000
"""Linux takes 131,072 bytes in one argument (MAX_ARG_STRLEN)."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What came of a command. `directory_note` says where the next one runs, where that is not where this one ran."""

    output: Output
    ended: Ended
    timeout_seconds: float
    directory_note: str = ""

    @property
    def is_error(self) -> bool:
        return self.ended.is_timeout or self.ended.exit_code != 0

    @property
    def summary(self) -> str:
        lines = self.output.text.count("\n") + bool(self.output.text and not self.output.text.endswith("\n"))
        size = f"{self.output.total_bytes:,} bytes" if self.output.saved else f"{lines:,} lines"
        return f"{self._ending()[1:-1] or 'done'} · {size}"

    def report(self) -> str:
        """The output, and below it all there is to know; where the whole is comes last (nca.sessions.passages)."""
        return "\n".join([self.output.text.rstrip("\n") or "[no output]", *self.notes()])

    def notes(self) -> list[str]:
        """What is to be said of it beside its output, a line each."""
        notes = [self._ending()]
        if self.ended.left_running:
            notes.append("[what was still running in the background was stopped]")
        if self.ended.is_detached:
            notes.append("[something that it started goes on in a session of its own]")
        notes += [self.directory_note, self._saved()]
        return [note for note in notes if note]

    def _ending(self) -> str:
        if self.ended.is_timeout:
            return f"[stopped: it ran longer than {self.timeout_seconds:g} seconds]"
        if self.ended.exit_code >= 0:
            return f"[exit code {self.ended.exit_code}]" if self.ended.exit_code else ""
        try:
            name = signal.Signals(-self.ended.exit_code).name
        except ValueError:
            name = str(-self.ended.exit_code)
        return f"[ended by {name}]"

    def _saved(self) -> str:
        if self.output.saved is None:
            return ""
        if self.output.saved_bytes < self.output.total_bytes:
            mebibytes = self.output.saved_bytes // 1_048_576
            return f"[The first {mebibytes} MiB of the output are in {self.output.saved}]"
        return f"[The whole output is in {self.output.saved}]"


class CommandRunner:
    """Runs commands in `root`, or where the command before has gone to.

    settings      asked anew for each command, as `limits` is
    outputs       where outputs go that are too large to show; None: nowhere
    env           nca's own environment, of which commands get a part
    stays_inside  a command may leave the project, but the next one begins inside of it again
    """

    def __init__(
        self,
        root: Path,
        *,
        settings: Callable[[], ToolSettings],
        limits: Callable[[], AdmissionSettings],
        outputs: Callable[[], Path | None] = lambda: None,
        env: Mapping[str, str] = os.environ,
        stays_inside: bool = True,
    ) -> None:
        self.root = Path(os.path.realpath(root))
        self.directory = self.root
        self._settings = settings
        self._limits = limits
        self._outputs = outputs
        self._env = env
        self._stays_inside = stays_inside

    def environment(self) -> dict[str, str]:
        """What commands get, and nothing else."""
        return command_environment(self._env, self._settings().environment)

    def check(self, command: str) -> None:
        """Raises ToolError, in one line, for a command that cannot be run here."""
        if os.name != "posix":
            raise ToolError("commands can be run on Linux and macOS only")
        if not command.strip():
            raise ToolError("there is no command")
        if "\0" in command or any("\ud800" <= char <= "\udfff" for char in command):
            raise ToolError("the command holds a character that no command line can")
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
    ) -> CommandResult:
        """Run it to its end. Raises ToolError; cancelled, it stops what runs.

        argv             what to run in the shell's place, for a command that is no more than these words
        timeout_seconds  0: the setting
        on_output        gets the output as it comes, in pieces, uncleaned
        """
        await asyncio.to_thread(self.check, command)
        settings = self._settings()
        limit = min(timeout_seconds or settings.timeout_seconds, settings.max_timeout_seconds)
        # The directory may have been removed meanwhile.
        directory = self.directory if self.directory.is_dir() else self.root
        captured = OutputCapture(self._limits(), self._outputs())

        def start(note: int) -> Start:
            script = (self._shell(), "-c", _SCRIPT.format(note=note), "nca", command)
            environment = {**self.environment(), "PWD": str(directory)}
            return Start(self._wrap(argv or script, directory), directory, environment)

        try:
            ended = await run_process(start, timeout_seconds=limit, captured=captured, on_output=on_output)
            output = await asyncio.to_thread(captured.finish, Redactor(known_secrets(self._env)).text)
        except BaseException as error:
            captured.drop()
            if isinstance(error, OSError):
                raise ToolError(f"the command cannot be started: {error.strerror}") from error
            raise
        return CommandResult(output, ended, limit, self._go_to(directory, ended.note) if argv is None else "")

    def _go_to(self, before: Path, note: bytes) -> str:
        """Remember where the command has ended; the line that says so, where it is not where it began."""
        name = os.fsdecode(note.removesuffix(b"\n"))
        if not name.startswith("/") or not (reached := Path(os.path.realpath(name))).is_dir():
            self.directory = before
            return ""
        if self._stays_inside and not reached.is_relative_to(self.root):
            self.directory = before
            return f"[{shown(name)} is outside of the project; the next command runs in {self._name(before)} again]"
        self.directory = reached
        return "" if reached == before else f"[The next command runs in {self._name(reached)}]"

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
        if self._settings().sandbox == "off":
            return argv
        own = (data_dir(self._env), user_config_file(self._env).parent)
        return sandboxed(argv, root=self.root, directory=directory, environment=self.environment(), private=own)
