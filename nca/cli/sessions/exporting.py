"""`nca sessions export` and `import`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from nca.cli.flags import SessionId
from nca.cli.input_file import open_source, print_notes
from nca.cli.sessions.changing import print_new_session
from nca.cli.startup import open_session_store
from nca.terminal.render.humanize import counted
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.sessions import written_lines

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
