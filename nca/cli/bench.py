"""`nca bench`: replay a conversation and report what nca would have kept, cost and saved."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nca.cli import flags
from nca.cli.compact import summarizer_of
from nca.cli.flags import open_source, print_notes, stored_session
from nca.cli.printing import echo
from nca.cli.startup import settings_of
from nca.humanize import counted
from nca.terminal.render.sanitize import json_to_terminal, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nca.library.losses import CompactionLoss
    from nca.library.replay import Replay
    from nca.transcripts.conversation_file import ConversationFile

_LISTED = 12
"""Compactions listed one by one; --json has all, and --html their losses."""
_LISTED_FACTS = 8
"""Lost facts listed for each compaction; --json and --html have all."""
_FACT_CHARS = 100
_SINGULAR = {"words": "message", "files": "file", "errors": "error"}


def bench(
    file: flags.ConversationFile,
    model: flags.CountedModel = "",
    context_window: flags.ContextWindow = None,
    max_output_tokens: flags.MaxOutputTokens = None,
    compact_threshold: flags.CompactThreshold = None,
    summarizer: flags.Summarizer = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object with all figures.")] = False,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write a page with these figures and what compactions lost; keys are redacted."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file of --html.")] = False,
) -> int:
    """Replay a conversation turn by turn and report what nca would have kept, cost and saved.

    If the session has been compacted, by another agent or by nca, it also says what each compaction lost, in your own
    words. No model is called unless you name a summarizer.
    """
    from nca.config.layers import load
    from nca.library.losses import NOT_COMPACTED, losses, to_loss_page
    from nca.library.replay import replay
    from nca.transcripts.descriptions import compactions
    from nca.transcripts.export_formats import refuse_existing, write_private
    from nca.transcripts.session_file import redacted

    if html is not None:
        refuse_existing(html, overwrites=force)
    given = settings_of(
        context_window=context_window,
        max_output_tokens=max_output_tokens,
        compact_threshold=compact_threshold,
        # The summarizer in the settings is for the chat. Here a model is called only if the command names it.
        summarizer=summarizer or "none",
    )
    loaded = load(project=Path.cwd(), env=os.environ, flags=given)
    name, found = _read(file)
    copy, tools, agent = found.copy, found.tools, found.agent or "nca"
    messages = [entry.message for entry in copy.conversation]
    report = replay(
        messages,
        loaded,
        model=model or copy.info.model,
        tools=tools,
        summarizer=summarizer_of(loaded),
        request=found.request,
    )
    has_tools = bool(tools) or not any(message.tool_calls for message in messages)
    lines = list(_lines(name, report, has_tools=has_tools, has_summarizer=summarizer not in (None, "", "none")))
    if compactions(copy) or html is not None:
        copy = redacted(copy)
    lost = losses(copy, loaded, model=model)
    if html is not None:
        page = to_loss_page(agent, copy, lost, lines)
        write_private(html, page.encode(), overwrites=force)
        if not lost:
            print_notes([f"{NOT_COMPACTED} {html} has the figures of the replay."])
    if as_json:
        _print_json(report, lost)
    else:
        echo("\n".join([*lines, *_loss_lines(agent, lost)]))
    return 0


def _print_json(report: Replay, lost: list[CompactionLoss]) -> None:
    import msgspec

    whole = {**msgspec.to_builtins(report), "losses": lost}
    echo(json_to_terminal(msgspec.json.encode(whole)).decode())


def _read(file: str) -> tuple[str, ConversationFile]:
    """The conversation with its name. Raises UsageError, InvalidMessages, StoreError."""
    from nca.transcripts.conversation_file import ConversationFile, read_conversation

    if (copy := stored_session(file)) is not None:
        return copy.info.id, ConversationFile(copy=copy, agent=copy.info.origin.agent if copy.info.origin else "")
    source, key = open_source(file)
    found = read_conversation(source, key=key)
    print_notes(found.notes)
    return source.place, found


def _lines(name: str, report: Replay, *, has_tools: bool, has_summarizer: bool) -> Iterator[str]:
    """Figures only: the text of the conversation is not shown."""
    window = f"{report.model or 'any model'}, window {report.window_tokens:,} tokens"
    assumed = " (assumed; set it with --model or --context-window)" if report.window_is_assumed else ""
    yield (
        f"{one_line(name)}: {counted(report.messages, 'message')}, {counted(report.turns, 'turn')},"
        f" {counted(report.requests, 'request')}; {one_line(window)}{assumed}, budget {report.budget_tokens:,}"
    )
    if not has_tools:
        yield "Tool definitions are not stored, so requests are counted without them."
    yield ""
    yield from _comparison(report)
    yield ""
    yield from _compactions(report)
    yield f"facts     {report.kept_facts:,} of {report.total_facts:,} in view at the end; all are in the log"
    yield f"messages  {report.kept_turns:,} of your {report.turns:,} in view at the end, word for word"
    if has_summarizer:
        yield f"summaries {report.summaries_tokens:,} tokens read and written, beside the requests"
    else:
        yield "summaries written by code; no model was called (--summarizer MODEL calls one)"
    check, compaction = report.longest_check_seconds * 1e3, report.longest_compaction_seconds * 1e3
    yield f"longest   check {check:,.2f} ms, compaction {compaction:,.0f} ms"


def _comparison(report: Replay) -> Iterator[str]:
    """The figures with nca and without it, side by side."""
    sides = report.with_nca, report.without
    yield f"{'':<26}{'with nca':>16}{'without':>16}"
    for name, values in (
        ("tokens sent", [f"{side.tokens:,}" for side in sides]),
        ("largest request", [f"{side.largest_tokens:,}" for side in sides]),
        ("requests over the budget", [f"{side.over_budget:,}" for side in sides]),
        ("cost at full price", [_dollars(side.cost) for side in sides]),
        ("cost with a prompt cache", [_dollars(side.cost_cached) for side in sides]),
    ):
        yield f"{name:<26}{values[0]:>16}{values[1]:>16}"
    if report.without.first_over_budget:
        yield f"Without nca, requests exceed the budget from message {report.without.first_over_budget:,} on."


def _compactions(report: Replay) -> Iterator[str]:
    if not report.compactions:
        yield f"No compaction was needed. The first would start at {report.trigger_tokens:,} tokens."
        return
    yield f"{'after message':>14}{'tokens':>24}{'facts kept':>16}{'took':>12}  stages"
    for one in report.compactions[:_LISTED]:
        change = f"{one.tokens_before:,} → {one.tokens_after:,}"
        kept = f"{one.kept_facts:,} of {one.total_facts:,}"
        took = f"{one.seconds * 1e3:,.0f} ms"
        yield f"{one.after_message:>14,}{change:>24}{kept:>16}{took:>12}  {', '.join(one.stages)}"
    if len(report.compactions) > _LISTED:
        yield f"… and {len(report.compactions) - _LISTED:,} more (--json has all)"


def _loss_lines(agent: str, compactions: Sequence[CompactionLoss]) -> Iterator[str]:
    """The losses of each compaction, in the person's own words."""
    if not compactions:
        return
    yield ""
    times = "once" if len(compactions) == 1 else counted(len(compactions), "time")
    yield f"{one_line(agent)} compacted this session {times}. In the first request after each, word for word:"
    for one in compactions[:_LISTED]:
        yield ""
        yield from _lines_of_loss(agent, one)
    if len(compactions) > _LISTED:
        yield ""
        yield f"… and {len(compactions) - _LISTED:,} more (--json and --html have all)"


