"""`nca sessions export` and `import`: a session as a file, and back."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from nca.cli.sessions.shown import SessionId, messages, open_to_read, open_to_write, say_made
from nca.terminal.render.sanitize import one_line

STDOUT = "-"


def export_session(
    session_id: SessionId,
    file: Annotated[str | None, typer.Argument(metavar="[FILE]", help="Where to; - is standard output.")] = None,
    format_name: Annotated[
        str | None, typer.Option("--format", help="markdown, json or html; by default what FILE's ending says.")
    ] = None,
    html: Annotated[bool, typer.Option("--html", help="The same as --format html.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    out: Annotated[str | None, typer.Option("--out", metavar="FILE", help="The same as FILE.")] = None,
    no_redact: Annotated[bool, typer.Option("--no-redact", help="Leave keys in the text as they are.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE where it exists.")] = False,
) -> None:
    """Write a session to a file: Markdown and HTML to read, JSON to import again."""
    from nca.errors import UsageError
    from nca.models.api_keys import known_secrets
    from nca.redact import Redactor
    from nca.transcripts.exporting import format_of, rendered
    from nca.transcripts.session_file import redacted
    from nca.transcripts.writing import write_private

    if file is not None and out is not None:
        raise UsageError("FILE and --out exclude each other.")
    file = file or out or STDOUT
    asked = [name for name, is_asked in (("html", html), ("json", as_json)) if is_asked]
    chosen = format_of([*asked, *([format_name] if format_name else [])], file)
    with open_to_read() as store:
        copy = store.copy_of(session_id)
    if not no_redact:
        copy = redacted(copy, Redactor(known_secrets(os.environ)))
    data = rendered(copy, chosen, is_ascii=file == STDOUT)
    if file == STDOUT:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    write_private(Path(file), data, overwrites=force)
    typer.echo(f"{copy.info.id}: {messages(len(copy.entries))} in {one_line(file)} ({chosen})", err=True)


def import_session(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="nca's own JSON, or OpenAI-shaped JSON or JSON lines; - is standard input."
        ),
    ],
    name: Annotated[str, typer.Option(help="A name for the session.")] = "",
) -> None:
    """Make a session of a file, whole or not at all; prints its id."""
    from nca.errors import UsageError
    from nca.transcripts.session_file import read_session

    try:
        raw = sys.stdin.buffer.read() if file == STDOUT else Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"{file}: cannot be read ({error.strerror or error}).") from error
    place = "standard input" if file == STDOUT else file
    copy = read_session(raw, place, directory=str(Path.cwd()), name=name)
    with open_to_write() as store:
        info = store.add(copy)
    say_made(info)
