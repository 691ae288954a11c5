"""`nca run`: send one message without a terminal."""

from __future__ import annotations

import io
import os
import select
import stat
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nca.cli import flags
from nca.cli.printing import echo
from nca.cli.startup import latest_here, load_settings, open_conversation, open_store, rules_of, settings_of
from nca.errors import NcaError, UsageError
from nca.terminal.render.sanitize import json_to_terminal, one_line
from nca.terminal.render.sessions import short_id
from nca.terminal.signals import INTERRUPTED_EXIT_CODE

if TYPE_CHECKING:
    from nca.agent.conversation import Conversation
    from nca.agent.prompt_commands import CalledPrompt
    from nca.agent.stats import ContextStats
    from nca.config.loaded import LoadedSettings
    from nca.config.schema import TerminalSettings
    from nca.config.tables import PermissionRule
    from nca.events import ApprovalAsked, Event, Failure, TurnFinished
    from nca.messages import Usage
    from nca.sessions.view_rows import CompactionRecord
    from nca.terminal.interrupts import Interrupts
    from nca.words import Words

STREAMS = ("ndjson",)
SILENT_SECONDS = 3.0
"""A pipe that has said nothing for this long is named, once."""


@dataclass(frozen=True)
class RunResult:
    """What `nca run --json` prints, in one line.

    session_id     as --session takes it; None if the session is not kept
    reason         answered: a whole answer; all others: see `turn_finished`
    text           the answer as far as it came
    error          what ended the turn; None if nothing did
    steps          requests of the turn
    usage          of the session
    turn_usage     of the turn, summaries included
    turn_cost      US dollars for all requests of turn_usage; None if a price is unknown
    files_changed  the paths of the files that the turn changed, as far as recorded
    unanswered     the calls that needed an approval, each in one line; nobody could be asked
    compactions    of the session, oldest first, those that were undone included
    """

    session_id: str | None
    model: str
    reason: str
    text: str
    error: Failure | None
    steps: int
    seconds: float
    usage: Usage
    turn_usage: Usage
    turn_cost: float | None
    files_changed: tuple[str, ...]
    unanswered: tuple[str, ...]
    context: ContextStats
    compactions: list[CompactionRecord]


PROMPT_HELP = "The message. Piped input is sent with it as data; without a message, or with -, it is the message."


def run(
    prompt: Annotated[str | None, typer.Argument(help=PROMPT_HELP)] = None,
    model: flags.Model = None,
    session: Annotated[
        str | None,
        typer.Option(
            "--session", "--resume", "-r", help="Continue this session (id or name).", autocompletion=flags.sessions
        ),
    ] = None,
    continue_: flags.Continue = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object: the answer and the figures.")] = False,
    stream: Annotated[
        str | None,
        typer.Option(help="ndjson: print every event as a line of JSON.", autocompletion=flags.one_of(lambda: STREAMS)),
    ] = None,
    system: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="A system prompt in place of nca's own. Instructions and skills stay."),
    ] = None,
    max_steps: Annotated[str | None, typer.Option(help="Stop after this many requests.")] = None,
    compact_threshold: flags.CompactThreshold = None,
    disable_compaction: flags.DisableCompaction = False,
    context_window: flags.ContextWindow = None,
    max_output_tokens: flags.MaxOutputTokens = None,
    permission: flags.Permission = None,
    allow: flags.Allow = None,
    max_cost: flags.MaxCost = None,
    fit: flags.Fit = None,
    trust: flags.Trust = False,
    profile: flags.Profile = None,
    config: flags.Config = None,
) -> int:
    """Send one message and print the answer. Notices go to standard error."""
    import asyncio

    given = settings_of(**locals())
    if stream is not None and stream not in STREAMS:
        raise UsageError(f"--stream: {stream!r} is not valid; valid: {', '.join(STREAMS)}.")
    for one, other, are_both in (
        ("--continue", "--session", continue_ and session is not None),
        ("--json", "--stream", as_json and stream is not None),
    ):
        if are_both:
            raise UsageError(f"{one} and {other} exclude each other.")
    loaded = load_settings(given, config, trust=trust)
    rules, message = rules_of(allow, loaded), _message(prompt)
    return asyncio.run(_turn(loaded, message, rules, session, as_json, stream, continues=continue_))


def write_failure(words: Sequence[str], error: NcaError) -> None:
    """Print any command's failure in the format that its words ask for, also where they cannot be parsed."""
    from nca.events import ErrorRaised

    options, is_run = words[: words.index("--")] if "--" in words else words, words[0] == "run"
    asked = [f"--stream={stream}" in options or ("--stream", stream) in pairwise(options) for stream in STREAMS]
    if is_run and any(asked):
        _write_event(ErrorRaised.of(error))
    elif "--json" in options:
        _write_json({**({"reason": "failed", "text": ""} if is_run else {}), "error": _described(error)})


