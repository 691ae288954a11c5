"""Read Qwen Code's sessions: JSON lines that name their parent, around Google's contents.

A compression stores the whole history that the model saw from then on: what of it was said before is kept, the rest is
the summary. A rewind makes later lines the children of an earlier one
(QwenLM/qwen-code, packages/core/src/services/chatRecordingService.ts and session-api-history.ts).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from nca.messages import Message, Part, TextPart
from nca.transcripts.formats.building import (
    answer,
    count_of,
    joined,
    object_of,
    objects_of,
    person,
    read_rows,
    seconds_of,
    some_messages,
    text_of,
)
from nca.transcripts.formats.google_parts import Parts, read_parts, read_usage, said_by, sent
from nca.transcripts.formats.parent_chain import Branches
from nca.transcripts.formats.records import (
    About,
    Compacted,
    Live,
    Record,
    Said,
    StoredSession,
    Unreadable,
    chosen_folder,
    stored,
)
from nca.transcripts.formats.source import Source

_KINDS = ("user", "assistant", "tool_result", "system")
_FAILED = ("error", "cancelled")
_ACKNOWLEDGED = "Got it. Thanks for the additional context!"
"""What Qwen Code puts behind a summary in the model's place."""


class Qwen:
    name = "qwen"
    title = "Qwen Code"

    def knows(self, source: Source) -> bool:
        return any(_is_record(row) for row in source.first_rows)

    def sessions(self, source: Source) -> Iterable[StoredSession]:
        first = next(iter(source.first_rows), {})
        titles = [text_of(object_of(row.get("systemPayload")).get("customTitle")) for row in source.first_rows]
        title = next(filter(None, reversed(titles)), "")
        return [stored(self.name, source, directory=text_of(first.get("cwd")), title=title)]

    def read(self, source: Source, key: str = "") -> Iterator[Record]:
        return some_messages(_Reading().records(source), source, self.title)

    def files(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        folder = chosen_folder(env.get("QWEN_RUNTIME_DIR") or env.get("QWEN_HOME"), home) or home / ".qwen"
        return sorted((folder / "projects").glob("*/chats/*.jsonl"))


FORMAT = Qwen()


def _is_record(row: Mapping[str, Any]) -> bool:
    """Whether a line has the envelope, and inside what Claude Code, which has the same envelope, does not write."""
    if not isinstance(row.get("uuid"), str) or not isinstance(row.get("sessionId"), str):
        return False
    return isinstance(object_of(row.get("message")).get("parts"), list) or "systemPayload" in row


class _Reading:
    def __init__(self) -> None:
        self._branches = Branches()
        self._known: dict[tuple[str, ...], str] = {}
        """A message by what it says, to find it again in a compressed history."""
        self._answered: set[str] = set()
        self._title = ""

    def records(self, source: Source) -> Iterator[Record]:
        yield from read_rows(source, self._record)
        if not self._branches.are_linear:
            yield Live(frozenset(self._branches.to(self._branches.last)))

    def _record(self, row: dict[str, Any], place: str) -> Iterator[Record]:
        record_id = text_of(row.get("uuid"))
        if not record_id or row.get("type") not in _KINDS:
            yield Unreadable(place, "is a record without an id or a known type")
            return
        self._branches.add(record_id, text_of(row.get("parentUuid")))
        yield About(
            session=text_of(row.get("sessionId")),
            directory=text_of(row.get("cwd")),
            version=text_of(row.get("version")),
            model=text_of(row.get("model")),
        )
        payload = object_of(row.get("systemPayload"))
        match row.get("subtype"):
            case "chat_compression":
                yield from self._compacted(payload, record_id, row, place)
            case "custom_title":
                yield About(title=text_of(payload.get("customTitle")))
            case "parent_session":
                yield About(parent=text_of(payload.get("parentSessionId")))
            case "realtime_message" | "code_mode_tool_result":
                return
            case _:
                if "message" in row:
                    yield from self._message(row, record_id, place)

    def _message(self, row: dict[str, Any], record_id: str, place: str) -> Iterator[Record]:
        content = object_of(row.get("message"))
        parts = read_parts(content.get("parts"), record_id)
        self._known[said_by(text_of(content.get("role")), parts)] = record_id
        said = Said(
            message=Message("user", ""),
            id=record_id,
            at=seconds_of(row.get("timestamp")),
            is_aside=row.get("isSidechain") is True,
            place=place,
        )
        if row.get("type") == "assistant":
            usage = read_usage(object_of(row.get("usageMetadata")))
            message = answer(parts.content, parts.calls, parts.thoughts) or (
                Message("assistant", "") if usage else None
            )
            if message is not None:
                yield msgspec.structs.replace(said, message=message, usage=usage, model=text_of(row.get("model")))
            return
        yield from self._results(row, parts, said)
        asked = _asked(parts.content, row.get("provenance"))
        if asked is not None:
            yield msgspec.structs.replace(said, message=asked)

    def _results(self, row: Mapping[str, Any], parts: Parts, said: Said) -> Iterator[Record]:
        about = object_of(row.get("toolCallResult"))
        failed = about.get("status") in _FAILED or bool(about.get("error"))
        for result in parts.results:
            if result.tool_call_id and result.tool_call_id not in self._answered:
                self._answered.add(result.tool_call_id)
                is_error = result.is_error or (failed and len(parts.results) == 1)
                yield msgspec.structs.replace(said, message=msgspec.structs.replace(result, is_error=is_error))

    def _compacted(
        self, payload: dict[str, Any], record_id: str, row: Mapping[str, Any], place: str
    ) -> Iterator[Record]:
        kept: list[str] = []
        said: list[str] = []
        for content in objects_of(payload.get("compressedHistory")):
            parts = read_parts(content.get("parts"), record_id)
            known = self._known.get(said_by(text_of(content.get("role")), parts))
            shown = joined(parts.content)
            if known:
                kept.append(known)
            elif isinstance(shown, str) and shown and shown != _ACKNOWLEDGED:
                said.append(shown)
        info = object_of(payload.get("info"))
        is_lost = not isinstance(payload.get("compressedHistory"), list)
        yield Compacted(
            summary="\n\n".join(said),
            id=record_id,
            kept=tuple(kept),
            is_unreadable=is_lost,
            trigger=text_of(info.get("trigger")),
            tokens_before=count_of(info.get("originalTokenCount")),
            tokens_after=count_of(info.get("newTokenCount")),
            at=seconds_of(row.get("timestamp")),
            place=place,
        )


def _asked(content: tuple[Part, ...], provenance: Any) -> Message | None:
    """What stands in the user's role. Newer versions say whose it is: the person's, or Qwen Code's own notice."""
    if provenance == "system":
        return person(joined(content), "nca")
    first = content[0] if content and provenance == "real_user" else None
    return sent(content, first.text if isinstance(first, TextPart) else "")
