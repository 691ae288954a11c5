"""Sessions as resources (their list, and the messages of one, page by page), and prompts with what the sessions say.

nca://sessions/ID         from the first message
nca://sessions/ID/12-40   these messages; each page ends with the address of the next
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from nca.mcp_server import answers
from nca.mcp_server.history import History
from nca.mcp_server.tools import HITS
from nca.sessions.past_sessions import PastSession, Wanted
from nca.tools.recall import plain
from nca.tools.tool import ToolError

if TYPE_CHECKING:
    from mcp_types import (
        GetPromptResult,
        ListPromptsResult,
        ListResourcesResult,
        ListResourceTemplatesResult,
        ReadResourceResult,
    )

_LISTED = 40
_MANY = 999_999_999
_BASE = "nca://sessions/"
_ADDRESS = re.compile(r"nca://sessions/([^\s/?#]{1,100})(?:/(\d{1,9})(?:-(\d{1,9}))?)?(?:\?offset=(\d{1,12}))?")
_TYPE = "text/plain"


async def listed_resources(history: History, cursor: str | None) -> ListResourcesResult:
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


def resource_templates() -> ListResourceTemplatesResult:
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


async def read_resource(history: History, uri: str) -> ReadResourceResult:
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


_LAST_MESSAGES = 12
_WORDS_CHARS = 2_000
_READ_ON = (
    " Read a result whole with the tool expand before you rely on it, and search with other words (recall) if these are"
    " not enough. Name the session and the message of what you say."
)


@dataclass(frozen=True, slots=True)
class Prompt:
    """about: for the person; argument: what the person fills in, and `asked`: what that is; text: for the model."""

    name: str
    about: str
    text: str
    argument: str = ""
    asked: str = ""


PROMPTS = (
    Prompt(
        "decided",
        "What was decided about something, when and why",
        "What was decided about this: {words}\nSay what was decided, when, why, and against what. If it was decided"
        f" more than once, the newest decision counts; name the older ones. If it was never decided, say so.{_READ_ON}",
        "topic",
        "What the decision is about",
    ),
    Prompt(
        "tried",
        "What was tried about a problem, and what came of it",
        "What was tried about this problem: {words}\nList each attempt, in order: what was done, what came of it, and"
        f" why it failed if it did. Then say what was not tried yet.{_READ_ON}",
        "problem",
        "The problem, such as an error message",
    ),
    Prompt(
        "where_we_were",
        "Where the last session stopped",
        "Below are the last messages of the session that was used last. Say in at most six lines: the task, what is"
        " done, what is open, and the next step. Read earlier messages (expand) where these are not enough.",
    ),
)


def listed_prompts() -> ListPromptsResult:
    from mcp_types import ListPromptsResult, PromptArgument
    from mcp_types import Prompt as Listed

    return ListPromptsResult(
        prompts=[
            Listed(
                name=one.name,
                description=one.about,
                arguments=[PromptArgument(name=one.argument, description=one.asked, required=True)]
                if one.argument
                else [],
            )
            for one in PROMPTS
        ]
    )


async def filled_prompt(history: History, name: str, arguments: Mapping[str, str]) -> GetPromptResult:
    """Raises ToolError."""
    from mcp_types import GetPromptResult, PromptMessage, TextContent

    found = next((one for one in PROMPTS if one.name == name), None)
    if found is None:
        known = ", ".join(one.name for one in PROMPTS)
        raise ToolError(f"there is no prompt {plain(name)[:60]!r}; the prompts are: {known}")
    words = " ".join(plain(arguments.get(found.argument, "")).split())[:_WORDS_CHARS]
    if found.argument and not words:
        raise ToolError(f"the prompt {name} needs {found.argument}")
    said = await asyncio.to_thread(_said, history, words)
    text = TextContent(type="text", text=f"{found.text.replace('{words}', words)}\n\n{said}")
    return GetPromptResult(description=found.about, messages=[PromptMessage(role="user", content=text)])


def _said(history: History, words: str) -> str:
    """What the sessions say about these words; without words, the end of the session that was used last."""
    if words:
        return answers.of_recall(history.recall(words, Wanted(), HITS), 0, HITS).text
    page, _, _ = history.sessions(Wanted(), 1, 0)
    if not page:
        return "There is no session yet."
    last = page[0].messages
    source = history.find(page[0].id)
    return answers.of_messages(history, source, (max(1, last - _LAST_MESSAGES + 1), last), 0).text
