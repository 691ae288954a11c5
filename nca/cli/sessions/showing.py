"""`nca sessions show`: one session with its compactions and summaries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from nca.cli.sessions.shown import AsJson, SessionId, open_to_read, print_json, when
from nca.terminal.render.sanitize import one_line, to_terminal

if TYPE_CHECKING:
    from nca.context.view import Summary
    from nca.messages import Entry
    from nca.sessions import CompactionRecord, Session

_ARGUMENTS_CHARS = 200


def show_session(session_id: SessionId, as_json: AsJson = False) -> None:
    """Show one session: its messages, its compactions and its summaries."""
    with open_to_read() as store, store.open_session(session_id, read_only=True) as session:
        if as_json:
            print_json(_as_dict(session))
        else:
            _print_session(session)


def _as_dict(session: Session) -> dict[str, Any]:
    import msgspec

    from nca.wire import message_to_dict

    return {
        **msgspec.to_builtins(session.info),
        "log": [
            {"seq": entry.seq, "at": entry.at, "message": message_to_dict(entry.message)}
            for entry in session.log.entries()
        ],
        "pins": sorted(session.views.pins()),
        "compactions": msgspec.to_builtins(session.views.compactions()),
        "summaries": msgspec.to_builtins(session.views.summaries()),
        "usage": msgspec.to_builtins(session.usage.totals()),
    }


def _print_session(session: Session) -> None:
    from nca.terminal.render.wording import messages

    info = session.info
    typer.echo(f"session    {info.id}" + (f" ({one_line(info.name)})" if info.name else ""))
    typer.echo(f"directory  {one_line(info.directory)}")
    typer.echo(f"model      {one_line(info.model)}")
    typer.echo(f"used       {when(info.created_at)} to {when(info.updated_at)}, {messages(info.messages)}")
    pins = session.views.pins()
    for entry in session.log.entries():
        typer.echo("")
        _print_entry(entry, is_pinned=entry.seq in pins)
    records = session.views.compactions()
    if records:
        typer.echo("\ncompactions")
    for record in records:
        typer.echo(_compaction(record))
    for summary in session.views.summaries():
        typer.echo("")
        _print_summary(summary)


def _print_entry(entry: Entry, *, is_pinned: bool) -> None:
    message = entry.message
    marks = [
        word
        for word, holds in (
            (one_line(message.name), bool(message.name)),
            ("error", message.is_error),
            ("interrupted", message.is_interrupted),
            ("pinned", is_pinned),
        )
        if holds
    ]
    typer.echo(f"{entry.seq} {message.role}" + (f" ({', '.join(marks)})" if marks else ""))
    if message.text:
        typer.echo(to_terminal(message.text))
    for part in message.attachments:
        typer.echo(f"[attached {one_line(part.path)}, {part.original_bytes:,} bytes]")
    for call in message.tool_calls:
        typer.echo(f"→ {one_line(call.name)} {one_line(call.arguments, _ARGUMENTS_CHARS)}")


def _compaction(record: CompactionRecord) -> str:
    stages = ", ".join(one_line(stage) for stage in record.stages)
    tokens = f"{record.tokens_before:,} → {record.tokens_after:,} tokens"
    facts = f", kept {record.kept_facts} of {record.total_facts} facts" if record.total_facts else ""
    cost = f", ${record.cost:.4f}" if record.cost else ""
    undone = " (undone)" if record.undone else ""
    return f"{record.id} {when(record.at)}  {one_line(record.trigger)}: {stages}; {tokens}{facts}{cost}{undone}"


def _print_summary(summary: Summary) -> None:
    from nca.transcripts.moments import in_words

    made_by = f", by {one_line(summary.made_by)}" if summary.made_by else ""
    typer.echo(f"summary {one_line(summary.id)} of {in_words(summary.ranges)}{made_by}")
    typer.echo(to_terminal(summary.text))
