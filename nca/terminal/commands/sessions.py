"""/sessions, /resume, /new and /rename: list, search, continue, start, name and delete sessions.
/export: write the session to a file, to read or to import again, or as a session of another agent.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Group

from nca.errors import UsageError
from nca.humanize import counted, local_time
from nca.terminal.commands.command import App, Command, Suggestion, beginning_with, takes_no
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.sessions import (
    found_lines,
    namesakes_line,
    place,
    session_table,
    short_id,
    title,
    written_lines,
)
from nca.tools.permissions import names_of

if TYPE_CHECKING:
    from rich.console import RenderableType

    from nca.agent.conversation import Conversation
    from nca.sessions.session import SessionInfo

_SHOWN = 20
_OLDER = "… and older ones: /sessions search TEXT finds them, and nca sessions list --all lists every one."
_FOUND = 10
_SUGGESTED, _SUGGESTED_CHARS = 50, 60
_ACTIONS = (
    ("list", "the newest, as a table"),
    ("search", "what was said in them"),
    ("delete", "remove one for good; asks"),
)


class SessionsCommand(Command):
    name = "sessions"

    def only_shows(self, argument: str) -> bool:
        return argument.partition(" ")[0] != "delete"

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
            return beginning_with(word, _ACTIONS)
        return suggestions(app, rest) if word == "delete" else ()


async def choose(app: App, agent: str = "") -> None:
    """Have the person pick a session and continue it; one of another agent in this directory is imported first.

    agent  only its sessions; "": nca's, and those of all agents. Without a screen nca's are listed.
    """
    if not app.can_walk and not agent:
        _list(app)
        app.output.notice("/resume ID continues one of them.")
        return
    # Imported here: only a screen needs prompt_toolkit.
    from nca.terminal.panels.offered_sessions import OfferedSessions, OtherSessions, none_of
    from nca.terminal.panels.session_picker import SessionPicker

    conversation, store = app.conversation, app.conversation.store
    others = OtherSessions(os.environ, Path.home(), str(conversation.directory), agent)
    with closing(OfferedSessions(store, others, own=not agent)) as loader:
        if agent and not await loader.sessions():
            raise none_of(agent, others.notes)
        if not app.can_walk:
            raise UsageError(f"/resume {agent} needs a screen.", advice="`nca sessions import FILE` imports one.")
        theme = conversation.loaded.settings.terminal.theme
        picker = SessionPicker(loader, str(conversation.directory), conversation.session.info.id, theme)
        chosen = await app.reader.walk(picker)
    if chosen is None:
        return
    if waiting := others.waiting_line(chosen):
        app.output.notice(waiting)
    imported = others.chosen(store, chosen)
    for note in (*others.notes, *imported.notes) if chosen.id in others else ():
        app.output.notice(note)
    await app.sessions.resume(imported.info.id)


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
    found = store.list(limit=_SHOWN + 1)
    if not found:
        app.output.show("No sessions yet.")
        return
    app.output.show(_table(app, found[:_SHOWN]))
    if len(found) > _SHOWN:
        app.output.notice(_OLDER)


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
    whose, here = store.whose([hit.session for hit in hits]), app.conversation.session.info.id
    found = (found_lines(store.find(hit.session), hit, here, whose.get(hit.session)) for hit in hits)
    app.output.show(Group(*chain.from_iterable(found)))
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
    if await app.reader.choose(question, (("y", "delete it"), ("n", "keep it"))) != "y":
        app.output.notice("Nothing was deleted.")
        return
    store.delete(info.id)
    app.output.notice(f"Deleted {short_id(info.id)}.")


class ResumeCommand(Command):
    name = "resume"

    async def run(self, app: App, argument: str) -> None:
        if not argument:
            await choose(app)
            return
        # Imported here: it reads other agents' formats.
        from nca.terminal.panels.offered_sessions import agent_named

        if agent := agent_named(argument):
            await choose(app, agent)
        else:
            await app.sessions.resume(argument)

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        before, blank, _ = argument.rpartition(" ")
        if not blank:
            return suggestions(app, argument)
        # Only the last word is replaced: behind others the title goes on.
        begun = ((info, title(info, _SUGGESTED_CHARS)) for info in app.conversation.store.list(limit=_SUGGESTED))
        return [
            Suggestion(one[len(before) + 1 :].removesuffix("…"), short_id(info.id))
            for info, one in begun
            if one.lower().startswith(argument.lower())
        ]


class NewCommand(Command):
    name = "new"

    async def run(self, app: App, argument: str) -> None:
        if not app.sessions.holds_back("/new again"):
            await app.sessions.start(argument)


class RenameCommand(Command):
    name = "rename"

    async def run(self, app: App, argument: str) -> None:
        if not argument:
            raise UsageError("/rename needs a name, as in /rename the parser bug.")
        app.conversation.session.rename(argument)
        session = app.conversation.session
        named = f"This session is now “{one_line(session.info.name)}”."
        app.output.notice(f"{named} {namesakes_line(session.info, session.namesakes)}".rstrip())


_FLAGS = {
    "--html": ("html", "one page with a picture of the context"),
    "--md": ("markdown", "to read (the default)"),
    "--json": ("json", "everything; nca sessions import reads it back"),
    "--jsonl": ("jsonl", "the messages, one per line, for other programs"),
}
_FORMAT_WORDS = {flag.removeprefix("--"): flag for flag in _FLAGS} | {"markdown": "--md"}
"""`/export html` and `/export html FILE` mean the format, as `/export as pi` means the agent; a file of that name is
`./html`."""
_FORCE = "--force"
_AS = "--as"


class _Asked(NamedTuple):
    """`agent`: the agent that gets the session; None for a file in one of nca's formats."""

    flags: list[str]
    name: str
    agent: str | None = None


