"""The tools of the server: recall, expand, sessions. All only read. And what a call may ask for."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar

from nca.humanize import one_line
from nca.mcp_server import answers
from nca.mcp_server.answers import AnyAnswer, Messages, Results, SessionList
from nca.mcp_server.history import History
from nca.sessions.past_sessions import Wanted
from nca.tools.schema import Signature
from nca.tools.tool import ToolError

HITS = 10
LISTED = 40
MAX_OFFSET = 200
"""Results further down answer nothing; the search itself looks at 300 passages."""
_SECONDS_OF = {"h": 3_600, "d": 86_400, "w": 7 * 86_400}
_AGE = re.compile(r"(\d{1,5})\s*([hdw])")
_MESSAGES = re.compile(r"\[?([0-9A-Za-z][^\s:\[\]]{0,99}):#?(\d{1,9})(?:\s*[-–]\s*(\d{1,9}))?\]?")
_SHOWN_CHARS = 60


class HistoryTool:
    """A tool with the signature of its `call` as input schema, and that of its answers as output schema."""

    name: ClassVar[str]
    answers: ClassVar[type[AnyAnswer]]
    call: Callable[..., AnyAnswer]
    """Runs in a thread."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._signature = Signature.of(self.call)
        self.parameters = self._signature.schema()
        self.description = " ".join((self.call.__doc__ or "").split())

    async def answer(self, arguments: dict[str, Any]) -> AnyAnswer:
        """Raises ValueError; its text tells the model what is valid."""
        read = self._signature.read(arguments)
        return await asyncio.to_thread(lambda: self.call(**read))

    def _limits(self) -> list[str]:
        """The note of an answer without results about the places searched."""
        scope = self._history.scope
        return [f"this client sees the sessions of {scope} only; the user can allow more"] if scope.allowed else []


class Recall(HistoryTool):
    name: ClassVar[str] = "recall"
    answers: ClassVar[type[AnyAnswer]] = Results

    def call(
        self,
        query: Annotated[str, "A question, words, a path, an error message, in the language in which it was said."],
        directory: Annotated[str, "Only sessions in this directory (absolute path) or below it."] = "",
        agent: Annotated[str, "Only sessions of this agent, such as nca, claude or codex."] = "",
        since: Annotated[str, "Only from then on: 2026-03-01, or an age: 12h, 7d, 2w."] = "",
        session: Annotated[str, "Only this session, by its id."] = "",
        offset: Annotated[int, "Where the last answer says to continue."] = 0,
    ) -> Results:
        """Search all past conversations of this user with coding agents: what was said, decided, tried, run and read.
        Results come with session, message number, date and directory. Use it before you guess or do something again.
        """
        if not query.strip():
            raise ToolError("give a query; sessions lists the sessions")
        if not 0 <= offset <= MAX_OFFSET:
            raise ToolError(f"offset is a number from 0 to {MAX_OFFSET}, not {offset}; other words may find more")
        session = session.strip() and self._history.find(session.strip()).session.id
        wanted = Wanted(session, agent.strip(), folder_of(directory), since_of(since))
        # One more than is shown tells whether there are more.
        found = self._history.recall(query, wanted, offset + HITS + 1)
        if offset >= len(found.hits):
            advice = "Other words, or fewer filters, may find it." if not offset else "These were all."
            found = replace(found, notes=(advice, *found.notes, *self._limits()))
        return answers.of_recall(found, offset, HITS)


class Expand(HistoryTool):
    name: ClassVar[str] = "expand"
    answers: ClassVar[type[AnyAnswer]] = Messages

    def call(
        self,
        messages: Annotated[str, "An id from recall: 1a2b3c4d:12, or 1a2b3c4d:12-15 for several."],
        offset: Annotated[int, "Where the last answer says to continue."] = 0,
    ) -> Messages:
        """Show messages of a past conversation whole. A long answer is cut and says how to continue."""
        session, first, last = messages_of(messages)
        return answers.of_messages(self._history, self._history.find(session), (first, last), max(0, offset))


class Sessions(HistoryTool):
    name: ClassVar[str] = "sessions"
    answers: ClassVar[type[AnyAnswer]] = SessionList

    def call(
        self,
        directory: Annotated[str, "Only sessions in this directory (absolute path) or below it."] = "",
        agent: Annotated[str, "Only sessions of this agent, such as nca, claude or codex."] = "",
        since: Annotated[str, "Only those used since: 2026-03-01, or an age: 12h, 7d, 2w."] = "",
        offset: Annotated[int, "Where the last answer says to continue."] = 0,
    ) -> SessionList:
        """List past conversations of this user with coding agents, those used last first: id, last use, agent,
        directory, number of messages, title."""
        wanted, offset = Wanted("", agent.strip(), folder_of(directory), since_of(since)), max(0, offset)
        listed, count, notes = self._history.sessions(wanted, LISTED, offset)
        if count and not listed:
            raise ToolError(f"{count:,} sessions fit; offset {offset:,} is past the last")
        return answers.of_sessions(listed, count, offset, notes if listed else [*notes, *self._limits()])


def tools_of(history: History) -> tuple[HistoryTool, ...]:
    return Recall(history), Expand(history), Sessions(history)


def since_of(text: str) -> float:
    """Seconds since the epoch for a date (2026-03-01), a time (2026-03-01T14:00) or an age (12h, 7d, 2w); 0 for "".

    Raises ToolError.
    """
    asked = text.strip()
    if not asked:
        return 0.0
    if age := _AGE.fullmatch(asked.lower()):
        return max(1.0, time.time() - int(age[1]) * _SECONDS_OF[age[2]])
    try:
        return max(1.0, datetime.fromisoformat(asked).timestamp())
    except (ValueError, OverflowError, OSError):
        raise ToolError(
            f"since is a date such as 2026-03-01 or an age such as 12h, 7d or 2w, not {one_line(asked, _SHOWN_CHARS)!r}"
        ) from None


def folder_of(text: str) -> str:
    """A folder as sessions name it: absolute, with `~` written out; "" for "". Raises ToolError."""
    asked = text.strip()
    if not asked:
        return ""
    try:
        folder = Path(asked).expanduser()
    except RuntimeError:
        folder = Path(asked)
    if not folder.is_absolute() or "\0" in asked:
        raise ToolError(
            f"directory is an absolute path such as /home/me/project, not {one_line(asked, _SHOWN_CHARS)!r}"
        )
    return str(folder)


def messages_of(text: str) -> tuple[str, int, int]:
    """Session, first and last message of an id such as `1a2b3c4d:12` or `1a2b3c4d:12-15`. Raises ToolError."""
    match = _MESSAGES.fullmatch(text.strip())
    if match is None:
        raise ToolError(
            "messages is an id from recall, such as 1a2b3c4d:12 or 1a2b3c4d:12-15,"
            f" not {one_line(text, _SHOWN_CHARS)!r}"
        )
    first = max(1, int(match[2]))
    return match[1], first, max(first, int(match[3] or first))
