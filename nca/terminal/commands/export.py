"""/export: write the session to a file, to read or to import again."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from nca.errors import UsageError
from nca.terminal.commands.command import App, Command, Suggestion, beginning_with
from nca.terminal.render.humanize import counted
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.sessions import place, short_id

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


class ExportCommand(Command):
    name = "export"
    usage = "/export [FILE] [--html|--md|--json|--jsonl] [--force]"
    about = "Write this session to a file, with keys removed"

    def needs_person(self, app: App, argument: str) -> str:
        _, name = _parsed(argument)
        directory = app.conversation.directory.resolve()
        is_inside = (directory / Path(name).expanduser()).resolve().is_relative_to(directory)
        return "" if is_inside else "writes a file outside of the project"

    async def run(self, app: App, argument: str) -> None:
        flags, name = _parsed(argument)
        # On a thread: a long session takes a moment, and the screen lives meanwhile.
        app.output.notice(await asyncio.to_thread(_exported, app.conversation, flags, name))

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        last = argument.rpartition(" ")[2]
        known = [*((flag, about) for flag, (_, about) in _FLAGS.items()), (_FORCE, "overwrite an existing file")]
        return beginning_with(last, known)


def _exported(conversation: Conversation, flags: list[str], name: str) -> str:
    """Write the file; what to say of it."""
    # Imported here: most chats are never exported.
    from nca.models.providers import known_secrets
    from nca.redact import Redactor
    from nca.transcripts.export_formats import FORMATS, format_of, rendered, write_private
    from nca.transcripts.session_file import redacted

    session = conversation.session.info.id
    chosen = format_of([_FLAGS[flag][0] for flag in flags if flag != _FORCE], name)
    path = conversation.directory / Path(name or f"nca-{short_id(session)}{FORMATS[chosen][0]}").expanduser()
    copy = redacted(conversation.store.copy_of(session), Redactor(known_secrets(os.environ)))
    write_private(path, rendered(copy, chosen), overwrites=_FORCE in flags)
    return f"Wrote {counted(len(copy.entries), 'message')} to {place(str(path))} ({chosen})."


def _parsed(argument: str) -> tuple[list[str], str]:
    """Flags, and the file's name: all that is no flag, blanks and all."""
    words = argument.split(" ")
    flags = [word for word in words if word.startswith("--")]
    for flag in flags:
        if flag not in _FLAGS and flag != _FORCE:
            raise UsageError(
                f"/export has no flag {one_line(flag, 40)}.", advice=f"Valid: {', '.join(_FLAGS)}, {_FORCE}."
            )
    name = " ".join(word for word in words if not word.startswith("--")).strip()
    if (chosen := _WORDS.get(name.lower())) is not None:
        return [*flags, chosen], ""
    return flags, name


COMMAND = ExportCommand()
