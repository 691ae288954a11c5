"""Sessions of other agents as those write them: Claude Code's and Codex's files below a home directory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def claude_session(home: Path, name: str, directory: str, texts: Sequence[str], *, tool: str = "") -> Path:
    """A session of questions and answers, in turn; with `tool`, a last call of it and its result."""
    path = home / ".claude" / "projects" / directory.replace("/", "-") / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    append_to_claude(path, directory, texts)
    if tool:
        call = {"type": "tool_use", "id": "t1", "name": tool, "input": {"query": "zebra"}}
        result = {"type": "tool_result", "tool_use_id": "t1", "content": "the zebra was found"}
        _append(path, _claude_rows(path, directory, [("assistant", [call]), ("user", [result])]))
    return path


def append_to_claude(path: Path, directory: str, texts: Sequence[str]) -> None:
    said: list[tuple[str, Any]] = [("assistant" if n % 2 else "user", text) for n, text in enumerate(texts)]
    _append(path, _claude_rows(path, directory, said))


def codex_session(home: Path, name: str, directory: str, texts: Sequence[str]) -> Path:
    path = home / ".codex" / "sessions" / "2026" / "03" / "01" / f"rollout-2026-03-01T10-00-00-{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    at = "2026-03-01T10:00:00.000Z"
    rows: list[dict[str, Any]] = [
        {"timestamp": at, "type": "session_meta", "payload": {"id": name, "timestamp": at, "cwd": directory}}
    ]
    for number, text in enumerate(texts):
        role, kind = ("assistant", "output_text") if number % 2 else ("user", "input_text")
        item = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        rows.append({"timestamp": at, "type": "response_item", "payload": item})
    path.write_text("")
    _append(path, rows)
    return path


def _claude_rows(path: Path, directory: str, said: Sequence[tuple[str, Any]]) -> list[dict[str, Any]]:
    count = path.read_text().count("\n")
    rows = []
    for place, (role, content) in enumerate(said, count):
        message: dict[str, Any] = {"role": role, "content": content}
        if role == "assistant":
            blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
            message |= {"id": f"m{place}", "model": "claude-x", "content": blocks}
        rows.append(
            {
                "type": role,
                "uuid": f"{path.stem}-{place}",
                "parentUuid": f"{path.stem}-{place - 1}" if place else None,
                "sessionId": path.stem,
                "cwd": directory,
                "timestamp": f"2026-03-02T10:{place // 60 % 60:02d}:{place % 60:02d}.000Z",
                "isSidechain": False,
                "message": message,
            }
        )
    return rows


def _append(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    with path.open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
