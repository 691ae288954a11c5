"""`nca sessions`: what is in the store. Looking writes nothing and takes no lock."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from nca.messages import Entry
    from nca.sessions import CompactionRecord, Session, SessionInfo, Store

app = typer.Typer(help="Look at stored sessions.", no_args_is_help=True)

_LISTED = 50
_TITLE_CHARS = 60
_ARGUMENTS_CHARS = 200

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


@app.command("list")
def list_sessions(
    as_json: AsJson = False,
    everything: Annotated[bool, typer.Option("--all", help=f"All sessions, not only the newest {_LISTED}.")] = False,
) -> None:
    """List sessions, the one used last first."""
    with _open_store() as store:
        infos = store.list(None if everything else _LISTED + 1)
    shown = infos if everything else infos[:_LISTED]
    if as_json:
        _print_json([_as_dict(info) for info in shown])
        return
    if not shown:
        typer.echo("no sessions yet")
        return
    for info in shown:
        typer.echo(_row(info))
    if len(infos) > len(shown):
        typer.echo("… and older ones: `nca sessions list --all` shows every session.")


@app.command("show")
def show_session(
    session_id: Annotated[str, typer.Argument(metavar="ID", help="The id, the beginning of it, or the name.")],
    as_json: AsJson = False,
) -> None:
    """Show one session: its messages and its compactions."""
    with _open_store() as store, store.open_session(session_id, read_only=True) as session:
        if as_json:
            _print_json(_session_as_dict(session))
        else:
            _print_session(session)


def _open_store() -> Store:
    from nca.config.paths import data_dir
    from nca.sessions import Store

    return Store.open(data_dir(os.environ) / "sessions.db", read_only=True)


def _as_dict(info: SessionInfo) -> dict[str, Any]:
    import msgspec

    fields: dict[str, Any] = msgspec.to_builtins(info)
    return fields


def _session_as_dict(session: Session) -> dict[str, Any]:
    import msgspec

    from nca.wire import message_to_dict

    return {
        **_as_dict(session.info),
        "log": [
            {"seq": entry.seq, "at": entry.at, "message": message_to_dict(entry.message)} for entry in session.entries()
        ],
        "pins": sorted(session.pins()),
        "compactions": msgspec.to_builtins(session.compactions()),
        "usage": msgspec.to_builtins(session.totals()),
    }


def _print_session(session: Session) -> None:
    info = session.info
    typer.echo(f"session    {info.id}" + (f" ({_line(info.name)})" if info.name else ""))
    typer.echo(f"directory  {_line(info.directory)}")
    typer.echo(f"model      {_line(info.model)}")
    typer.echo(f"used       {_when(info.created_at)} to {_when(info.updated_at)}, {info.messages:,} messages")
    pins = session.pins()
    for entry in session.entries():
        typer.echo("")
        _print_entry(entry, is_pinned=entry.seq in pins)
    records = session.compactions()
    if records:
        typer.echo("\ncompactions")
    for record in records:
        typer.echo(_compaction(record))


def _print_entry(entry: Entry, *, is_pinned: bool) -> None:
    from nca.terminal.sanitize import to_terminal

    message = entry.message
    marks = [
        word
        for word, holds in (
            (_line(message.name), bool(message.name)),
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
        typer.echo(f"[attached {_line(part.path)}, {part.original_bytes:,} bytes]")
    for call in message.tool_calls:
        typer.echo(f"→ {_line(call.name)} {_line(call.arguments, _ARGUMENTS_CHARS)}")


def _row(info: SessionInfo) -> str:
    pin = "*" if info.is_pinned else " "
    title = _line(info.name or info.title or "(empty)", _TITLE_CHARS)
    return f"{info.id} {pin} {_when(info.updated_at)}  {info.messages:>6,}  {title}  {_line(info.model)}".rstrip()


def _compaction(record: CompactionRecord) -> str:
    stages = ", ".join(_line(stage) for stage in record.stages)
    tokens = f"{record.tokens_before:,} → {record.tokens_after:,} tokens"
    facts = f", kept {record.kept_facts} of {record.total_facts} facts" if record.total_facts else ""
    undone = " (undone)" if record.undone else ""
    return f"{record.id} {_when(record.at)}  {_line(record.trigger)}: {stages}; {tokens}{facts}{undone}"


def _line(text: str, limit: int = 0) -> str:
    from nca.terminal.sanitize import one_line

    return one_line(text, limit)


def _when(at: float) -> str:
    """Local time; a clock that was far off is no reason to show nothing."""
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
    except (OverflowError, ValueError, OSError):
        return "at an unknown time"


def _print_json(value: Any) -> None:
    """ASCII only, so that no stored text can reach the terminal as a control character."""
    typer.echo(json.dumps(value, indent=2))
