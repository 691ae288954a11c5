"""The entry point of the `nca` command: run a command, print its error, exit with its code.

Nothing heavy is imported here; each command imports its needs when it runs.
"""

from __future__ import annotations

import errno
import os
import sys

from nca import __version__
from nca.cli import COMMANDS, COMPLETE_VARIABLE, HELP_FLAGS, VERSION_FLAGS

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes longer to import than all of `nca --version`
    from typing import Any, NoReturn

CHAT = "loop"
UTF_8 = "utf-8"
EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED, EXIT_BROKEN_PIPE = 1, 2, 130, 141
"""Exit codes: 0 success · 1 failure · 2 usage or configuration · 3 provider · 4 context too large · 5 cost limit ·
130 interrupted · 143, 129, 131 ended by a signal · 141 broken pipe."""
_WRITE_ERRORS = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ECONNRESET)
"""A broken pipe, a full disk, a closed terminal."""


def main() -> None:
    """Run the command line. An error is one line on stderr, and its class gives the exit code."""
    arguments = sys.argv[1:]
    if arguments and arguments[0] in VERSION_FLAGS:
        # Before anything else is imported, so that it is instant.
        try:
            print(f"nca {__version__}", flush=True)  # noqa: T201
        except OSError as error:
            leave(_write_failed(error))
        return
    _fill_streams()
    try:
        leave(run(arguments))
    except KeyboardInterrupt:
        # It arrived outside of any handler, or during the last cleanup.
        os._exit(EXIT_INTERRUPTED)


def leave(code: int) -> NoReturn:
    """End the process with `code`; without Python's cleanup if a daemon thread is running or litellm is loaded.

    nca has closed everything by now. Python's cleanup would end such a thread wherever it is, and inside native code
    (the import of litellm, a blocked read of standard input) that aborts the process: pthread_exit cannot unwind
    through Rust or C++. Destroying litellm's objects would also keep the shell waiting for a second.
    """
    import threading

    from nca.process_groups import end_all

    end_all()
    if "nca.telemetry.spans" in sys.modules:
        sys.modules["nca.telemetry.spans"].send_rest()
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        if code:  # an error was reported already
            sys.stdout = None
        else:
            code = _write_failed(error)
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

    if sys.flags.utf8_mode or any(
        stream and (stream.encoding or UTF_8).lower() != UTF_8 for stream in (sys.stdout, sys.stderr)
    ):
        from nca.terminal.render.stream_writer import replace_unencodable

        replace_unencodable(sys.stdout, sys.stderr)
    import gc

    # Imports create many objects and no garbage, so collecting now would only cost time. The chat enables it again once
    # it is open, the other commands when they begin.
    gc.disable()
    words = with_command(arguments)
    signals.wait_for_children()
    with signals.at_once() if words[0] == CHAT else signals.raised():
        return _run_and_report(words)


def _run_and_report(arguments: list[str]) -> int:
    """Run the command and return its exit code; print an error as one line."""
    from nca.cli.printing import echo
    from nca.errors import NcaError

    output = sys.stdout
    try:
        return _dispatch(arguments)
    except NcaError as error:
        from nca.terminal.render.event_lines import shell_words

        _complain(shell_words(str(error)))
        return error.exit_code
    except KeyboardInterrupt:
        echo("nca: interrupted.", err=True)
        return EXIT_INTERRUPTED
    except SystemExit as ending:
        if sys.stdout is not output:  # how Typer reports a broken pipe
            return EXIT_BROKEN_PIPE
        return ending.code if isinstance(ending.code, int) else EXIT_FAILED
    except OSError as error:
        return _write_failed(error)


def _dispatch(arguments: list[str]) -> int:
    """Run the command. A failure is also written on standard output, if a format for programs was asked for."""
    from nca.errors import NcaError

    try:
        return _call(arguments)
    except NcaError as error:
        if any(word.startswith(("--json", "--stream")) for word in arguments):
            from nca.cli.run import write_failure

            write_failure(arguments, error)
        raise


def _has_directory() -> bool:
    from pathlib import Path

    try:
        Path.cwd()
    except FileNotFoundError:
        return False
    return True


