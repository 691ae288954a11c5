"""Read tasks of Cline and Roo Code: Anthropic's messages in `api_conversation_history.json`, one folder for each task.

Cline leaves a range of messages out of its requests, which the list of tasks names. Roo Code marks its summary, and
what that stands for (cline/cline, src/core/storage; RooCodeInc/Roo-Code, src/core/condense).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from nca.messages import Message
from nca.transcripts.formats.blocks import answer_message, blocks_of, part_of, user_message
from nca.transcripts.formats.building import some_messages
from nca.transcripts.formats.cline_said import messages_of
from nca.transcripts.formats.records import About, Compacted, Record, Said, StoredSession, Unreadable
from nca.transcripts.formats.source import Source
from nca.transcripts.formats.stores import json_file, stored
from nca.transcripts.formats.values import list_of, object_of, objects_of, seconds_of, text_of

FILE_NAME = "api_conversation_history.json"
_EXTENSIONS = ("saoudrizwan.claude-dev", "rooveterinaryinc.roo-cline")
_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
_REPLACED = ("condenseParent", "truncationParent")
_SHOWN = "ui_messages.json"
"""What the person saw, beside what the model was sent."""
_OF_PROGRAM = ("system", "status")
"""The display roles of messages that are for the model only."""


class Cline:
    name = "cline"
    title = "Cline or Roo Code"

    def knows(self, source: Source) -> bool:
        """By its name: inside it is a list of Anthropic's messages, which nca reads anyway."""
        return source.path is not None and source.path.name == FILE_NAME and source.head.lstrip()[:1] == b"["

    def sessions(self, source: Source) -> Iterable[StoredSession]:
        task = _task(source)
        return [
            stored(
                self.name,
                source,
                directory=_directory(task),
                title=text_of(task.get("task")),
                at=seconds_of(task.get("ts")),
            )
        ]

    def read(self, source: Source, key: str = "") -> Iterator[Record]:
        return some_messages(_records(source), source, self.title)

    def files(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        places = [home / ".cline" / "data"]
        for base in (home / ".config", home / "Library" / "Application Support"):
            places += [
                base / editor / "User" / "globalStorage" / extension for editor in _EDITORS for extension in _EXTENSIONS
            ]
        return [path for place in places for path in sorted(place.glob(f"tasks/*/{FILE_NAME}"))]


FORMAT = Cline()


def _task(source: Source) -> dict[str, Any]:
    """What the list of tasks says of it: Roo Code has it beside the messages, Cline in one list of all tasks."""
    if source.path is None:
        return {}
    folder = source.path.parent
    beside = object_of(json_file(folder / "history_item.json"))
    listed = [] if beside else objects_of(json_file(folder.parent.parent / "state" / "taskHistory.json"))
    return beside or next((one for one in listed if one.get("id") == folder.name), {})


def _directory(task: Mapping[str, Any]) -> str:
    return text_of(task.get("workspace")) or text_of(task.get("cwdOnTaskInitialization"))


def _range(task: Mapping[str, Any]) -> tuple[int, int] | None:
    """The first and the last message, from 0, that Cline leaves out."""
    given = list_of(task.get("conversationHistoryDeletedRange"))
    if len(given) == 2 and all(isinstance(one, int) and not isinstance(one, bool) for one in given):
        return (given[0], given[1]) if 0 <= given[0] <= given[1] else None
    return None


def _records(source: Source) -> Iterator[Record]:
    task = _task(source)
    yield About(
        session=text_of(task.get("id")),
        title=text_of(task.get("task")),
        directory=_directory(task),
        model=text_of(task.get("modelId")),
    )
    left_out = _range(task)
    names: dict[str, str] = {}
    known = _typed(source)
    kept: list[str] = []
    for number, given in enumerate(list_of(source.value())):
        row, place = object_of(given), f"message {number + 1}"
        if row.get("isSummary") is True:
            summary = "\n\n".join(filter(None, (text_of(block.get("text")) for block in blocks_of(row.get("content")))))
            yield Compacted(summary=summary, kept=tuple(kept), is_unreadable=not summary, place=place)
            continue
        messages = _messages(row, names, known)
        if messages is None:
            yield Unreadable(place, "is a message without a known role")
            continue
        if not any(row.get(key) for key in _REPLACED):
            kept.append(place)
        for message in messages:
            model = text_of(object_of(row.get("modelInfo")).get("modelId")) if message.role == "assistant" else ""
            yield Said(message=message, id=place, at=seconds_of(row.get("ts")), model=model, place=place)
        if left_out is not None and number == left_out[1]:
            yield Compacted(summary="", kept=tuple(f"message {one + 1}" for one in range(left_out[0])), place=place)


def _typed(source: Source) -> frozenset[str] | None:
    """What the person typed while the task ran, as the file beside it says; None if there is none."""
    rows = json_file(source.path.with_name(_SHOWN)) if source.path else None
    if not isinstance(rows, list):
        return None
    return frozenset(text_of(row.get("text")).strip() for row in objects_of(rows) if row.get("say") == "user_feedback")


def _messages(row: Mapping[str, Any], names: dict[str, str], known: frozenset[str] | None) -> list[Message] | None:
    blocks = [_block(block) for block in blocks_of(row.get("content"))]
    if row.get("role") == "user":
        if text_of(object_of(row.get("metadata")).get("displayRole")) in _OF_PROGRAM:
            return [user_message(map(part_of, blocks), source="nca")] if blocks else []
        return messages_of(blocks, names, known)
    if row.get("role") != "assistant":
        return None
    message = answer_message(blocks, text_of(object_of(row.get("modelInfo")).get("modelId")))
    names.update((call.id, call.name) for call in message.tool_calls)
    return [message] if message.content or message.tool_calls or message.reasoning else []


def _block(block: dict[str, Any]) -> dict[str, Any]:
    """Roo Code stores thoughts under a type of its own."""
    if block.get("type") != "reasoning":
        return block
    return {"type": "thinking", "thinking": block.get("text")}
