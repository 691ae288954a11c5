"""The command `nca`: parses, wires, exits. Each command's module is light; heavy things load when it runs."""

from __future__ import annotations

import errno
import os
import sys

from nca import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes longer to import than all of `nca --version`
    from typing import Any, NoReturn

CHAT = "loop"
VERSION_FLAGS = ("--version", "-V")
HELP_FLAGS = ("--help", "-h")
UTF_8 = "utf-8"
EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED, EXIT_UNREAD = 1, 2, 130, 141
"""Exit codes: 0 done · 1 failed · 2 usage or configuration · 3 provider · 4 does not fit · 5 cost ·
130 interrupted · 143, 129 ended by a signal · 141 nobody reads."""
_OF_WRITING = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ECONNRESET)
"""Errors of a pipe that nobody reads, a full disk, a terminal that was closed."""


def main() -> None:
    """The entry point; errors are one line on stderr and the exit code of their class."""
    arguments = sys.argv[1:]
    if arguments and arguments[0] in VERSION_FLAGS:
        # Before anything is imported: asking for the version is instant.
        try:
            print(f"nca {__version__}", flush=True)
        except OSError as error:
            leave(_unwritten(error))
        return
    _fill_streams()
    try:
        leave(run(arguments))
    except KeyboardInterrupt:
        # It came between two lines of this program, or to the last of its clearing away.
        os._exit(EXIT_INTERRUPTED)


def leave(code: int) -> NoReturn:
    """End the process with `code`, at once where a daemon thread is still at work or litellm is loaded.

    Everything of nca's is closed by now. Python would go on to end such a thread wherever it is, and inside native code
    (the import of litellm, a blocked read of standard input) that aborts the whole process: pthread_exit cannot unwind
    through Rust or C++. And to take litellm apart, object by object, takes a second that a person waits for the shell.
    """
    import threading

    from nca.process_groups import end_all

    end_all()
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        if code:  # said already
            sys.stdout = None
        else:
            code = _unwritten(error)
    try:
        if sys.stderr is not None:
            sys.stderr.flush()
    except OSError:
        sys.stderr = None
    if "litellm" in sys.modules or any(thread.daemon for thread in threading.enumerate()):
        os._exit(code)
    sys.exit(code)


def run(arguments: list[str]) -> int:
    from nca.terminal import signals

    if any(stream and (stream.encoding or UTF_8).lower() != UTF_8 for stream in (sys.stdout, sys.stderr)):
        from nca.terminal.render.glyphs import carry

        carry(sys.stdout, sys.stderr)
    import gc

    # Hundreds of modules are made now, which would be looked through again and again for garbage that there is none of.
    # The chat takes it up when it is open, a command when it begins.
    gc.disable()
    words = _with_command(arguments)
    with signals.at_once() if words[0] == CHAT else signals.raised():
        return _explained(words)


def _explained(arguments: list[str]) -> int:
    """The exit code; what went wrong is one line."""
    from nca.errors import NcaError

    output = sys.stdout
    try:
        return _dispatch(arguments)
    except NcaError as error:
        print(f"nca: {_plain(str(error))}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("nca: interrupted.", file=sys.stderr)
        return EXIT_INTERRUPTED
    except SystemExit as ending:
        if sys.stdout is not output:  # Typer's way to say that nobody reads
            return EXIT_UNREAD
        return ending.code if isinstance(ending.code, int) else EXIT_FAILED
    except OSError as error:
        return _unwritten(error)


def _fill_streams() -> None:
    """Put nothing where a standard stream was closed (`<&-`), or the next file opened would be taken for it."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "r" if name == "stdin" else "w", closefd=False))


def _unwritten(error: OSError) -> int:
    """The exit code for output that could not be written; raises what is another error."""
    from nca.terminal.render.output import BROKEN_PIPE_EXIT_CODE, UNWRITTEN_EXIT_CODE, is_unread, unwritten_line

    if error.errno not in _OF_WRITING:
        raise error
    # Or Python would try again at its end, and complain.
    sys.stdout = None
    if is_unread(error):
        return BROKEN_PIPE_EXIT_CODE
    print(f"nca: {unwritten_line(error)}", file=sys.stderr)
    return UNWRITTEN_EXIT_CODE


def _dispatch(arguments: list[str]) -> int:
    if arguments[0] == CHAT:
        from nca.cli.loop_arguments import read_words

        if (chat := read_words(arguments[1:])) is not None:
            from nca.cli.chat import open_chat

            return open_chat(chat)
    return _with_typer(arguments)


def _with_typer(arguments: list[str]) -> int:
    import gc

    import typer

    from nca.cli.commands import build

    # Typer brings click inside itself or beside itself, depending on its version; this is the class it raises.
    wrong_words: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")
    app = build()
    if not set(HELP_FLAGS) & set(arguments):
        gc.enable()
    try:
        result = app(args=arguments, prog_name="nca", standalone_mode=False)
    except wrong_words as error:
        place = getattr(error, "ctx", None)
        command = place.command_path if place else "nca"
        print(f"nca: {_plain(error.format_message())} Try '{command} --help'.", file=sys.stderr)
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
        return [CHAT, *arguments]
    return arguments


def _plain(text: str) -> str:
    from nca.terminal.render.sanitize import one_line

    return one_line(text)
