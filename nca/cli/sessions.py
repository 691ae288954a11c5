"""`nca sessions`, with `list`, `show`, `search` and `changes`, which write nothing and take no lock."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nca.cli import flags, session_actions
from nca.cli.flags import AsJson, OfTeam, SessionId
from nca.cli.printing import echo
from nca.cli.startup import open_session_store
from nca.errors import UsageError
from nca.humanize import counted, local_time, some_of
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.sessions import begun_by, hit_line, session_table, title

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nca.file_history.changes import FileChange
    from nca.messages import Entry
    from nca.sessions import CompactionRecord, Hit, Session, SessionHit, SessionInfo, Store
    from nca.sessions.file_record import Change
    from nca.sessions.sql import Whose


_LISTED = 50
_TITLE_CHARS = 60
_NAMED = 8
"""Names of files in a line."""
_ARGUMENTS_CHARS = 2_000
"""Shown of a call; --json has all."""


def list_sessions(
    as_json: AsJson = False,
    everything: Annotated[bool, typer.Option("--all", help=f"List all sessions, not only the last {_LISTED}.")] = False,
    archived: Annotated[bool, typer.Option("--archived", help="List the archived sessions instead.")] = False,
    team: OfTeam = False,
) -> None:
    """List sessions, most recently used first."""
    with open_session_store(read_only=True, of_team=team) as store:
        everything = everything or as_json  # a program would take the last ones for all
        infos = _archived(store) if archived else store.list(None if everything else _LISTED + 1)
        whose = store.whose([info.id for info in infos])
    shown = infos if everything else infos[:_LISTED]
    if as_json:
        import msgspec

        by = {session_id: one._asdict() for session_id, one in whose.items()}
        _print_json([msgspec.to_builtins(info) | by.get(info.id, {}) for info in shown])
        return
    if not shown:
        echo("No archived sessions." if archived else "No sessions yet.")
    elif sys.stdout.isatty():
        _print_table(shown, whose)
    else:
        from nca.transcripts.descriptions import model_in_words

        models = [one_line(model_in_words(info)) for info in shown]
        names = max(map(len, models))
        for info, name in zip(shown, models, strict=True):
            model = f"{name:<{names}}"
            pin = "*" if info.is_pinned else " "
            echo(_row(info, pin=pin, model=model, by=begun_by(whose.get(info.id))))
    if len(infos) > len(shown):
        echo("… and older ones. --all lists every session.")


def show_session(session_id: SessionId, as_json: AsJson = False, team: OfTeam = False) -> None:
    """Show a session's messages, compactions and summaries."""
    with (
        open_session_store(read_only=True, of_team=team) as store,
        store.open_session(session_id, read_only=True) as session,
    ):
        if as_json:
            _print_json(_session_dict(session))
        else:
            _print_session(session)


def search_sessions(
    question: Annotated[list[str], typer.Argument(metavar="TEXT", help="A question, words, a path or an error.")],
    in_session: Annotated[
        str, typer.Option("--session", help="Search one session only.", autocompletion=flags.sessions)
    ] = "",
    everything: Annotated[
        bool, typer.Option("--all", help="Show the best messages of all sessions, not the best sessions.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Show at most this many results.")] = 10,
    as_json: AsJson = False,
    team: OfTeam = False,
) -> None:
    """Search all messages, including those that were compacted."""
    text = " ".join(question)
    if not text.strip():
        raise UsageError("There is nothing to search for.", advice='Example: nca sessions search "connection refused"')
    if in_session and everything:
        raise UsageError("--session and --all exclude each other.")
    with open_session_store(read_only=True, of_team=team) as store:
        if in_session:
            with store.open_session(in_session, read_only=True) as session:
                hits: list[Hit] | list[SessionHit] = session.search(text, limit)
        elif everything:
            hits = store.search(text, limit)
        else:
            hits = store.search_sessions(text, limit)
        if as_json:
            _print_json([_hit_dict(hit, store) for hit in hits])
            return
        for line in [line for hit in hits for line in _hit_lines(hit, store)] or ["Nothing found."]:
            flags.say(line, hang=6)


