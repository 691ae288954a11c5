"""Claude Code's sessions, as version 2.1.197 reads them: `nca.transcripts.formats.claude_code` says how they look.

Claude Code's loader finds the chain quickly where a row begins with `parentUuid`, and where `uuid` stands before
`timestamp`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nca.messages import SIGNED_THOUGHTS, Message, Usage
from nca.shapes.shaped import arguments_of
from nca.transcripts.formats.claude_code import COUNTS, FORMAT
from nca.transcripts.outgoing.conversation import Agent, Media, Outgoing, Sent, counts, iso, pieces, thoughts

_VERSION = "2.1.197"
_LONGEST_NAME = 200
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_NOT_ITS_OWN = "<synthetic>"
"""The model of answers that no model of Claude Code gave. Claude Code does not try to continue with it, and counts
these answers itself instead of by their usage."""
_CONTINUED = "This session is being continued from a previous conversation that ran out of context."


class Claude(Agent):
    format = FORMAT

    def place(self, out: Outgoing, env: Mapping[str, str], home: Path) -> Path:
        return FORMAT.folder(env, home) / "projects" / _folder_name(out.directory) / f"{out.id}.jsonl"

    def command(self, out: Outgoing, file: Path) -> str:
        return f"claude --resume {out.id}"

    def left_out(self, out: Outgoing) -> dict[str, int]:
        return {"thought": thoughts(out) - len([sent for sent in out.sent if _signed(sent)])}

    def rows(self, out: Outgoing) -> Iterator[dict[str, Any]]:
        writing = _Rows(out)
        yield from map(writing.said, out.earlier)
        if out.summary:
            yield from writing.compaction()
        yield from map(writing.said, out.later)
        if out.name:
            yield {"type": "custom-title", "customTitle": out.name, "sessionId": out.id}


class _Rows:
    """Rows that follow each other. Each names the one before as its parent."""

    def __init__(self, out: Outgoing) -> None:
        self._out = out
        self._parent: str | None = None
        self._count = 0

    def said(self, sent: Sent) -> dict[str, Any]:
        message = sent.message
        if message.role == "assistant":
            return self._row("assistant", sent.at, message=_answer(self._out, sent, self._count))
        marks = {"isMeta": True} if message.is_synthetic and message.role == "user" else {}
        return self._row("user", sent.at, message={"role": "user", "content": _content(message)}, **marks)

    def compaction(self) -> Iterator[dict[str, Any]]:
        out, before = self._out, self._parent
        self._parent = None
        yield self._row(
            "system",
            out.compacted_at,
            subtype="compact_boundary",
            content="Conversation compacted",
            isMeta=False,
            level="info",
            logicalParentUuid=before,
            compactMetadata={"trigger": "manual", "preTokens": 0},
        )
        said = {"role": "user", "content": f"{_CONTINUED}\n\n{out.summary}"}
        yield self._row("user", out.compacted_at, message=said, isCompactSummary=True, isVisibleInTranscriptOnly=True)

    def _row(self, kind: str, at: float, **fields: Any) -> dict[str, Any]:
        own = self._out.new_id(self._count)
        row = {
            "parentUuid": self._parent,
            "isSidechain": False,
            "type": kind,
            "uuid": own,
            "timestamp": iso(at),
            "userType": "external",
            "entrypoint": "cli",
            "cwd": self._out.directory,
            "sessionId": self._out.id,
            "version": _VERSION,
            "gitBranch": "",
            **fields,
        }
        self._parent, self._count = own, self._count + 1
        return row


def _answer(out: Outgoing, sent: Sent, number: int) -> dict[str, Any]:
    message = sent.message
    calls = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments_of(call)}
        for call in message.tool_calls
    ]
    return {
        "id": f"msg_{out.new_id(f'answer {number}').replace('-', '')[:24]}",
        "type": "message",
        "role": "assistant",
        "model": _model(sent) if _is_claude(_model(sent)) else _NOT_ITS_OWN,
        "content": [*_signed(sent), *_blocks(message), *calls],
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": dict(zip(COUNTS, counts(sent.usage or Usage(0, 0)), strict=True)),
    }


def _signed(sent: Sent) -> list[dict[str, Any]]:
    """Thoughts that Anthropic takes back from the model that signed them."""
    message = sent.message
    return list(message.extra.get(SIGNED_THOUGHTS, ())) if _is_claude(message.made_by.rpartition("/")[2]) else []


def _model(sent: Sent) -> str:
    return sent.model.rpartition("/")[2]


def _is_claude(model: str) -> bool:
    return model.startswith("claude")


def _content(message: Message) -> Any:
    blocks = _blocks(message)
    content = blocks[0]["text"] if len(blocks) == 1 and blocks[0]["type"] == "text" else blocks
    if message.role != "tool":
        return content
    mark = {"is_error": True} if message.is_error else {}
    return [{"type": "tool_result", "tool_use_id": message.tool_call_id, "content": content, **mark}]


def _blocks(message: Message) -> list[dict[str, Any]]:
    return [_block(piece) for piece in pieces(message)]


def _block(piece: str | Media) -> dict[str, Any]:
    if isinstance(piece, str):
        return {"type": "text", "text": piece}
    if piece.address:
        return {"type": "image", "source": {"type": "url", "url": piece.address}}
    source = {"type": "base64", "media_type": piece.media_type, "data": piece.data}
    if piece.media_type.startswith("image/"):
        return {"type": "image", "source": source}
    return {"type": "document", "source": source, "title": piece.name}


def _folder_name(directory: str) -> str:
    """The folder of a project's sessions. A long name ends with JavaScript's hash of the whole."""
    name = re.sub(r"[^a-zA-Z0-9]", "-", directory)
    if len(name) <= _LONGEST_NAME:
        return name
    number = 0
    for unit in memoryview(directory.encode("utf-16-le")).cast("H"):
        number = (number * 31 + unit) & 0xFFFFFFFF
    number = abs(number - (1 << 32) if number >> 31 else number)
    digits = ""
    while number or not digits:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return f"{name[:_LONGEST_NAME]}-{digits}"


AGENT = Claude()
