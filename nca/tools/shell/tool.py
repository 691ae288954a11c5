"""The tools that run commands: shell, which needs approval unless the command provably only reads; and job."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

from nca.file_history import Recorder
from nca.humanize import unambiguous
from nca.tools.files.reading_rules import MAX_CHANGED_BYTES, FilesRead
from nca.tools.files.workspace import Workspace
from nca.tools.shell.command_rules import rule_names, rule_steps
from nca.tools.shell.command_words import (
    command_list,
    mentioned_commands,
    mentioned_names,
    remarks,
)
from nca.tools.shell.computed import computed_in, without_patterns
from nca.tools.shell.jobs import Jobs
from nca.tools.shell.known_commands import read_only_argv
from nca.tools.shell.output_capture import readable
from nca.tools.shell.runner import CommandResult, CommandRunner
from nca.tools.shell.shown_files import searched_folders, shown_by_git
from nca.tools.tool import Approval, Permission, ToolError, ToolOutcome, TypedTool, interrupt_listener, output_listener

_SHOWING = frozenset({"cat", "head", "sed", "tail"})
MOST_WAIT_SECONDS = 600
_NUMBER = re.compile(r"(?m)^ *\d+\t")
"""The prefix of `cat -n` before each line."""


@dataclass(eq=False)
class Shell(TypedTool):
    """Runs command lines in the project. The runner keeps the working directory for the conversation."""

    name: ClassVar[str] = "shell"
    permission: ClassVar[Permission] = "execute"

    runner: CommandRunner
    recorder: Recorder = field(default_factory=Recorder)
    files_read: FilesRead = field(default_factory=FilesRead)
    jobs: Jobs = field(default_factory=Jobs)

    def __post_init__(self) -> None:
        self._workspace = Workspace(self.runner.root)
        self._only_reading: set[str] = set()
        self._lines: dict[str, str] = {}
        """By command: the line to run, in which what needs no rule is as it was checked."""

    async def call(
        self,
        command: Annotated[str, "What to run, as it would be typed into bash."],
        timeout_seconds: Annotated[int, "How long it may run; 0 is the usual limit."] = 0,
        background: Annotated[bool, "To run on; job shows its output."] = False,
    ) -> ToolOutcome:
        """Run a command line with bash in the project's directory. A change of directory holds for the next command.
        There is no terminal and no input. What it leaves running is stopped when it ends. Long output is cut in the
        middle and kept in a file. Prefer the other tools to read, search and edit files."""
        # For a command that only reads, exactly what was checked is what runs.
        argv = self._read_only_argv(command)
        if argv is None and command in self._only_reading:
            raise ToolError("files that the command names changed before it ran; run it again, and the person is asked")
        line = self._lines.pop(command, command)
        recorder = self.recorder if argv is None else Recorder()
        if background:
            job = await self.jobs.start(self.runner, command, argv=argv, recorder=recorder)
            return await job.report()
        async with recorder.command(self.name, command) as recorded:

            def stop(so_far: CommandResult) -> None:
                recorded.said += f"\n{so_far.output.text}"
                interrupt_listener.get()(so_far.outcome())

            result = await self.runner.run(
                line,
                argv=argv,
                timeout_seconds=max(0, timeout_seconds),
                on_output=output_listener.get(),
                on_interrupt=stop,
            )
            recorded.said += f"\n{result.output.text}"
            recorded.runs_on = result.ended is not None and result.ended.is_detached
        if argv is not None:
            await asyncio.to_thread(self._note_shown, command, result.output.text)
        return replace(result, command=command).outcome()

    def summarize(self, arguments: dict[str, Any]) -> str:
        # Joined by blanks, its lines would be another command.
        lines = unambiguous(str(arguments.get("command", "")).strip("\n"), is_command=True).split("\n")
        shown = f"$ {' ⏎ '.join(lines)}"
        return f"{shown} (in the background)" if arguments.get("background") in (True, "true") else shown

    def needs(self, arguments: dict[str, Any]) -> Permission:
        """Depends on the current directory, so ask right before the call."""
        command = arguments.get("command")
        if not isinstance(command, str) or self._read_only_argv(command) is None:
            self._only_reading.discard(str(command))
            return self.permission
        self._only_reading.add(command)
        return "read"

    def approval(self, arguments: dict[str, Any]) -> Approval:
        typed = self._signature.read(arguments)
        command = typed["command"]
        self.runner.check(command)
        directory = self.runner.current_directory()
        where = "" if directory == self.runner.root else f"It runs in {self._workspace.relative(directory)}."
        how = "It runs in the background." if typed.get("background") else ""
        workspace, environment = self._workspace, self.runner.environment()
        # A rule that denies a file means it in a pattern too.
        named = without_patterns(command, workspace=workspace, directory=directory)
        both = dict.fromkeys((command, named))
        names = rule_names(command, workspace=workspace, directory=directory, environment=environment)
        steps, line = rule_steps(command, workspace=workspace, directory=directory, environment=environment)
        if how:
            # There the line is run as it is written.
            needing = tuple(tuple(filter(None, one)) for one in steps)
            steps = needing if all(needing) else ()
        else:
            self._lines[command] = line
        return Approval(
            command=unambiguous(command, is_command=True),
            directory=str(directory),
            warning=" ".join(filter(None, [where, how, *remarks(command)])),
            subject=names[0] if names else "",
            names=names,
            steps=steps,
            parts=tuple(part for text in both for part in mentioned_names(text, directory)),
            commands=tuple(one for text in both for one in mentioned_commands(text)),
            searched=searched_folders(named, directory),
            shown_by_git=shown_by_git(named, directory),
            computed=computed_in(named),
        )

    def _note_shown(self, command: str, output: str) -> None:
        """A file that the command names counts as read if its whole text is in the output."""
        directory = self.runner.current_directory()
        files = without_patterns(command, workspace=self._workspace, directory=directory)
        named = (word for one in command_list(files) or () if one.words[0] in _SHOWING for word in one.words[1:])
        texts = output, _NUMBER.sub("", output)
        for name in named:
            try:
                path = self._workspace.resolve(str(directory / name))
                with self._workspace.open(path, name) as file:
                    raw = file.read(MAX_CHANGED_BYTES + 1)
            except (ToolError, OSError):
                continue  # an option or a number, say
            if any(readable(raw).rstrip("\n") in text for text in texts):
                self.files_read.note(path, raw)

    def _read_only_argv(self, command: str) -> tuple[str, ...] | None:
        runner = self.runner
        return read_only_argv(
            command, workspace=self._workspace, directory=runner.current_directory(), environment=runner.environment()
        )


class JobTool(TypedTool):
    """Shows the output of what `shell` started in the background, and stops it."""

    name: ClassVar[str] = "job"
    permission: ClassVar[Permission] = "read"

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    async def call(
        self,
        number: Annotated[int, "As shell said."],
        wait_seconds: Annotated[int, "Wait so long for its end."] = 0,
        stop: Annotated[bool, "End it."] = False,
    ) -> ToolOutcome:
        """New output of a command in the background."""
        job = self._jobs.find(number)
        if stop:
            await job.stop()
        await job.wait(min(wait_seconds, MOST_WAIT_SECONDS), on_output=output_listener.get())
        return await job.report()

    def summarize(self, arguments: dict[str, Any]) -> str:
        return f"{'stop ' if arguments.get('stop') in (True, 'true') else ''}job {arguments.get('number', '')}"
