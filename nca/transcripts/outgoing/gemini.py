"""Gemini CLI's sessions, as version 0.61.0 reads them: `nca.transcripts.formats.gemini` says how they look.

A folder of `~/.gemini/tmp` belongs to the project that its file `.project_root` names; `projects.json` lists them.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from nca.messages import Message, Usage
from nca.safe_files import paths_below
from nca.shapes.shaped import arguments_of
from nca.transcripts.formats.gemini import ACKNOWLEDGED, FORMAT, PROJECT_ROOT, SNAPSHOT
from nca.transcripts.formats.source import first_line, row_file
from nca.transcripts.outgoing.conversation import Agent, Media, Outgoing, Sent, iso, pieces, thoughts

_IGNORED = ("/", "?")
"""How a message begins that Gemini CLI takes for a command and does not send."""


class Gemini(Agent):
    format = FORMAT

    def place(self, out: Outgoing, env: Mapping[str, str], home: Path) -> Path:
        root = FORMAT.folder(env, home) / ".gemini"
        began = iso(out.began_at)[:16].replace(":", "-")
        folder = root / "tmp" / _project(root, out.directory)
        return folder / "chats" / f"session-{began}-{out.id[:8]}.jsonl"

    def beside(self, out: Outgoing, place: Path) -> dict[Path, str]:
        return {place.parent.parent / PROJECT_ROOT: out.directory}

    def command(self, out: Outgoing, file: Path) -> str:
        is_own = out.id[:8] in file.name
        return f"gemini --resume {out.id}" if is_own else f"gemini --session-file {shlex.quote(str(file.absolute()))}"

    def left_out(self, out: Outgoing) -> dict[str, int]:
        said = [sent.message for sent in out.later if sent.message.role == "user"]
        ignored = len([message for message in said if message.text.lstrip().startswith(_IGNORED)])
        return {"thought": thoughts(out), "command-like message": ignored}

    def rows(self, out: Outgoing) -> Iterator[dict[str, Any]]:
        times = {"startTime": iso(out.began_at), "lastUpdated": iso(out.sent[-1].at)}
        named = {"summary": out.name} if out.name else {}
        project = sha256(out.directory.encode()).hexdigest()
        yield {"sessionId": out.id, "projectHash": project, **times, "kind": "main", **named}
        yield from _rows(out, out.earlier, "earlier")
        if out.summary:
            text = f"{SNAPSHOT}\n{out.summary}\n{SNAPSHOT.replace('<', '</')}"
            summary = _row(out, "summary", out.compacted_at, "user", [{"text": text}])
            answer = _row(out, "acknowledged", out.compacted_at, "gemini", [{"text": ACKNOWLEDGED}])
            yield {"$set": {"messages": [summary, answer]}}
        yield from _rows(out, out.later, "later")


def _project(root: Path, directory: str) -> str:
    """The name of the project's folder: the one that it has, or one that is free, made as Gemini CLI makes it."""
    listed = row_file(root / "projects.json").row("projects")
    owners = {marker.parent.name: first_line(marker) for marker in paths_below(root / "tmp", f"*/{PROJECT_ROOT}")}
    known = listed.text(directory)
    if known and owners.get(known, directory) == directory:
        return known
    if own := next((name for name, owner in owners.items() if owner == directory), ""):
        return own
    made = re.sub(r"[^a-z0-9]+", "-", Path(directory).name.lower()).strip("-") or "project"
    name, number = made, 0
    while name in listed.values() or any(os.path.exists(root / kind / name) for kind in ("tmp", "history")):
        number += 1
        name = f"{made}-{number}"
    return name


def _row(out: Outgoing, name: str, at: float, kind: str, content: list[dict[str, Any]]) -> dict[str, Any]:
    return {"id": out.new_id(name), "timestamp": iso(at), "type": kind, "content": content}


def _rows(out: Outgoing, messages: Sequence[Sent], part: str) -> Iterator[dict[str, Any]]:
    """A row for each message. That of an answer holds the results of its calls."""
    for place, sent in enumerate(messages):
        message, name = sent.message, f"{part} {place}"
        if message.role == "user":
            yield _row(out, name, sent.at, "user", _parts(message))
        elif message.role == "assistant":
            results = [one.message for one in messages[place + 1 : place + 1 + len(message.tool_calls)]]
            yield _answer(out, name, sent, results)


def _answer(out: Outgoing, name: str, sent: Sent, results: Sequence[Message]) -> dict[str, Any]:
    made = [{"id": call.id, "name": call.name, "args": arguments_of(call)} for call in sent.message.tool_calls]
    calls = [
        {
            **call,
            "result": [_response(call, result), *(part for part in _parts(result) if "text" not in part)],
            "status": "error" if result.is_error else "success",
            "timestamp": iso(sent.at),
        }
        for call, result in zip(made, results, strict=True)
    ]
    content = [*_parts(sent.message), *({"functionCall": call} for call in made)]
    tokens = {"tokens": _tokens(sent.usage)} if sent.usage else {}
    row = _row(out, name, sent.at, "gemini", content)
    return {**row, "thoughts": [], **tokens, "model": sent.model.rpartition("/")[2], "toolCalls": calls}


def _response(call: Mapping[str, Any], result: Message) -> dict[str, Any]:
    text = "\n\n".join(part["text"] for part in _parts(result) if "text" in part)
    said = {"error" if result.is_error else "output": text}
    return {"functionResponse": {"id": call["id"], "name": call["name"], "response": said}}


def _parts(message: Message) -> list[dict[str, Any]]:
    return [_part(piece) for piece in pieces(message)]


def _part(piece: str | Media) -> dict[str, Any]:
    if isinstance(piece, Media) and piece.data:
        return {"inlineData": {"mimeType": piece.media_type, "data": piece.data}}
    return {"text": piece if isinstance(piece, str) else piece.named}


def _tokens(usage: Usage) -> dict[str, int]:
    return {
        "input": usage.prompt_tokens,
        "output": usage.completion_tokens - usage.reasoning_tokens,
        "cached": usage.cache_read_tokens,
        "thoughts": usage.reasoning_tokens,
        "tool": 0,
        "total": usage.prompt_tokens + usage.completion_tokens,
    }


AGENT = Gemini()
