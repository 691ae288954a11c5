"""The command `nca`: parses, wires, exits. Each command's module is light; heavy things load when it runs."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from typing import Any, NoReturn

from nca import __version__

VERSION_FLAGS = ("--version", "-V")
HELP_FLAGS = ("--help", "-h")
EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130
"""Exit codes: 0 done · 1 failed · 2 usage or configuration · 3 provider · 4 does not fit · 130 interrupted."""


def main() -> None:
    """The entry point; errors are one line on stderr and the exit code of their class."""
    arguments = sys.argv[1:]
    if arguments and arguments[0] in VERSION_FLAGS:
        # Before anything is imported: asking for the version is instant.
        print(f"nca {__version__}")
        return
    leave(run(arguments))


def leave(code: int) -> NoReturn:
    """End the process with `code`, at once where a daemon thread is still at work or litellm is loaded.

    Everything of nca's is closed by now. Python would go on to end such a thread wherever it is, and inside native code
    (the import of litellm, a blocked read of standard input) that aborts the whole process: pthread_exit cannot unwind
    through Rust or C++. And to take litellm apart, object by object, takes a second that a person waits for the shell.
    """
    if "litellm" in sys.modules or any(thread.daemon for thread in threading.enumerate()):
        for stream in (sys.stdout, sys.stderr):
            # A reader that is gone, or a full disk: there is nobody left to tell.
            with contextlib.suppress(AttributeError, OSError, ValueError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


def run(arguments: list[str]) -> int:
    from nca.errors import NcaError

    try:
        return _dispatch(arguments)
    except NcaError as error:
        print(f"nca: {_plain(str(error))}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("nca: interrupted.", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output is gone; say nothing, and keep Python from complaining at exit.
        sys.stdout = None
        return EXIT_FAILED


def _dispatch(arguments: list[str]) -> int:
    import typer

    from nca.cli.commands import build

    # Typer brings click inside itself or beside itself, depending on its version; this is the class it raises.
    wrong_words: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")
    try:
        result = build()(args=_with_command(arguments), prog_name="nca", standalone_mode=False)
    except wrong_words as error:
        print(f"nca: {_plain(error.format_message())} Try 'nca --help'.", file=sys.stderr)
        return EXIT_USAGE
    except typer.Abort:
        print("nca: interrupted.", file=sys.stderr)
        return EXIT_INTERRUPTED
    except typer.Exit as leave:
        return leave.exit_code
    return result if isinstance(result, int) else 0


def _with_command(arguments: list[str]) -> list[str]:
    """`nca` alone and `nca -m MODEL` are `nca loop`."""
    if not arguments or (arguments[0].startswith("-") and arguments[0] not in HELP_FLAGS):
        return ["loop", *arguments]
    return arguments


def _plain(text: str) -> str:
    from nca.terminal.sanitize import to_terminal

    return to_terminal(" ".join(text.split()))
