"""`nca sessions show`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from nca.cli.flags import AsJson, SessionId
from nca.cli.sessions.printing import print_json
from nca.cli.startup import open_session_store
from nca.terminal.render.humanize import counted, local_time
from nca.terminal.render.sanitize import one_line, to_terminal

if TYPE_CHECKING:
    from nca.messages import Entry
    from nca.sessions import Session

_ARGUMENTS_CHARS = 200


def show_session(session_id: SessionId, as_json: AsJson = False) -> None:
    """Show a session's messages, compactions and summaries."""
    with open_session_store(read_only=True) as store, store.open_session(session_id, read_only=True) as session:
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
    from nca.transcripts.descriptions import compaction_line, message_notes, summary_line

    info = session.info
    used = f"{local_time(info.created_at)} to {local_time(info.updated_at)}"
    typer.echo(f"session    {info.id}" + (f" ({one_line(info.name)})" if info.name else ""))
    typer.echo(f"directory  {one_line(info.directory)}")
    typer.echo(f"model      {one_line(info.model)}")
    typer.echo(f"used       {used}, {counted(info.messages, 'message')}")
    pins = session.views.pins()
    for entry in session.log.entries():
        _print_entry(entry, message_notes(entry, pins))
    records = session.views.compactions()
    if records:
        typer.echo("\ncompactions")
    for record in records:
        typer.echo(f"{record.id} {local_time(record.at)}  {one_line(compaction_line(record))}")
    for summary in session.views.summaries():
        typer.echo(f"\n{one_line(summary_line(summary))}")
        typer.echo(to_terminal(summary.text))


def _print_entry(entry: Entry, notes: list[str]) -> None:
    message = entry.message
    typer.echo(f"\n{entry.seq} {message.role}" + (f" ({one_line(', '.join(notes))})" if notes else ""))
    if message.text:
        typer.echo(to_terminal(message.text))
    for part in message.attachments:
        typer.echo(f"[attached {one_line(part.path)}, {part.original_bytes:,} bytes]")
    for call in message.tool_calls:
        typer.echo(f"→ {one_line(call.name)} {one_line(call.arguments, _ARGUMENTS_CHARS)}")
