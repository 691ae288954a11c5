"""`nca sessions search`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from nca.cli.flags import AsJson
from nca.cli.sessions.printing import print_json, short_title
from nca.cli.startup import open_session_store
from nca.terminal.render.humanize import local_time
from nca.terminal.render.sanitize import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nca.sessions import Hit, SessionHit, Store


def search_sessions(
    question: Annotated[list[str], typer.Argument(metavar="TEXT...", help="A question, words, a path or an error.")],
    in_session: Annotated[str, typer.Option("--session", metavar="ID", help="Search one session only.")] = "",
    everything: Annotated[
        bool, typer.Option("--all", help="Show the best messages of all sessions, not the best sessions.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Show at most this many results.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Search all messages, including those that were compacted."""
    from nca.errors import UsageError

    text = " ".join(question)
    if in_session and everything:
        raise UsageError("--session and --all exclude each other.")
    with open_session_store(read_only=True) as store:
        if in_session:
            with store.open_session(in_session, read_only=True) as session:
                hits: list[Hit] | list[SessionHit] = session.search(text, limit)
        elif everything:
            hits = store.search(text, limit)
        else:
            hits = store.search_sessions(text, limit)
        if as_json:
            print_json([_as_dict(hit, store) for hit in hits])
            return
        for line in [line for hit in hits for line in _lines(hit, store)] or ["Nothing found."]:
            typer.echo(line)


def _as_dict(hit: Hit | SessionHit, store: Store) -> dict[str, Any]:
    import msgspec

    from nca.sessions import SessionHit

    info = store.find(hit.session) if isinstance(hit, SessionHit) else None
    return {**(msgspec.to_builtins(info) if info else {}), **msgspec.to_builtins(hit)}


def _lines(hit: Hit | SessionHit, store: Store) -> Iterator[str]:
    """One line for a message; a session has a line of its own and one for each message found in it."""
    from nca.sessions import SessionHit

    if not isinstance(hit, SessionHit):
        yield f"{one_line(hit.id)}  {one_line(hit.role)}: {one_line(hit.snippet)}"
        return
    info = store.find(hit.session)
    yield f"{info.id}  {local_time(info.updated_at)}  {info.messages:>6,}  {short_title(info)}"
    for message in hit.hits:
        yield from (f"    {line}" for line in _lines(message, store))
