"""Run a command in an editor's terminal, with the environment and the limits of any other command.

The editor starts the program, with variables of its own that may hold keys. So it starts `env -i`, and everything else
is in a private script: the command's whole environment, the command, and where it reports its last directory.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path

from nca.tools.editor import EditorTerminal
from nca.tools.programs import find_program
from nca.tools.shell.output_capture import OutputCapture
from nca.tools.shell.process import Ended, Start
from nca.tools.tool import ToolError

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

    root  the project, whose programs start nothing here
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
        said = await asyncio.to_thread(_read, note)
    captured.feed((_CUT if run.is_cut else b"") + run.output.encode("utf-8", "replace"))
    return Ended(run.exit_code, run.is_timeout, False, False, said)


def _script(command: str, environment: Mapping[str, str], note: Path) -> str:
    """Works in POSIX sh. As anywhere else, the command has no input and cannot write where it should not report."""
    variables = [f"export {name}={shlex.quote(value)}" for name, value in environment.items() if name.isidentifier()]
    report = shlex.quote(f"command pwd -P >{shlex.quote(str(note))}")
    return "\n".join([*variables, f"trap {report} EXIT", f"eval {shlex.quote(command)} </dev/null", ""])


def _read(note: Path) -> bytes:
    return note.read_bytes() if note.exists() else b""
