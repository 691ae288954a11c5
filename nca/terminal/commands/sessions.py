"""/sessions, /resume, /new and /rename: list, search, continue, start, name and delete sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from nca.errors import UsageError
from nca.humanize import counted, local_time
from nca.terminal.commands.command import App, Command, Suggestion, beginning_with, takes_no
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.sessions import session_table, short_id, title

if TYPE_CHECKING:
    from rich.console import RenderableType

    from nca.sessions.session import SessionInfo

_SHOWN = 20
_FOUND = 10
_SUGGESTED = 50
_WORDS = (
    ("list", "the newest, as a table"),
    ("search", "what was said in them"),
    ("delete", "remove one for good; asks"),
)


class SessionsCommand(Command):
    name = "sessions"
    aliases = ("session",)
    usage = "/sessions\n/sessions list\n/sessions search TEXT\n/sessions delete ID"
    about = "Earlier sessions: choose one, search them, delete one"

    async def run(self, app: App, argument: str) -> None:
        word, _, rest = argument.partition(" ")
        match word:
            case "":
                await choose(app)
            case "list":
                _list(app)
            case "search":
                await _search(app, rest.strip())
            case "delete":
                await _delete(app, rest.strip())
            case _:
                valid = f"/resume {one_line(word, 40)} opens one; /sessions list, search TEXT, delete ID."
                raise takes_no(self.name, word, valid)

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        word, blank, rest = argument.partition(" ")
        if not blank:
            return beginning_with(word, _WORDS)
        return suggestions(app, rest) if word == "delete" else ()


async def choose(app: App) -> None:
    """Have the person pick a session and continue it; if nobody can pick, list them."""
    if not app.reader.can_walk:
        _list(app)
        app.output.notice("/resume ID continues one of them.")
        return
    # Imported here: only a screen needs prompt_toolkit.
    from nca.terminal.panels.session_loader import SessionLoader
    from nca.terminal.panels.session_picker import SessionPicker

    conversation = app.conversation
    theme = conversation.loaded.settings.terminal.theme
    with closing(SessionLoader(conversation.store)) as loader:
        picker = SessionPicker(loader, str(conversation.directory), conversation.session.info.id, theme)
        chosen = await app.reader.walk(picker)
    if chosen is not None:
        await app.sessions.resume(chosen.id)


def suggestions(app: App, argument: str) -> list[Suggestion]:
    """The newest sessions that match a word by id, name or first message."""
    word = argument.lower()
    infos = app.conversation.store.list(limit=_SUGGESTED)
    return [
        Suggestion(short_id(info.id), f"{local_time(info.updated_at)}  {title(info)}")
        for info in infos
        if info.id.startswith(word) or word in info.name.lower() or word in info.title.lower()
    ]


def _list(app: App) -> None:
    store = app.conversation.store
    found = store.list(limit=_SHOWN)
    if not found:
        app.output.show("No sessions yet.")
        return
    app.output.show(_table(app, found))


def _table(app: App, infos: Sequence[SessionInfo]) -> RenderableType:
    whose = app.conversation.store.whose([info.id for info in infos])
    return session_table(infos, app.conversation.session.info.id, whose)


async def _search(app: App, text: str) -> None:
    if not text:
        raise UsageError("/sessions search needs a text, as in /sessions search the parser bug.")
    store = app.conversation.store
    # On a thread: a large store takes a moment, and Ctrl-C works meanwhile.
    hits = await asyncio.to_thread(store.search_sessions, text, _FOUND)
    if not hits:
        app.output.show("Nothing found.")
        return
    app.output.show(_table(app, [store.find(hit.session) for hit in hits]))
    for hit in hits:
        best = hit.hits[0]
        app.output.show(f"{short_id(hit.session)}  {best.role}: {one_line(best.snippet)}")
    app.output.notice("/resume ID continues one of them.")


async def _delete(app: App, wanted: str) -> None:
    store = app.conversation.store
    if not wanted:
        raise UsageError("/sessions delete needs an id or a name.", advice="/sessions list shows them.")
    info = store.find(wanted)
    if info.id == app.conversation.session.info.id:
        raise UsageError(
            "You are in that session already.", advice="Start another with /new; then this one can be deleted."
        )
    if not app.reader.can_choose:
        raise UsageError("Nobody can be asked here.", advice=f"nca sessions delete {info.id} --yes does not ask.")
    question = f"Delete “{title(info)}” ({short_id(info.id)}, {counted(info.messages, 'message')}) for good?"
    if await app.reader.choose(question, (("y", "delete it"),)) != "y":
        app.output.notice("Nothing was deleted.")
        return
    store.delete(info.id)
    app.output.notice(f"Deleted {short_id(info.id)}.")


class ResumeCommand(Command):
    name = "resume"
    usage = "/resume\n/resume ID or NAME"
    about = "Continue an earlier session; without ID, choose one"

    async def run(self, app: App, argument: str) -> None:
        if not argument:
            await choose(app)
            return
        await app.sessions.resume(argument)

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        return suggestions(app, argument) if " " not in argument else ()


class NewCommand(Command):
    name = "new"
    usage = "/new\n/new NAME"
    about = "Start a new session; this one is kept (/resume)"

    async def run(self, app: App, argument: str) -> None:
        if not app.sessions.holds_back("/new again"):
            await app.sessions.start(argument)


class RenameCommand(Command):
    name = "rename"
    usage = "/rename NAME"
    about = "Name this session, for /resume and the list"

    async def run(self, app: App, argument: str) -> None:
        if not argument:
            raise UsageError("/rename needs a name, as in /rename the parser bug.")
        app.conversation.session.rename(argument)
        app.output.notice(f"This session is now “{one_line(app.conversation.session.info.name)}”.")