class ExportCommand(Command):
    name = "export"

    def needs_person(self, app: App, argument: str) -> str:
        asked = _parsed(argument)
        directory = app.conversation.directory.resolve()
        *_, path = names_of(asked.name, directory)
        is_inside = Path(path).is_relative_to(directory) and bool(asked.name or asked.agent is None)
        return "" if is_inside else "writes a file outside of the project"

    async def run(self, app: App, argument: str) -> None:
        asked = _parsed(argument)
        # On a thread: a long session takes a moment, and the screen lives meanwhile.
        for line in await asyncio.to_thread(_exported, app.conversation, asked):
            app.output.notice(line)

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        before, _, last = argument.rpartition(" ")
        if before.rpartition(" ")[2] == _AS:
            from nca.transcripts.outgoing.conversation import AGENTS

            return beginning_with(last, [(name, "") for name in AGENTS])
        known = [
            *((flag, about) for flag, (_, about) in _FLAGS.items()),
            (_FORCE, "overwrite an existing file"),
            (_AS, "claude, codex, gemini or pi: a session that it resumes"),
        ]
        return beginning_with(last, known)


def _exported(conversation: Conversation, asked: _Asked) -> list[str]:
    """Write the file; what to say of it, line by line."""
    # Imported here: most chats are never exported.
    from nca.transcripts.export_formats import FORMATS, format_of, rendered, write_private
    from nca.transcripts.outgoing.conversation import AGENTS, write_for
    from nca.transcripts.session_file import redacted

    session = conversation.session.info.id
    path = conversation.directory / os.path.expanduser(asked.name)  # noqa: PTH111  Path raises for an unknown user
    copy = redacted(conversation.store.copy_of(session))
    if asked.agent is not None:
        written = write_for(asked.agent, copy, os.environ, Path.home(), str(path) if asked.name else "")
        return [*written_lines(written), f"Resume it with: {written.command}"]
    formats = [_FLAGS[flag][0] for flag in asked.flags if flag != _FORCE]
    if asked.name and not formats and not Path(asked.name).suffix:
        name = one_line(asked.name, 40)
        if name.lower() in AGENTS:
            raise UsageError(
                f"The name {name} does not say the format.", advice=f"/export as {name.lower()} is for it."
            )
        raise UsageError(
            f"The name {name} does not say the format.",
            advice=f"Valid: /export FORMAT {name}, with html, md, json or jsonl; or an ending, as in {name}.md.",
        )
    chosen = format_of(formats, asked.name)
    if not asked.name:
        path /= f"nca-{short_id(session)}"
    if not path.suffix:
        path = path.with_name(f"{path.name}{FORMATS[chosen][0]}")
    write_private(path, rendered(copy, chosen), overwrites=_FORCE in asked.flags)
    return [f"Wrote {counted(len(copy.entries), 'message')} to {place(str(path))} ({chosen})."]


def _parsed(argument: str) -> _Asked:
    """The file's name is all that is not a flag, blanks and all."""
    # Imported here: most chats are never exported.
    from nca.transcripts.outgoing.conversation import AGENTS

    words = argument.split(" ")
    if words[0].lower() == _AS.removeprefix("--") and " ".join(words[1:2]).lower() in AGENTS:
        words[:2] = _AS, words[1].lower()
    agent = None
    if _AS in words:
        at = words.index(_AS)
        agent = "".join(words[at + 1 : at + 2])
        del words[at : at + 2]
    flags = [word for word in words if word.startswith("--")]
    for flag in flags:
        if flag not in _FLAGS and flag != _FORCE:
            raise UsageError(
                f"/export has no flag {one_line(flag, 40)}.", advice=f"Valid: {', '.join(_FLAGS)}, {_FORCE}, {_AS}."
            )
    name = " ".join(word for word in words if not word.startswith("--")).strip()
    if agent is not None and flags:
        raise UsageError(f"{_AS} excludes {', '.join(_FLAGS)} and {_FORCE}.")
    first, _, rest = name.partition(" ")
    if agent is None and (chosen := _FORMAT_WORDS.get(first.lower())) is not None:
        return _Asked([*flags, chosen], rest.strip())
    return _Asked(flags, name, agent)