def _message(prompt: str | None) -> CalledPrompt:
    """The prompt, which the person typed, and the piped text, which anybody may have written.

    A prompt such as `/review 12` calls a skill or a command of the person's own, as a line of the chat does.
    """
    from nca.words import merged, words

    if prompt == "-":
        piped, prompt = _piped(beside=False), None
    else:
        piped = "" if sys.stdin.isatty() else _piped(beside=bool(prompt))
    beside = words(piped, "piped") if piped.strip() else ()
    typed = words(prompt) if prompt and prompt.strip() else ()
    called = _called(typed)
    said = (*called.message, *(words("\n") if typed and beside else ()), *beside)
    if not said:
        raise UsageError("The message is empty. Pass a prompt or pipe one in.")
    return replace(called, message=merged(said))


def _piped(*, beside: bool) -> str:
    """All of standard input, which goes `beside` a message or is one.

    A pipe that stays open and silent is named: whoever waits should know for what.
    """
    if not select.select([sys.stdin], [], [], SILENT_SECONDS)[0]:
        advice = "; `</dev/null` sends the message alone" if beside else ""
        line = f"nca run: waiting for standard input, which is open and silent{advice}."
        echo(line, err=True)
    raw = sys.stdin.buffer.read()
    if b"\0" in raw:
        raise UsageError("The piped input is not text.", advice="Nothing was sent.")
    # A program that starts nca may leave it an empty pipe, and /dev/null is nobody's mistake.
    if not raw and beside and sys.stderr.isatty() and not stat.S_ISCHR(os.fstat(sys.stdin.fileno()).st_mode):
        echo("nca run: standard input is empty; the message is sent alone.", err=True)
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line = f"nca run: byte {error.start + 1:,} of the piped input is not UTF-8; each such byte is sent as �."
        echo(line, err=True)
        return raw.decode("utf-8", "replace")


def _called(typed: Words) -> CalledPrompt:
    """The message, or the skill or custom command that it names as a line of the chat does.

    Raises UsageError for another command: in the chat it would be no message either.
    """
    from nca.agent.prompt_commands import CalledPrompt, find_prompts
    from nca.terminal.input.line_kind import line_kind, message_of
    from nca.words import part_of, stripped, text_of

    if not text_of(typed).startswith("/") or line_kind(typed, partial(find_prompts, Path.cwd())) != "command":
        return CalledPrompt(message_of(typed))
    from nca.terminal.commands.command import find_whole, named, nearest, short_for

    name, _ = named(text_of(typed))
    prompts, is_ours = find_prompts(Path.cwd()), find_whole(name) is not None
    begun = [] if is_ours else [name] if name in prompts else list(short_for(name, prompts))
    if len(begun) == 1 and begun[0] in prompts:
        return prompts[begun[0]].call(stripped(part_of(typed, len(f"/{name}"))), Path.cwd())
    meant = "" if is_ours else next((one for one in begun if one in prompts), nearest(name, prompts))
    hint = f"Did you mean /{one_line(meant, 60)}? " if meant else ""
    what = "/{} is a command of the chat" if is_ours or begun else "There is no command /{}"
    raise UsageError(
        f"{what.format(one_line(name, 60))}; nothing was sent.", advice=f"{hint}//… sends a message that begins with /."
    )


def _described(error: NcaError | Failure, session: str = "") -> Failure:
    from nca.events import Failure
    from nca.terminal.render.event_lines import in_shell

    return Failure(error.message, in_shell(error.advice, session), error.exit_code)


async def _turn(
    loaded: LoadedSettings,
    message: CalledPrompt,
    rules: Sequence[PermissionRule],
    session: str | None,
    as_json: bool,
    stream: str | None,
    *,
    continues: bool,
) -> int:
    from nca.events import Notice
    from nca.terminal.interrupts import Interrupts, Stopped

    interrupts = Interrupts(ends_at_first=True)
    printer = _TurnPrinter(as_json, stream, interrupts, loaded.settings.terminal)
    is_new = not (continues or session)
    if not is_new and not loaded.settings.session.persist:
        advice = "NCA_SESSION__PERSIST=true keeps them in one run."
        raise UsageError("Sessions are not kept (session.persist is off), so none can be continued", advice=advice)
    with open_store(loaded, printer.on_event, is_new=is_new) as store:
        if continues:
            found = latest_here(store, lambda text: printer.on_event(Notice(text)), kind="run")
            session = found.id if found is not None else None
        conversation = await open_conversation(loaded, store, printer.on_event, session=session, kind="run")
        conversation.approvals.session_rules += rules
        printer.session = short_id(conversation.session.info.id) if store.path is not None else ""
        try:
            with interrupts.handled():
                conversation.take_back(message.message)
                before = conversation.context.last_exchange()
                if before.asked and not before.answer.strip():
                    printer.on_event(Notice("Your last message has no answer yet; it is sent along."))
                sending = conversation.run_turn(message.message, message.files, message.beside)
                async with printer.at_work():
                    finished = await interrupts.run(sending)
            printer.finish(conversation, finished)
        except Stopped:
            return interrupts.exit_code or INTERRUPTED_EXIT_CODE
        finally:
            await conversation.close()
    return finished.exit_code if interrupts.exit_code is None else interrupts.exit_code


