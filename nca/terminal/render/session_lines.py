"""Stored sessions in words: when, how large, what about. Titles and names are foreign text."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from nca.terminal.render.sanitize import one_line
from nca.terminal.render.wording import messages

if TYPE_CHECKING:
    from rich.table import Table

    from nca.agent.conversation import Conversation
    from nca.sessions.session import SessionInfo

TITLE_CHARS = 200
_ID_CHARS = 12
_SAID_CHARS = 160


def when(at: float) -> str:
    """Local time; a clock that was far off is no reason to show nothing."""
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
    except (OverflowError, ValueError, OSError):
        return "at an unknown time"


def short_id(session_id: str) -> str:
    """As much of an id as a line has room for; ids of nca's own making are shorter."""
    return one_line(session_id, _ID_CHARS)


def title(info: SessionInfo) -> str:
    """The session's name, else what was said first."""
    return one_line(info.name or info.title, TITLE_CHARS) or "(empty)"


def size(count: int) -> str:
    """Bytes in the unit that a person reads them in."""
    if count < 1_000:
        return f"{count} bytes"
    return f"{count / 1_000:.0f} kB" if count < 999_500 else f"{count / 1_000_000:.1f} MB"


def place(directory: str) -> str:
    """A directory as a shell shows it, `~` for the person's own."""
    home = str(Path("~").expanduser())
    is_inside = directory == home or directory.startswith(f"{home}/")
    return one_line(f"~{directory[len(home) :]}" if is_inside and len(home) > 1 else directory)


def session_table(infos: Iterable[SessionInfo], current: str = "") -> Table:
    """A table for where nobody can pick: a pipe, a plain terminal, the result of a search."""
    from rich.text import Text

    from nca.terminal.render.tables import new_table

    table = new_table(has_header=True)
    table.add_column("id", no_wrap=True)
    table.add_column("last used", no_wrap=True)
    table.add_column("messages", justify="right")
    table.add_column("about", overflow="ellipsis", no_wrap=True, ratio=1)
    for info in infos:
        about = Text(("(this) " if info.id == current else "") + title(info))
        table.add_row(Text(short_id(info.id), style="accent"), when(info.updated_at), f"{info.messages:,}", about)
    return table


def gone_on_lines(conversation: Conversation) -> list[str]:
    """Where one was in a session that is taken up again: its name, the last question, the beginning of the answer."""
    info = conversation.session.info
    doing = "Reading" if conversation.session.is_read_only else "Going on with"
    lines = [f"{doing} “{title(info)}” ({messages(info.messages)})."]
    if info.directory != str(conversation.directory):
        lines.append(f"It began in {place(info.directory)}; tools work in {place(str(conversation.directory))}.")
    for role, mark in (("user", "›"), ("assistant", "•")):
        said = (entry.message for entry in reversed(conversation.context.entries) if entry.message.role == role)
        text = next((message.text for message in said if message.text.strip()), "")
        if text:
            lines.append(f"{mark} {one_line(text, _SAID_CHARS)}")
    return lines
