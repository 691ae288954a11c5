"""`nca run`: send one message without a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from nca.cli import flags

if TYPE_CHECKING:
    from nca.agent.conversation import Conversation
    from nca.config.loaded import LoadedSettings
    from nca.events import ApprovalAsked, Event, TurnFinished
    from nca.terminal.interrupts import Interrupts

STREAMS = ("ndjson",)


def run(
    prompt: Annotated[str | None, typer.Argument(help="The message. Piped standard input is appended.")] = None,
    model: flags.Model = None,
    session: Annotated[str | None, typer.Option(help="Continue this session (id or name).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object: the answer and the figures.")] = False,
    stream: Annotated[str | None, typer.Option(help="ndjson: print every event as a line of JSON.")] = None,
    max_steps: Annotated[str | None, typer.Option(help="Stop after this many requests.")] = None,
    compact_threshold: flags.CompactThreshold = None,
    disable_compaction: flags.DisableCompaction = False,
    context_window: flags.ContextWindow = None,
    max_output_tokens: flags.MaxOutputTokens = None,
    permission: flags.Permission = None,
    max_cost: flags.MaxCost = None,
    trust: flags.Trust = False,
    profile: flags.Profile = None,
    config: flags.Config = None,
) -> int:
    """Send one message and print the answer. Notices go to standard error."""
    import asyncio

    from nca.cli.startup import load_settings, settings_of
    from nca.errors import UsageError

    if stream is not None and stream not in STREAMS:
        raise UsageError(f"--stream: {stream!r} is not valid; valid: {', '.join(STREAMS)}.")
    given = settings_of(
        profile=profile,
        permission=permission,
        model=model,
        context_window=context_window,
        max_output_tokens=max_output_tokens,
        compact_threshold=compact_threshold,
        disable_compaction=disable_compaction,
        max_steps=max_steps,
        max_cost=max_cost,
    )
    loaded = load_settings(given, config, trust=trust)
    text = _text(prompt)
    return asyncio.run(_turn(loaded, text, session, as_json, stream))


def _text(prompt: str | None) -> str:
    """The prompt, then what is piped in."""
    import sys

    from nca.errors import UsageError
    from nca.messages import clean_text

    piped = ""
    if not sys.stdin.isatty():
        piped = sys.stdin.buffer.read().decode("utf-8", "replace")
    text = "\n\n".join(part for part in (prompt or "", piped) if part.strip())
    if not text:
        raise UsageError("The message is empty. Pass a prompt or pipe one in.")
    return clean_text(text)


async def _turn(loaded: LoadedSettings, text: str, session: str | None, as_json: bool, stream: str | None) -> int:

    from nca.cli.startup import open_conversation, open_store
    from nca.terminal.interrupts import Interrupts, Stopped
    from nca.terminal.signals import INTERRUPTED_EXIT_CODE

    interrupts = Interrupts(ends_at_first=True)
    watch = _Watch(as_json, stream, interrupts)
    with open_store(loaded, watch.listen) as store:
        conversation = await open_conversation(loaded, store, watch.listen, session=session, kind="run")
        try:
            with interrupts.handled():
                finished = await interrupts.run(conversation.send(text))
            watch.close(conversation, finished)
        except Stopped:
            return interrupts.exit_code or INTERRUPTED_EXIT_CODE
        finally:
            await conversation.close()
    return finished.exit_code if interrupts.exit_code is None else interrupts.exit_code


class _Watch:
    """Listens to the turn and prints it as it was asked for."""

    def __init__(self, as_json: bool, stream: str | None, interrupts: Interrupts) -> None:
        import io
        import os
        import sys

        from nca.terminal.render.plain import PlainDraw

        self._interrupts = interrupts
        self.unanswered: list[ApprovalAsked] = []
        self._asked: ApprovalAsked | None = None
        self._is_stopped = False
        self._as_json = as_json
        self._stream = stream
        self._draw = PlainDraw(io.StringIO() if as_json else sys.stdout, sys.stderr, os.environ)

    def listen(self, event: Event) -> None:
        from nca.events import ApprovalAsked, ApprovalGiven

        if isinstance(event, ApprovalAsked):
            self._asked = event
        if isinstance(event, ApprovalGiven) and event.decision == "unanswered" and self._asked is not None:
            self.unanswered.append(self._asked)
        if self._stream:
            try:
                _write_json(event)
            except OSError as error:
                self._stop(error)
        else:
            self._draw.on_event(event)
            if self._draw.failure is not None:
                self._stop(self._draw.failure, is_told=True)

    def _stop(self, failure: Exception, *, is_told: bool = False) -> None:
        """Standard output takes nothing more."""
        import sys

        from nca.terminal.render.stream_writer import (
            is_broken_pipe,
            write_error_exit_code,
            write_error_line,
        )

        if self._is_stopped:
            return
        self._is_stopped = True
        if not is_broken_pipe(failure) and not is_told:
            print(f"nca: {write_error_line(failure)}", file=sys.stderr)
        # What nobody reads, nobody is to pay for.
        self._interrupts.end(write_error_exit_code(failure))

    def close(self, conversation: Conversation, finished: TurnFinished) -> None:
        """After everything else: what nobody could approve; with --json, the one object."""
        import sys

        from nca.terminal.render.event_lines import unanswered_line

        if self._stream:
            for name, needs in dict.fromkeys((one.name, one.needs) for one in self.unanswered):
                print(f"nca run: {unanswered_line(name, needs)}", file=sys.stderr)
        if not self._as_json:
            return
        stats = conversation.context.stats()
        summary = {
            "session_id": conversation.session.info.id,
            "model": stats.model,
            "reason": finished.reason,
            "text": finished.text,
            "steps": finished.steps,
            "seconds": finished.seconds,
            "usage": conversation.session.usage.totals(),
            "turn_cost": finished.cost,
            "unanswered": [one.summary for one in self.unanswered],
            "context": stats,
            "compactions": conversation.context.history(),
        }
        _write_json(summary)


def _write_json(value: Any) -> None:
    """One line on standard output, which may be a terminal."""
    import sys

    import msgspec

    from nca.terminal.render.sanitize import json_to_terminal

    sys.stdout.buffer.write(json_to_terminal(msgspec.json.encode(value)) + b"\n")
    sys.stdout.buffer.flush()
