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
    no_redact: Annotated[bool, typer.Option("--no-redact", help="Do not redact API keys.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite FILE if it exists.")] = False,
) -> None:
    """Write a session to a file: Markdown or HTML to read, JSON to import again, JSON lines for other programs."""
    from nca.errors import UsageError
    from nca.models.providers import known_secrets
    from nca.redact import Redactor
    from nca.transcripts.export_formats import format_of, rendered, write_private
    from nca.transcripts.session_file import redacted

    if file is not None and out is not None:
        raise UsageError("FILE and --out exclude each other.")
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
