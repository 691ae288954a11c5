"""The sources of a row of Claude Code: results and the program's additions have the user's role as well."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Literal

import msgspec

from nca.messages import Message
from nca.transcripts.formats import building as make
from nca.transcripts.formats.records import PLACES
from nca.transcripts.formats.row import Row, text_of
from nca.words import Source

_NOTE = re.compile(
    r"\s*<(?:(ide_\w+|system-reminder)>.*?</\1>|(local-command-\w+)>.*</\2>)\s*",
    re.DOTALL,
)
"""Texts that the program puts before the person's words, in the same text or in one beside it.

The output of a command may hold the end of its own tag: the last one counts.
"""
_REJECTED = "The user doesn't want to proceed with this tool use"
"""How the result of a call begins that the person did not allow: nothing has failed."""
_WITH_A_WORD = (
    "To tell you how to proceed, the user said:",
    "The user provided the following reason for the rejection:",
)
"""The part of such a result before the person's text."""
_BEHIND_A_WORD = "\n\nNote: The user's next message may contain a correction or preference."
_QUESTION = "AskUserQuestion"
"""For this tool's calls, that part is the program's: the person wants to talk about the questions."""
_TYPED = ("typed", "queued")
"""The origin of a prompt, as newer versions record it."""


def messages_of(row: Row, blocks: Iterable[Row], names: Mapping[str, str]) -> Iterator[Message]:
    """The messages of a user's row, each with who said it.

    names  the tools by the ids of their calls
    """
    source = _source(row)
    if source == "nca":
        runs: Iterable[tuple[bool, Iterable[Row]]] = [(True, blocks)]
    else:
        runs = groupby((piece for block in blocks for piece in _pieces(block)), key=_is_injected)
    for is_injected, run in runs:
        for message in make.user_messages(run, names):
            if message.role != "tool":
                yield msgspec.structs.replace(message, source="nca" if is_injected else source)
            elif message.is_error and message.text.startswith(_REJECTED) and _is_denied(row):
                yield _refused(message)
            else:
                yield message


def _source(row: Row) -> Source | Literal[""]:
    """Who said what is not a result in a user's row; "" where the row does not tell."""
    came_from, origin = row.get("promptSource"), row.row("origin").get("kind", "human")
    if row.get("isMeta") or came_from == "system" or origin != "human":
        return "nca"
    # A subagent's prompt is the model's, and a plan that was taken on in a new session is sent as a prompt.
    if row.get("isSidechain") or "planContent" in row:
        return ""
    return "typed" if came_from in (None, *_TYPED) else ""


def _is_denied(row: Row) -> bool:
    """Whether the program itself says that the person refused: a tool's own error may have the same words.

    Older versions say it in the result alone.
    """
    if "toolDenialKind" in row:
        return text_of(row["toolDenialKind"]) == "user-rejected"
    result = row.get("toolUseResult")
    return result is None or result == "User rejected tool use" or text_of(result).startswith(f"Error: {_REJECTED}")


def _refused(result: Message) -> Message:
    """The result of a call that the person refused, with what they typed as theirs."""
    text = result.text
    place, marker = max((text.find(marker), marker) for marker in _WITH_A_WORD)
    if place < 0 or result.name == _QUESTION or not isinstance(result.content, str):
        return msgspec.structs.replace(result, is_error=False)
    begin = place + len(marker)
    typed, note, more = text[begin:].partition(_BEHIND_A_WORD)
    return msgspec.structs.replace(result, content=make.typed_after(text[:begin], typed, note + more), is_error=False)


def is_said(row: Row) -> bool:
    """Whether a person may have written it: no result, no note of the program."""
    if row.get("type") != "user" or row.get("isCompactSummary") or _source(row) == "nca":
        return False
    content = row.value("message", "content")
    if isinstance(content, str):
        return bool(content)
    kinds = [block.get("type") for block in make.blocks_of(content)]
    return "text" in kinds and "tool_result" not in kinds


def titles_of(rows: Sequence[Row]) -> str:
    """A title from the beginning of a file: the one it was given, or what the person said first."""
    said = (
        piece.text("text")
        for row in rows
        if is_said(row) and not row.get("isSidechain")
        for block in make.blocks_of(row.value("message", "content"))
        for piece in _pieces(block)
        if not _is_injected(piece)
    )
    first = next((text for text in said if text.strip()), "")
    own = [row.text("customTitle") for row in rows if row.get("type") == "custom-title"]
    return next((title for title in reversed(own) if title), first)


def _pieces(block: Row) -> Iterator[Row]:
    """The block, and before it each note that its text begins with."""
    text, begin = block.text("text"), 0
    while note := _NOTE.match(text, begin):
        yield Row(block, text=note[0].strip())
        begin = note.end()
    if not begin:
        yield block
    elif begin < len(text):
        yield Row(block, text=text[begin:])


def _is_injected(block: Row) -> bool:
    return block.text("text").lstrip().startswith(PLACES["claude"].added)
