"""nca bench: what nca would have kept, cost and saved of a conversation that was held."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nca.cli import flags

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nca.library.replay import Replay
    from nca.messages import Message

_LISTED = 12
"""Compactions that are shown one by one; --json has all."""


def bench(
    file: Annotated[
        str, typer.Argument(metavar="FILE|ID|-", help="A transcript, a session's id or name, or standard input.")
    ],
    model: Annotated[str, typer.Option("--model", "-m", help="Whose window and prices; else the session's own.")] = "",
    context_window: flags.ContextWindow = None,
    max_output_tokens: flags.MaxOutputTokens = None,
    compact_threshold: flags.CompactThreshold = None,
    summarizer: Annotated[str | None, typer.Option(help="The model that writes the summaries, or none.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One object with all figures.")] = False,
) -> int:
    """Replay a conversation turn by turn and say what nca would have kept, cost and saved. No model is asked."""
    import os

    import msgspec

    from nca.cli.compact import summarizer_of
    from nca.cli.opening import settings_of
    from nca.config.layers import load
    from nca.library.replay import replay

    given = settings_of(
        context_window=context_window,
        max_output_tokens=max_output_tokens,
        compact_threshold=compact_threshold,
        # A summarizer of the settings is for the chat: a benchmark asks nobody who is not named here.
        summarizer=summarizer or "none",
    )
    loaded = load(project=Path.cwd(), env=os.environ, flags=given)
    held = _held(file)
    found = replay(held.messages, loaded, model=model or held.model, tools=held.tools, summarizer=summarizer_of(loaded))
    if as_json:
        typer.echo(msgspec.json.encode(found).decode("utf-8"))
        return 0
    for line in _lines(held, found, has_summarizer=summarizer not in (None, "", "none")):
        typer.echo(line)
    return 0


@dataclass(frozen=True, slots=True)
class _Held:
    """A conversation that was held; `model` is "" where nothing says with whom."""

    name: str
    messages: list[Message]
    model: str
    tools: list[Any]


def _held(file: str) -> _Held:
    """Raises UsageError, InvalidMessages; StoreError where the store cannot be read."""
    from nca.cli.compact import read_input
    from nca.transcripts import read_transcript
    from nca.transcripts.session_file import read_session

    if file != "-" and not Path(file).exists():
        return _stored(file)
    place = "standard input" if file == "-" else file
    raw = read_input(file)
    copy = read_session(raw, place, directory="")
    return _Held(place, [entry.message for entry in copy.entries], copy.info.model, read_transcript(raw, place).tools)


def _stored(wanted: str) -> _Held:
    from nca.cli.sessions.shown import open_to_read
    from nca.errors import SessionNotFound, UsageError

    try:
        with open_to_read() as store, store.open_session(wanted, read_only=True) as session:
            return _Held(session.info.id, [one.message for one in session.log.entries()], session.info.model, [])
    except SessionNotFound as error:
        if "could be any" in error.message:
            raise
        raise UsageError(
            f"{wanted}: there is no such file, and no session of that id or name.",
            advice="`nca sessions list` shows sessions.",
        ) from error


def _lines(held: _Held, found: Replay, *, has_summarizer: bool) -> Iterator[str]:
    """Figures only: nothing of what was said is shown."""
    from nca.terminal.render.sanitize import one_line

    where = f"{found.model or 'any model'}, a window of {found.window_tokens:,} tokens"
    assumed = " (assumed; --model or --context-window says better)" if found.window_is_assumed else ""
    yield (
        f"{one_line(held.name)}: {found.messages:,} messages, {found.turns:,} turns, {found.requests:,} requests;"
        f" {one_line(where)}{assumed}, budget {found.budget_tokens:,}"
    )
    yield ""
    yield from _sides(found)
    yield ""
    yield from _compactions(found)
    yield f"facts     {found.kept_facts:,} of {found.total_facts:,} in view at the end; all are in the log"
    yield f"words     {found.kept_turns:,} of your {found.turns:,} messages in view at the end, word for word"
    if not has_summarizer:
        yield "summaries written by code, no model was asked (--summarizer MODEL asks one)"
    else:
        yield f"summaries {found.summaries_tokens:,} tokens read and written beside the requests"
    check, compaction = found.longest_check_seconds * 1e3, found.longest_compaction_seconds * 1e3
    yield f"longest   check {check:,.2f} ms, compaction {compaction:,.0f} ms"


def _sides(found: Replay) -> Iterator[str]:
    """With nca and without, side by side."""
    sides = found.with_nca, found.without
    rows = [
        ("", ["with nca", "without"]),
        ("tokens sent", [f"{side.tokens:,}" for side in sides]),
        ("largest request", [f"{side.largest_tokens:,}" for side in sides]),
        ("requests over the budget", [f"{side.over_budget:,}" for side in sides]),
        ("cost at full price", [_dollars(side.cost) for side in sides]),
        ("cost with a prompt cache", [_dollars(side.cost_cached) for side in sides]),
    ]
    for name, (left, right) in rows:
        yield f"{name:<26}{left:>16}{right:>16}"
    if found.without.first_over_budget:
        yield f"Without, nothing would have fitted from message {found.without.first_over_budget:,} on."


def _compactions(found: Replay) -> Iterator[str]:
    if not found.compactions:
        yield f"No compaction would have been needed: it is due from {found.trigger_tokens:,} tokens on."
        return
    yield f"{'after message':>14}{'tokens':>24}{'facts kept':>16}{'took':>12}  stages"
    for one in found.compactions[:_LISTED]:
        change = f"{one.tokens_before:,} → {one.tokens_after:,}"
        kept = f"{one.kept_facts:,} of {one.total_facts:,}"
        took = f"{one.seconds * 1e3:,.0f} ms"
        yield f"{one.after_message:>14,}{change:>24}{kept:>16}{took:>12}  {', '.join(one.stages)}"
    if len(found.compactions) > _LISTED:
        yield f"… and {len(found.compactions) - _LISTED:,} more (--json has all)"


def _dollars(cost: float | None) -> str:
    from nca.models.costs import money

    return "not known" if cost is None else money(cost)