def _print_table(infos: list[SessionInfo], whose: Mapping[str, Whose]) -> None:
    from rich.console import Console

    from nca.terminal.render.theme import theme_for

    Console(theme=theme_for("auto", os.environ)).print(session_table(infos, whose=whose))


def _archived(store: Store) -> list[SessionInfo]:
    """The archived sessions. A file that cannot be read is named on standard error."""
    from nca.transcripts.archives import archived

    found = archived(store)
    for one in found:
        if one.info is None:
            echo(f"nca: {one_line(str(one.path))} is not a session archive, or is damaged.", err=True)
    return [one.info for one in found if one.info]


def _row(info: SessionInfo, *, pin: str = "", model: str = "", by: str = "") -> str:
    marked = f"{info.id} {pin} " if pin else f"{info.id}  "
    about = f"{'(run) ' if info.kind == 'run' else ''}{title(info, _TITLE_CHARS)}"
    cells = (f"{marked}{local_time(info.updated_at)}", f"{info.messages:>6,}", model, by, about)
    return "  ".join(filter(None, cells)).rstrip()


def _session_dict(session: Session) -> dict[str, Any]:
    import msgspec

    from nca.wire import message_to_dict

    return {
        **msgspec.to_builtins(session.info),
        "log": [
            {"seq": entry.seq, "at": entry.at, "message": message_to_dict(entry.message)}
            for entry in session.log.entries()
        ],
        "pins": sorted(session.views.pins()),
        "aside": session.views.current().aside,
        "compactions": msgspec.to_builtins(_compactions(session)),
        "summaries": msgspec.to_builtins(session.views.summaries()),
        "usage": msgspec.to_builtins(session.usage.totals()),
    }


def _compactions(session: Session) -> list[CompactionRecord]:
    """Without what a person changed message by message, such as one that was tried again."""
    return [one for one in session.views.compactions() if not one.is_by_hand]


def _print_session(session: Session) -> None:
    from nca.context.view import seqs
    from nca.transcripts.descriptions import compaction_line, message_notes, model_in_words, summary_line

    info = session.info
    used = f"{local_time(info.created_at)} to {local_time(info.updated_at)}"
    echo(f"session    {info.id}" + (f" ({one_line(info.name)})" if info.name else ""))
    echo(f"directory  {one_line(info.directory)}")
    echo(f"model      {one_line(model_in_words(info))}")
    echo(f"used       {used}, {counted(info.messages, 'message')}")
    pins, aside = session.views.pins(), dict.fromkeys(seqs(session.views.current().aside))
    for entry in session.log.entries():
        _print_entry(entry, message_notes(entry, pins, aside))
    records = _compactions(session)
    if records:
        echo("\ncompactions")
    for record in records:
        echo(f"{record.id} {local_time(record.at)}  {one_line(compaction_line(record))}")
    for summary in session.views.summaries():
        echo(f"\n{one_line(summary_line(summary))}")
        echo(summary.text)


def _print_entry(entry: Entry, notes: list[str]) -> None:
    message = entry.message
    echo(f"\n{entry.seq} {message.role}" + (f" ({one_line(', '.join(notes))})" if notes else ""))
    if message.text:
        echo(message.text)
    for part in message.attachments:
        echo(f"[attached {one_line(part.path)}, {part.original_bytes:,} bytes]")
    for call in message.tool_calls:
        more = "…" if len(call.arguments) > _ARGUMENTS_CHARS else ""
        echo(f"→ {one_line(call.name)} {call.arguments[:_ARGUMENTS_CHARS]}{more}")