def _complain(text: str) -> None:
    """Report an error as one line, which a terminal shows broken between words."""
    from nca.cli.early_questions import wrapped
    from nca.cli.printing import echo
    from nca.terminal.render.sanitize import one_line

    line = f"nca: {one_line(text)}"
    echo(wrapped(line) if sys.stderr.isatty() else line, err=True)


def _fill_streams() -> None:
    """Open something for a standard stream that was closed (`<&-`), or the next file opened would take its place.

    For standard output that is a pipe that nobody reads: an answer that nobody sees is not a success.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            # The next file that is opened takes the lowest free number: this one.
            if name == "stdout":
                _, writer = os.pipe()
                os.dup2(writer, number)
                os.close(writer)
            else:
                os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "r" if name == "stdin" else "w", closefd=False))


def _write_failed(error: OSError) -> int:
    """The exit code for a failed write to standard output. Raises any other error again."""
    from nca.cli.printing import echo
    from nca.terminal.render.stream_writer import is_broken_pipe, write_error_exit_code, write_error_line

    if error.errno not in _WRITE_ERRORS:
        raise error
    # Or Python would write again at exit, and print an error.
    sys.stdout = None
    if not is_broken_pipe(error):
        echo(f"nca: {write_error_line(error)}", err=True)
    return write_error_exit_code(error)


def _call(arguments: list[str]) -> int:
    from nca.errors import NcaError, system_reason

    try:
        return _parse_and_call(arguments)
    except FileNotFoundError as error:
        if _has_directory():
            raise
        advice = "Change to another one, for example with cd."
        raise NcaError("The directory that you are in was deleted.", advice=advice) from error
    except PermissionError as error:
        if not isinstance(error.filename, str):
            raise
        advice = "It may belong to another user, for example after a command with sudo."
        raise NcaError(f"{error.filename}: cannot be used ({system_reason(error)}).", advice=advice) from error


def _parse_and_call(arguments: list[str]) -> int:
    if os.environ.get(COMPLETE_VARIABLE):
        # A shell asks what could follow: no chat, whatever the arguments are.
        from typer.completion import completion_init  # type: ignore[attr-defined]  # where Typer itself takes it from

        completion_init()
        return _with_typer([])
    _use_stored_keys()
    if arguments[0] == CHAT:
        from nca.cli.loop_arguments import parse

        if (chat := parse(arguments[1:])) is not None:
            from nca.cli.chat import open_chat

            return open_chat(chat)
    return _with_typer(arguments)


def _use_stored_keys() -> None:
    from nca.config.paths import keys_file
    from nca.errors import ConfigError
    from nca.safe_files import is_missing

    try:
        if not is_missing(keys_file(os.environ)):
            from nca.models.keys import use

            use(os.environ)
    except ConfigError:  # no home directory, or a file that cannot be read: whoever needs it says so
        return


def _with_typer(arguments: list[str]) -> int:
    import gc

    import typer

    from nca.cli.commands import build
    from nca.cli.printing import echo
    from nca.errors import UsageError
    from nca.terminal.render.sanitize import one_line

    # Newer Typer bundles click, older Typer imports it: take the class from the error itself.
    usage_error: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")
    app = build(arguments[0] if arguments else None)
    if not set(HELP_FLAGS) & set(arguments):
        gc.enable()
    try:
        result = app(args=arguments, prog_name="nca", standalone_mode=False)
    except usage_error as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # Typer has printed the help
            return EXIT_USAGE
        place = getattr(error, "ctx", None)
        _drop_weak_matches(error)
        command = place.command_path if place else _command_path(app, arguments)
        said = _in_english(one_line(error.format_message()), command, type(error).__name__)
        raise UsageError(said, advice=f"Try '{command} --help'.") from error
    except typer.Abort:
        echo("nca: interrupted.", err=True)
        return EXIT_INTERRUPTED
    except typer.Exit as leave:
        return leave.exit_code
    return result if isinstance(result, int) else 0


def _command_path(command: Any, arguments: list[str]) -> str:
    """The command that the arguments name: an option without its value is refused before there is a context."""
    words = ["nca"]
    for word in arguments:
        command = getattr(command, "commands", {}).get(word)
        if command is None:
            break
        words.append(word)
    return " ".join(words)


_NEAR_RATIO = 0.72
"""How alike (difflib) an option is that may be meant."""
_PLAIN = {
    "Value error, ": "",  # how Typer names the kind of error that its own check raised
    "Input should be a valid integer, unable to parse string as an integer": "it is not a whole number",
    "Input should be a valid number, unable to parse string as a number": "it is not a number",
    "Input should be greater than or equal to": "it must be at least",
    "Input should be less than or equal to": "it must be at most",
}


def _in_english(said: str, command: str, kind: str) -> str:
    """Typer's words for a wrong option or word of a command, in whole sentences; for a message, how it is written."""
    import re  # --version does without it

    for words, plain in _PLAIN.items():
        said = said.replace(words, plain)
    _, is_extra, words = said.partition("Got unexpected extra argument")
    if is_extra:
        said = f"{command} takes no {words.partition(' (')[2][:-1]!r}."
    elif said[-1:] not in ".?!":
        said += "."
    unknown = said.partition("No such command '")[2].partition("'.")[0]
    if unknown and "Did you mean" not in said and (others := _elsewhere(unknown)):
        return f"{said} Did you mean {' or '.join(others)}?"
    if unknown and command == "nca" and "Did you mean" not in said:
        return f'{said} A message to the model: nca loop "TEXT" in a chat, nca run "TEXT" for one answer.'
    # What people type who ask other agents a question in the shell.
    if said.startswith(("No such option: -p.", "No such option: --print.", "No such option: --print ")):
        return f"{said} One answer without a chat: nca run TEXT."
    if command != "nca run":
        return said
    if is_extra:
        return f"{said} Put a message of several words in quotes."
    # A word such as --timeout is a mistaken option; -1/2 and "--x y" are texts.
    is_text = kind == "NoSuchOption" and not re.match(r"No such option: --[\w-]+(?: \(|\.$)", said)
    return f"{said} Put a text that begins with - after --." if is_text else said


