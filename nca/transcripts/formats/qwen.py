"""Read Qwen Code's sessions: JSON lines that name their parent, around Google's contents.

A compression stores the whole history that the model saw from then on: what of it was said before is kept, the rest is
the summary. A rewind makes later lines the children of an earlier one
(QwenLM/qwen-code, packages/core/src/services/chatRecordingService.ts and session-api-history.ts).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from nca.messages import Message, Part, TextPart
from nca.transcripts.formats import building as make
from nca.transcripts.formats.gemini import ACKNOWLEDGED, FAILED, read_parts, said_by, sent
from nca.transcripts.formats.parent_chain import Branches
from nca.transcripts.formats.records import About, Format, Live, Reading, Record, facts
from nca.transcripts.formats.row import Row
from nca.transcripts.formats.source import Source


class Qwen(Format):
    def knows(self, source: Source) -> bool:
        return any(_is_record(row) for row in source.first_rows)

    def about(self, source: Source) -> About:
        titles = [row.text("systemPayload", "customTitle") for row in reversed(source.first_rows)]
        return About(directory=source.first_row.text("cwd"), title=next(filter(None, titles), ""))


def _is_record(row: Row) -> bool:
    """Whether a line has the envelope, and inside what Claude Code, which has the same envelope, does not write."""
    if not isinstance(row.get("uuid"), str) or not isinstance(row.get("sessionId"), str):
        return False
    return isinstance(row.value("message", "parts"), list) or "systemPayload" in row


class _Reading(Reading):
    def __init__(self) -> None:
        self._branches = Branches()
        self._known: dict[tuple[str, ...], str] = {}
        """A message by what it says, to find it again in a compressed history."""
        self._answered: set[str] = set()

    def ended(self) -> Iterator[Live]:
        return self._branches.live()

    def record(self, row: Row) -> Iterator[Record]:
        self.id, self.at = row.text("uuid"), row.seconds("timestamp")
        if not self.id or row.get("type") not in FORMAT.places.kinds:
            yield self.unreadable("is a record without an id or a known type")
            return
        self._branches.add(self.id, row.text("parentUuid"))
        yield facts("qwen", row)
        payload = row.row("systemPayload")
        match row.get("subtype"):
            case "chat_compression":
                yield self._compaction(payload)
            case "custom_title":
                yield About(title=payload.text("customTitle"))
            case "parent_session":
                yield About(parent=payload.text("parentSessionId"))
            case "realtime_message" | "code_mode_tool_result":
                return
            case _:
                if "message" in row:
                    yield from self._message(row)

    def _message(self, row: Row) -> Iterator[Record]:
        content = row.row("message")
        parts = read_parts(content.get("parts"), self.id)
        self._known[said_by(content.text("role"), parts)] = self.id
        is_aside = row.get("isSidechain") is True
        if row.get("type") == "assistant":
            counts = ("promptTokenCount", "candidatesTokenCount", "cachedContentTokenCount")
            usage = row.row("usageMetadata").usage(*counts, thoughts="thoughtsTokenCount", adds_thoughts=True)
            message = parts.answer() or (Message("assistant", "") if usage else None)
            yield from self.said(message, usage=usage, model=row.text("model"), is_aside=is_aside)
            return
        said = _asked(parts.content, row.get("provenance"))
        yield from self.said(*self._results(row, parts), said, is_aside=is_aside)

    def _results(self, row: Row, parts: make.Blocks) -> Iterator[Message]:
        about = row.row("toolCallResult")
        failed = about.get("status") in FAILED or bool(about.get("error"))
        for result in parts.results:
            if result.tool_call_id and result.tool_call_id not in self._answered:
                self._answered.add(result.tool_call_id)
                is_error = result.is_error or (failed and len(parts.results) == 1)
                yield msgspec.structs.replace(result, is_error=is_error)

    def _compaction(self, payload: Row) -> Record:
        kept: list[str] = []
        said: list[str] = []
        for content in payload.rows("compressedHistory"):
            parts = read_parts(content.get("parts"), self.id)
            known = self._known.get(said_by(content.text("role"), parts))
            shown = make.joined(parts.content)
            if known:
                kept.append(known)
            elif isinstance(shown, str) and shown and shown != ACKNOWLEDGED:
                said.append(shown)
        info = payload.row("info")
        return self.compacted(
            "\n\n".join(said),
            kept=tuple(kept),
            is_unreadable=not isinstance(payload.get("compressedHistory"), list),
            trigger=info.text("trigger"),
            tokens_before=info.count("originalTokenCount"),
            tokens_after=info.count("newTokenCount"),
        )


def _asked(content: Sequence[Part], provenance: Any) -> Message | None:
    """A message in the user's role. Newer versions say if it is the person's, or Qwen Code's own notice."""
    if provenance == "system":
        return make.person(make.joined(content), "nca")
    first = content[0] if content and provenance == "real_user" else None
    return sent(content, first.text if isinstance(first, TextPart) else "")


FORMAT = Qwen("qwen", _Reading)