class _TurnPrinter:
    """Prints the turn's events in the format that was asked for. A failed write ends the turn: nobody would read it."""

    def __init__(self, as_json: bool, stream: str | None, interrupts: Interrupts, settings: TerminalSettings) -> None:
        from nca.terminal.open_terminal import has_screen
        from nca.terminal.render.plain import PlainDraw

        self._as_json = as_json
        self._stream = stream
        self._interrupts = interrupts
        self._asked: ApprovalAsked | None = None
        self._unanswered: list[ApprovalAsked] = []
        self._failure: Exception | None = None
        self.session = ""
        """The id of the session, if it is kept."""
        answers = io.StringIO() if as_json else sys.stdout
        live = None
        if not (as_json or stream) and has_screen(settings, sys.stderr):
            # Imported here: a program that reads the answer needs no screen.
            from nca.terminal.render.draw import Draw
            from nca.terminal.render.screen import TailScreen

            live = Draw(TailScreen(sys.stderr))
        self._draw = PlainDraw(answers, sys.stderr, os.environ, is_chat=False, live=live)

    def at_work(self) -> AbstractAsyncContextManager[None]:
        """Show a person at a terminal that the turn goes on; a program reads nothing of it."""
        return nullcontext() if self._as_json or self._stream else self._draw.at_work("Thinking")

    def on_event(self, event: Event) -> None:
        import msgspec

        from nca.events import ApprovalAsked, ApprovalGiven, TurnFinished
        from nca.terminal.render.event_lines import event_in_shell
        from nca.terminal.render.stream_writer import write_error_exit_code

        match event:
            case ApprovalAsked():
                self._asked = event
            case ApprovalGiven(decision="unanswered") if self._asked is not None:
                self._unanswered.append(self._asked)
            case TurnFinished() if self._interrupts.exit_code is not None:
                event = msgspec.structs.replace(event, exit_code=self._interrupts.exit_code)
            case _:
                pass
        if self._failure is not None:
            return  # the turn is being stopped, and not by the person
        if self._stream:
            self._failure = _write_event(event_in_shell(event, self.session))
        else:
            self._draw.session = self.session
            self._draw.on_event(event)
            self._failure = self._draw.failure
        if self._failure is not None:
            self._interrupts.end(write_error_exit_code(self._failure))

    def finish(self, conversation: Conversation, finished: TurnFinished) -> None:
        """Report the calls that nobody could approve; with --json, print the object."""
        from nca.terminal.render.event_lines import unanswered_line

        if self._stream:
            for line in dict.fromkeys(unanswered_line(one, is_chat=False) for one in self._unanswered):
                echo(f"nca run: {line}", err=True)
        if not self._as_json:
            self._say_how_to_go_on(conversation)
            return
        stats = conversation.context.stats()
        result = RunResult(
            session_id=conversation.session.info.id if self.session else None,
            model=stats.model,
            reason=finished.reason,
            text=finished.text,
            error=_described(finished.error, self.session) if finished.error else None,
            steps=finished.steps,
            seconds=finished.seconds,
            usage=conversation.session.usage.totals(),
            turn_usage=conversation.spending.usage_of_turn,
            turn_cost=finished.cost,
            files_changed=finished.files_changed,
            unanswered=tuple(one.summary for one in self._unanswered),
            context=stats,
            compactions=conversation.context.history(),
        )
        _write_json(result)

    def _say_how_to_go_on(self, conversation: Conversation) -> None:
        """To a person at a terminal; what a program reads stays as it is."""
        if sys.stderr.isatty() and not self._stream and self.session and conversation.context.entries:
            echo(f'To continue this session: nca run --session {self.session} "…"', err=True)


def _write_event(event: Event) -> OSError | None:
    """Print the event as a line of JSON. Returns the error if it cannot be written, and reports a full disk."""
    from nca.terminal.render.stream_writer import is_broken_pipe, write_error_line

    try:
        _write_json(event)
    except OSError as error:
        if not is_broken_pipe(error):
            echo(f"nca: {write_error_line(error)}", err=True)
        return error
    return None


def _write_json(value: Any) -> None:
    """Print one line of JSON on standard output, which may be a terminal."""
    import msgspec

    sys.stdout.buffer.write(json_to_terminal(msgspec.json.encode(value)) + b"\n")
    sys.stdout.buffer.flush()
