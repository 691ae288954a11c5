"""Sessions as resources: their list, page by page, and the messages of one, page by page.

nca://sessions/ID         from the first message
nca://sessions/ID/12-40   these messages; each page ends with the address of the next
"""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from nca.mcp_server import answers
from nca.mcp_server.history import History
from nca.sessions.past_sessions import PastSession, Wanted
from nca.tools.recall import plain
from nca.tools.tool import ToolError

if TYPE_CHECKING:
    from mcp_types import ListResourcesResult, ListResourceTemplatesResult, ReadResourceResult

_LISTED = 40
_MANY = 999_999_999
_BASE = "nca://sessions/"
_ADDRESS = re.compile(r"nca://sessions/([^\s/?#]{1,100})(?:/(\d{1,9})(?:-(\d{1,9}))?)?(?:\?offset=(\d{1,12}))?")
_TYPE = "text/plain"


async def listed(history: History, cursor: str | None) -> ListResourcesResult:
    """A page of the sessions, those used last first. The cursor is an offset. Raises ToolError."""
    from mcp_types import ListResourcesResult

    if cursor is not None and not re.fullmatch(r"\d{1,9}", cursor):
        raise ToolError(f"the cursor {plain(cursor)[:60]!r} is none of this list")
    offset = int(cursor or 0)
    page, count, _ = await asyncio.to_thread(history.sessions, Wanted(), _LISTED, offset)
    more = offset + len(page)
    return ListResourcesResult(
        resources=[_resource(one) for one in page], next_cursor=str(more) if page and more < count else None
    )


def templates() -> ListResourceTemplatesResult:
    from mcp_types import ListResourceTemplatesResult, ResourceTemplate

    rows = (
        (
            "session",
            _BASE + "{session}",
            "A past session by its id, from its first message on. The text says where it continues.",
        ),
        (
            "messages",
            _BASE + "{session}/{messages}{?offset}",
            "Messages of a past session, such as 12 or 12-40.",
        ),
    )
    return ListResourceTemplatesResult(
        resource_templates=[
            ResourceTemplate(name=name, uri_template=uri, description=about, mime_type=_TYPE)
            for name, uri, about in rows
        ]
    )


async def read(history: History, uri: str) -> ReadResourceResult:
    """Raises ToolError."""
    from mcp_types import ReadResourceResult, TextResourceContents

    text = await asyncio.to_thread(_text, history, uri)
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=_TYPE, text=text)])


def _text(history: History, uri: str) -> str:
    match = _ADDRESS.fullmatch(uri)
    if match is None:
        raise ToolError(f"there is no resource {plain(uri)[:80]!r}; a session is {_BASE}ID or {_BASE}ID/12-40")
    first = max(1, int(match[2] or 1))
    last = max(first, int(match[3] or (first if match[2] else _MANY)))
    found = answers.of_messages(history, history.find(match[1]), (first, last), int(match[4] or 0))
    offset = f"?offset={found.next_offset}" if found.next_offset else ""
    return found.text_with(f"{_BASE}{found.next_messages.replace(':', '/')}{offset}")


def _resource(past: PastSession) -> Any:
    from mcp_types import Annotations, Resource

    one = answers.of_session(past)
    used = datetime.fromtimestamp(min(past.updated_at, answers.LATEST), UTC).isoformat(timespec="seconds")
    return Resource(
        uri=f"{_BASE}{one.id}",
        name=one.title or one.id,
        description=", ".join((one.agent, one.directory or "no directory", f"{one.messages:,} messages", one.used)),
        mime_type=_TYPE,
        annotations=Annotations(last_modified=used) if past.updated_at else None,
    )