def _lines_of_loss(agent: str, one: CompactionLoss) -> Iterator[str]:
    from nca.library.losses import KINDS, is_compared, nca_size, size_and_cost, would_have_kept

    compared = is_compared(agent)
    yield f"compaction {one.number}, after message {one.after_message:,}: {size_and_cost(one)}"
    if one.is_unreadable:
        yield "  Its summary is encrypted or missing, so what it kept cannot be known."
        return
    if not one.kinds:
        yield "  Nothing had been stated yet: no message that you typed, no changed file, no error."
        return
    own = f"{'with nca':>10}" if compared else ""
    yield f"  {'':<20}{'stated':>8}{'before':>8}{'after':>8}{'reworded':>10}{own}"
    for kind, count in one.kinds.items():
        numbers = f"{count.stated:>8,}{count.before:>8,}{count.after:>8,}{count.reworded:>10,}"
        yield f"  {KINDS[kind]:<20}{numbers}{f'{count.with_nca:>10,}' if compared else ''}"
    if compared:
        yield f"  {nca_size(one)}"
    gone = [fact for fact in one.lost if not fact.is_reworded]
    if gone:
        kept = f"; {would_have_kept(gone)}" if compared else ""
        yield f"  lost, neither word for word nor reworded: {len(gone):,}{kept}"
        for fact in gone[:_LISTED_FACTS]:
            also = "(nca too) " if compared and not fact.with_nca else ""
            yield f"    {also}{_SINGULAR[fact.kind]} in message {fact.seq}: {one_line(fact.text, _FACT_CHARS)}"
        if len(gone) > _LISTED_FACTS:
            yield f"    … and {len(gone) - _LISTED_FACTS:,} more (--json and --html have all)"


def _dollars(cost: float | None) -> str:
    from nca.models.catalog import money

    return "unknown" if cost is None else money(cost)
