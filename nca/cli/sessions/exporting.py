"""`nca sessions export`, `import`, and `copy` between two stores."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nca.cli.flags import SessionId, open_source, print_notes
from nca.cli.sessions.changing import print_new_session
from nca.cli.startup import named_place, open_session_store, store_place
from nca.humanize import counted
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.sessions import written_lines

if TYPE_CHECKING:
    from nca.sessions import Store

_STDOUT = "-"


def export_session(
    session_id: SessionId,
    file: Annotated[str | None, typer.Argument(metavar="FILE", help="The file, or - for standard output.")] = None,
    format_name: Annotated[
        str | None, typer.Option("--format", help="markdown, json, jsonl or html. Default: by FILE's extension.")
    ] = None,
    html: Annotated[bool, typer.Option("--html", help="Same as --format html.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Same as --format json.")] = False,
    out: Annotated[str | None, typer.Option("--out", metavar="FILE", help="Same as FILE.")] = None,
    agent: Annotated[
        str | None, typer.Option("--as", help="Write a session that this agent resumes: claude, codex, gemini or pi.")
    ] = None,
    no_redact: Annotated[bool, typer.Option("--no-redact", help="Do not redact API keys.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite FILE if it exists.")] = False,
) -> None:
    """Write a session to a file: Markdown or HTML to read, JSON to import again, JSON lines for other programs.

    With --as, write it where another agent looks for its sessions, unless FILE is named, and print what resumes it.
    """
    from nca.errors import UsageError
    from nca.models.providers import known_secrets
    from nca.redact import Redactor
    from nca.transcripts.export_formats import format_of, rendered, write_private
    from nca.transcripts.session_file import redacted

    if file is not None and out is not None:
        raise UsageError("FILE and --out exclude each other.")
    if agent is not None:
        if html or as_json or format_name or force:
            raise UsageError("--as excludes --format, --html, --json and --force.")
        if _STDOUT in (file, out):
            raise UsageError("--as writes a file; valid: a FILE's name, or none for where the agent looks.")
        _export_as(agent, session_id, file or out or "", is_redacted=not no_redact)
        return
    file = file or out or _STDOUT
    asked = [name for name, is_asked in (("html", html), ("json", as_json)) if is_asked]
    chosen = format_of([*asked, *([format_name] if format_name else [])], file)
    with open_session_store(read_only=True) as store:
        copy = store.copy_of(session_id)
    if not no_redact:
        copy = redacted(copy, Redactor(known_secrets(os.environ)))
    data = rendered(copy, chosen, is_ascii=file == _STDOUT)
    if file == _STDOUT:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    write_private(Path(file), data, overwrites=force)
    count = counted(len(copy.entries), "message")
    typer.echo(f"Exported {copy.info.id} ({count}) to {one_line(file)} as {chosen}.", err=True)


def _export_as(name: str, session_id: str, file: str, *, is_redacted: bool) -> None:
    from nca.models.providers import known_secrets
    from nca.redact import Redactor
    from nca.transcripts.outgoing.written import agent_named, write_for
    from nca.transcripts.session_file import redacted

    agent = agent_named(name)
    with open_session_store(read_only=True) as store:
        copy = store.copy_of(session_id)
    if is_redacted:
        copy = redacted(copy, Redactor(known_secrets(os.environ)))
    written = write_for(agent, copy, os.environ, Path.home(), file)
    for line in written_lines(written):
        typer.echo(line, err=True)
    typer.echo(one_line(written.command))


def import_session(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="nca's JSON, a transcript, or another agent's session; - is stdin."),
    ],
    name: Annotated[str, typer.Option(help="A name for the session.")] = "",
) -> None:
    """Import a file as a new session and print its id. An invalid file imports nothing.

    FILE#KEY names one of several sessions in a file.
    """
    from nca.transcripts.conversation_file import read_conversation

    source, key = open_source(file)
    found = read_conversation(source, directory=str(Path.cwd()), name=name, key=key)
    with open_session_store(read_only=False) as store:
        info = store.add(found.copy)
    print_notes(found.notes)
    print_new_session(info)


_PLACE = "Default: your store. Else a URL of PostgreSQL, or a file."


def copy_sessions(
    session_ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Default: all sessions.")] = None,
    to: Annotated[str, typer.Option("--to", metavar="PLACE", help=_PLACE)] = "",
    source: Annotated[str, typer.Option("--from", metavar="PLACE", help=_PLACE)] = "",
) -> int:
    """Copy sessions to another store, each exactly and under its id. Those that are there already stay as they are."""
    from nca.errors import NcaError, UsageError

    begins = named_place("--from", source) if source else store_place()
    ends = named_place("--to", to) if to else store_place()
    if begins == ends:
        raise UsageError("--from and --to are the same store.", advice="Example: --to postgresql://ada@db.example/nca")
    copied = same = 0
    problems: list[str] = []
    with (
        open_session_store(read_only=True, place=begins) as here,
        open_session_store(read_only=False, place=ends) as there,
    ):
        ids = [here.find(one).id for one in session_ids or ()] or [info.id for info in here.list(None)[::-1]]
        for session_id in ids:
            try:
                is_new = _copy(here, there, session_id)
            except NcaError as error:
                problems.append(f"{session_id}: {error}")
            else:
                copied, same = copied + is_new, same + (not is_new)
    typer.echo(f"Copied {counted(copied, 'session')}." + (f" {same:,} were there already." if same else ""))
    for problem in problems:
        typer.echo(f"nca: {one_line(problem)}", err=True)
    return 1 if problems else 0


def _copy(here: Store, there: Store, session_id: str) -> bool:
    """True if it was copied, False if it was there. Raises StoreError if another session has its id, or it differs."""
    from nca.errors import SessionNotFound, StoreError

    copy = here.exact_copy_of(session_id)
    try:
        known = there.find(session_id)
    except SessionNotFound:
        known = None
    if known is not None and known.id == session_id:
        if there.copy_of(session_id).entries != copy.entries:
            raise StoreError("The other store has it with other messages.", advice="`nca sessions show` shows each.")
        return False
    begins, ends = here.outputs_folder(session_id), there.outputs_folder(session_id)
    if begins and ends and begins.is_dir():
        shutil.copytree(begins, ends, dirs_exist_ok=True)
    there.add(copy, keeps_id=True)
    return True
