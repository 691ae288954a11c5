"""Prompts: questions about past sessions that a person asks as a command, sent with what the sessions say."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nca.mcp_server import answers
from nca.mcp_server.history import History
from nca.mcp_server.tools import HITS
from nca.sessions.past_sessions import Wanted
from nca.tools.recall import plain
from nca.tools.tool import ToolError

if TYPE_CHECKING:
    from mcp_types import GetPromptResult, ListPromptsResult

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


def listed() -> ListPromptsResult:
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


async def got(history: History, name: str, arguments: Mapping[str, str]) -> GetPromptResult:
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
