"""pi's sessions, as version 0.73.1 reads them: `nca.transcripts.formats.pi` says how they look."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nca.messages import Usage
from nca.shapes.shaped import arguments_of
from nca.transcripts.formats.pi import COUNTS, FORMAT
from nca.transcripts.outgoing.conversation import Agent, Media, Outgoing, Sent, counts, iso, pieces, thoughts

_VERSION = 3


class Pi(Agent):
    format = FORMAT

    def place(self, out: Outgoing, env: Mapping[str, str], home: Path) -> Path:
        folder = re.sub(r"[/\\:]", "-", re.sub(r"^[/\\]", "", out.directory))
        name = f"{re.sub('[:.]', '-', iso(out.began_at))}_{out.id}.jsonl"
        return FORMAT.folder(env, home) / "sessions" / f"--{folder}--" / name

    def command(self, out: Outgoing, file: Path) -> str:
        return f"pi --session {out.id if out.id in file.name else shlex.quote(str(file.absolute()))}"

    def left_out(self, out: Outgoing) -> dict[str, int]:
        return {"thought": thoughts(out)}

    def rows(self, out: Outgoing) -> Iterator[dict[str, Any]]:
        header = {"version": _VERSION, "id": out.id, "timestamp": iso(out.began_at), "cwd": out.directory}
        yield {"type": "session", **header}
        for number, (at, fields) in enumerate(_entries(out), 1):
            parent = _id(number - 1) if number > 1 else None
            yield {"id": _id(number), "parentId": parent, "timestamp": iso(at), **fields}


def _id(number: int) -> str:
    return f"{number:08x}"


def _entries(out: Outgoing) -> Iterator[tuple[float, dict[str, Any]]]:
    """The time and fields of each entry. They are numbered from 1."""
    if out.name:
        yield out.began_at, {"type": "session_info", "name": out.name}
    yield from ((sent.at, _entry(sent)) for sent in out.earlier)
    if out.summary:
        first_kept = _id(bool(out.name) + len(out.earlier) + 2)
        summary = {"type": "compaction", "summary": out.summary, "firstKeptEntryId": first_kept, "tokensBefore": 0}
        yield out.compacted_at, summary
    yield from ((sent.at, _entry(sent)) for sent in out.later)


def _entry(sent: Sent) -> dict[str, Any]:
    message, at = sent.message, int(sent.at * 1000)
    content = [_block(piece) for piece in pieces(message)]
    match message.role:
        case "user" if message.is_synthetic:
            return {"type": "custom_message", "customType": "nca", "content": content, "display": False}
        case "tool":
            answered = {"toolCallId": message.tool_call_id, "toolName": message.name or "tool"}
            fields = {"role": "toolResult", **answered, "content": content, "isError": message.is_error}
        case "assistant":
            fields = {"role": "assistant", **_answer(sent, content)}
        case _:
            fields = {"role": "user", "content": content}
    return {"type": "message", "message": {**fields, "timestamp": at}}


def _answer(sent: Sent, content: list[dict[str, Any]]) -> dict[str, Any]:
    calls = [
        {"type": "toolCall", "id": call.id, "name": call.name, "arguments": arguments_of(call)}
        for call in sent.message.tool_calls
    ]
    provider, _, model = sent.model.rpartition("/")
    return {
        "content": [*content, *calls],
        "api": "openai-completions",
        "provider": provider or "unknown",
        "model": model or "unknown",
        "usage": _usage(sent.usage or Usage(0, 0)),
        "stopReason": "toolUse" if calls else "stop",
    }


def _block(piece: str | Media) -> dict[str, Any]:
    if isinstance(piece, Media) and piece.media_type.startswith("image/"):
        return {"type": "image", "data": piece.data, "mimeType": piece.media_type}
    return {"type": "text", "text": piece if isinstance(piece, str) else piece.named}


def _usage(usage: Usage) -> dict[str, Any]:
    tokens = counts(usage)
    cost = {**dict.fromkeys(COUNTS, 0), "total": usage.cost or 0}
    return {**dict(zip(COUNTS, tokens, strict=True)), "totalTokens": sum(tokens), "cost": cost}


AGENT = Pi()
