"""/export: write the session to a file, to read or to import again, or as a session of another agent."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nca.errors import UsageError
from nca.humanize import counted
from nca.terminal.commands.command import App, Command, Suggestion, beginning_with
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.sessions import place, short_id, written_lines

if TYPE_CHECKING:
    from nca.agent.conversation import Conversation

_FLAGS = {
    "--html": ("html", "one page with a picture of the context"),
    "--md": ("markdown", "to read (the default)"),
    "--json": ("json", "everything; nca sessions import reads it back"),
    "--jsonl": ("jsonl", "the messages, one a line, for other programs"),
}
_WORDS = {flag.removeprefix("--"): flag for flag in _FLAGS} | {"markdown": "--md"}
"""`/export html` means the format; a file of that name is `./html`."""
_FORCE = "--force"
_AS = "--as"


class _Asked(NamedTuple):
    """`agent`: whose session it becomes; None for a file in one of nca's formats."""

    flags: list[str]
    name: str
    agent: str | None = None


class ExportCommand(Command):
    name = "export"
    usage = "/export [FILE] [--html|--md|--json|--jsonl] [--force] [--as AGENT]"
    about = "Write this session to a file or for another agent, with keys removed"

    def needs_person(self, app: App, argument: str) -> str:
        asked = _parsed(argument)
        directory = app.conversation.directory.resolve()
        path = (directory / Path(asked.name).expanduser()).resolve()
        is_inside = path.is_relative_to(directory) and bool(asked.name or asked.agent is None)
        return "" if is_inside else "writes a file outside of the project"

    async def run(self, app: App, argument: str) -> None:
        asked = _parsed(argument)
        # On a thread: a long session takes a moment, and the screen lives meanwhile.
        for line in await asyncio.to_thread(_exported, app.conversation, asked):
            app.output.notice(line)

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        before, _, last = argument.rpartition(" ")
        if before.rpartition(" ")[2] == _AS:
            from nca.transcripts.outgoing.written import AGENTS

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
    from nca.models.providers import known_secrets
    from nca.redact import Redactor
    from nca.transcripts.export_formats import FORMATS, format_of, rendered, write_private
    from nca.transcripts.outgoing.written import agent_named, write_for
    from nca.transcripts.session_file import redacted

    session = conversation.session.info.id
    path = conversation.directory / Path(asked.name).expanduser()
    copy = redacted(conversation.store.copy_of(session), Redactor(known_secrets(os.environ)))
    if asked.agent is not None:
        agent = agent_named(asked.agent)
        written = write_for(agent, copy, os.environ, Path.home(), str(path) if asked.name else "")
        return [*written_lines(written), f"Resume it with: {written.command}"]
    chosen = format_of([_FLAGS[flag][0] for flag in asked.flags if flag != _FORCE], asked.name)
    path = path if asked.name else path / f"nca-{short_id(session)}{FORMATS[chosen][0]}"
    write_private(path, rendered(copy, chosen), overwrites=_FORCE in asked.flags)
    return [f"Wrote {counted(len(copy.entries), 'message')} to {place(str(path))} ({chosen})."]


def _parsed(argument: str) -> _Asked:
    """The file's name is all that is no flag, blanks and all."""
    words = argument.split(" ")
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
    if agent is None and (chosen := _WORDS.get(name.lower())) is not None:
        return _Asked([*flags, chosen], "")
    return _Asked(flags, name, agent)