def _drop_weak_matches(error: Any) -> None:
    """Leave only the options that may be meant: Typer compares the leading -- too, and offers --trust for --output."""
    from difflib import get_close_matches

    if getattr(error, "possibilities", None):
        named = {one.lstrip("-"): one for one in error.possibilities}
        near = get_close_matches(error.option_name.lstrip("-"), named, cutoff=_NEAR_RATIO)
        error.possibilities = [named[one] for one in near]


def _elsewhere(name: str) -> list[str]:
    """The commands of this name, whole, in all groups."""
    from nca.cli.commands import build

    whole = build()
    own = [f"nca {name}"] if name in whole.commands else []
    groups = ((group, getattr(command, "commands", {})) for group, command in whole.commands.items())
    return own + [f"nca {group} {name}" for group, commands in groups if name in commands]


def with_command(arguments: list[str]) -> list[str]:
    """The arguments with their command first, which may stand behind options: `nca -m MODEL run "TEXT"`.

    It is `loop` if they name none: `nca`, `nca -m MODEL`, `nca "fix the tests"`.
    """
    first = arguments[0] if arguments else ""
    if first.startswith("-") and first not in HELP_FLAGS and (place := _place_of_command(arguments)):
        # At the end: a word of a group's own comes before them.
        words, options = arguments[place:], arguments[:place]
        end = words.index("--") if "--" in words else len(words)
        return [*words[:end], *options, *words[end:]]
    is_chat = not arguments or (first.startswith("-") and first not in HELP_FLAGS) or len(first.split()) > 1
    return [CHAT, *arguments] if is_chat else arguments


def _place_of_command(words: list[str]) -> int:
    """Where a command stands behind options; 0 for none. An option that the chat does not have may have a value."""
    from nca.cli.loop_arguments import SWITCHES, VALUES

    has_value = may_have = False
    for place, word in enumerate(words):
        if word in (*HELP_FLAGS, "--"):
            break
        if word.startswith("-"):
            has_value = word in VALUES or SWITCHES.get(word) == "resume"
            may_have = word not in SWITCHES and "=" not in word
        elif word in COMMANDS and not has_value:
            return place
        elif has_value or may_have:
            has_value = may_have = False
        else:
            break
    return 0
