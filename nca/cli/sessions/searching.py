"""`nca sessions search`. Looking writes nothing and takes no lock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nca.cli.sessions.shown import AsJson, open_to_read, print_json, title, when
from nca.terminal.render.sanitize import one_line

if TYPE_CHECKING:
    from nca.sessions import Hit, SessionHit, Store


def search_sessions(
    question: Annotated[list[str], typer.Argument(metavar="TEXT...", help="A question, words, a path, an error line.")],
    in_session: Annotated[str, typer.Option("--session", metavar="ID", help="Only in this session.")] = "",
    everything: Annotated[
        bool, typer.Option("--all", help="The best messages of all sessions, instead of the best sessions.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many at most.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Find sessions and messages, also what was compacted away. Any text is a question."""
    from nca.errors import UsageError

    text = " ".join(question)
    if in_session and everything:
        raise UsageError("--session and --all exclude each other.")
    with open_to_read() as store:
        if in_session:
            with store.open_session(in_session, read_only=True) as session:
                _print_hits(session.search(text, limit), as_json=as_json)
        elif everything:
            _print_hits(store.search(text, limit), as_json=as_json)
        else:
            _print_sessions(store, store.search_sessions(text, limit), as_json=as_json)


def _print_hits(hits: list[Hit], *, as_json: bool) -> None:
    if as_json:
        import msgspec

        print_json(msgspec.to_builtins(hits))
    elif not hits:
        typer.echo("nothing found")
    else:
        for hit in hits:
            _print_hit(hit)


def _print_sessions(store: Store, found: list[SessionHit], *, as_json: bool) -> None:
    if as_json:
        import msgspec

        print_json([{**msgspec.to_builtins(store.find(one.session)), **msgspec.to_builtins(one)} for one in found])
    elif not found:
        typer.echo("nothing found")
    for one in [] if as_json else found:
        info = store.find(one.session)
        typer.echo(f"{info.id}  {when(info.updated_at)}  {info.messages:>6,}  {title(info)}")
        for hit in one.hits:
            _print_hit(hit, indent="    ")


def _print_hit(hit: Hit, indent: str = "") -> None:
    typer.echo(f"{indent}{one_line(hit.id)}  {one_line(hit.role)}: {one_line(hit.snippet)}")
