"""/context search: search everything said and done, compacted or not."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from rich.text import Text

from nca.errors import UsageError
from nca.terminal.commands.command import App
from nca.terminal.render.sanitize import one_line

if TYPE_CHECKING:
    from nca.sessions.results import Hit

ALL = "--all"


async def search(app: App, argument: str) -> None:
    """Show what answers best, each under the number that /context show takes; `--all` looks into every session."""
    question = argument.removeprefix(ALL).strip() if argument.split(" ")[0] == ALL else argument
    if not question:
        raise UsageError(
            "/context search needs a text.", advice=f"/context search TEXT, or /context search {ALL} TEXT."
        )
    is_everywhere = question != argument
    conversation = app.conversation
    hits = await asyncio.to_thread(conversation.context.search, question, scope="all" if is_everywhere else "session")
    if not hits:
        other = "" if is_everywhere else f" /context search {ALL} TEXT searches every session."
        app.output.show(f"Nothing was found.{other}")
        return
    lines = [_line(hit, conversation.session.info.id) for hit in hits]
    app.output.show(Text("\n").join(lines))


def _line(hit: Hit, session: str) -> Text:
    """A hit in this session is shown by its number, which the other commands take."""
    shown = str(hit.seq) if hit.session == session else hit.id
    return Text.assemble((one_line(shown, 40), "accent"), f"  {one_line(hit.role, 20)}: {one_line(hit.snippet)}")