def _hit_dict(hit: Hit | SessionHit, store: Store) -> dict[str, Any]:
    import msgspec

    from nca.sessions import SessionHit

    info = store.find(hit.session) if isinstance(hit, SessionHit) else None
    return {**(msgspec.to_builtins(info) if info else {}), **msgspec.to_builtins(hit)}


def _hit_lines(hit: Hit | SessionHit, store: Store) -> Iterator[str]:
    """One line for a message; for a session one line, and one for each message found in it."""
    from nca.sessions import SessionHit

    if not isinstance(hit, SessionHit):
        yield hit_line(hit, hit.id)
        return
    yield _row(store.find(hit.session))
    for message in hit.hits:
        yield from (f"    {line}" for line in _hit_lines(message, store))


def _print_json(value: Any) -> None:
    """Print indented JSON. It is ASCII only, so stored text cannot send control characters to the terminal."""
    echo(json.dumps(value, indent=2))


def show_changes(
    session_id: SessionId,
    patch: Annotated[
        bool, typer.Option("--patch", help="Print the changes as a patch, for git apply or patch.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the files that a session changed, compared with its beginning."""
    from nca.file_history.changes import net_changes, unchanged
    from nca.terminal.render.file_changes import changed_line, path, totals

    with open_session_store(read_only=True) as store:
        info = store.find(session_id)
        changes: tuple[FileChange, ...] = ()
        journal: Sequence[Change] = ()
        if store.has_file_records:
            record = store.file_records.of(info.id, Path(os.path.realpath(info.directory)))
            journal = record.changes()
            changes = net_changes(journal, record.content)
        if patch:
            _print_patch(changes, Path(info.directory))
        elif as_json:
            rows = [{"path": path(one), "added": one.added, "removed": one.removed} for one in changes]
            echo(json.dumps(rows))
        else:
            for one in changes:
                echo(changed_line(one))
            echo(f"{totals(changes)}." if changes else unchanged(has_records=bool(journal)))


def _print_patch(changes: Sequence[FileChange], directory: Path) -> None:
    """For a person on a terminal; elsewhere as the bytes that git takes, with the exit code 1 if that is not all.

    As git does it, without what git ignores there.
    """
    from nca.file_history.changes import ignored_by_git

    ignored = ignored_by_git(directory, (one.path for one in changes))
    if left_out := [one.name for one in changes if one.path in ignored]:
        echo(f"Not in the patch, as git ignores it: {one_line(some_of(left_out, _NAMED))}", err=True)
    changes = [one for one in changes if one.path not in ignored]
    if sys.stdout.isatty():
        for one in changes:
            echo(one.diff())
        return
    lacking = []
    for one in changes:
        sys.stdout.buffer.write(data := one.patch())
        lacking += [] if data else [one.diff()]
    sys.stdout.buffer.flush()
    for line in lacking:
        echo(f"Not in the patch: {one_line(line)}", err=True)
    if lacking:
        raise typer.Exit(1)


app = typer.Typer(help="List, search, export, change, archive and delete stored sessions.")


@app.callback(invoke_without_command=True)
def sessions(context: typer.Context) -> None:
    """Without a command: `nca sessions list`."""
    if context.invoked_subcommand is None:
        list_sessions()


app.command("list")(list_sessions)
app.command("show")(show_session)
app.command("search")(search_sessions)
app.command("changes")(show_changes)
app.command("copy")(session_actions.copy_sessions)
app.command("export")(session_actions.export_session)
app.command("import")(session_actions.import_session)
app.command("rename")(session_actions.rename_session)
app.command("pin")(session_actions.pin_session)
app.command("unpin")(session_actions.unpin_session)
app.command("fork")(session_actions.fork_session)
app.command("archive")(session_actions.archive_session)
app.command("restore")(session_actions.restore_session)
app.command("delete")(session_actions.delete_session)
app.command("backup")(session_actions.back_up_sessions)
app.command("usage")(session_actions.show_usage)
app.command("vacuum")(session_actions.vacuum_sessions)
