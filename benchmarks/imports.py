"""Measure how long a session of another program takes to import, and the first turn in it.

python -m benchmarks.imports
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.growth_probe import opened
from benchmarks.material import coding_session
from nca.sessions import Store
from nca.transcripts.conversation_file import import_stored
from nca.transcripts.formats.claude_code import FORMAT
from nca.transcripts.formats.source import Source

MESSAGES = 100_000
Row = dict[str, Any]
_BEGAN, _SESSION = 1_770_000_000, "0b5a0c1e-0000-4000-8000-000000000001"


def imports(messages: int = MESSAGES) -> dict[str, float]:
    """Seconds of the import and of the first turn, and the size of what was imported."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / f"{_SESSION}.jsonl"
        with file.open("w", encoding="utf-8") as lines:
            lines.writelines(f"{json.dumps(row)}\n" for row in claude_rows(coding_session(messages)))
        with Store.open(folder / "sessions.db") as store:
            (stored,) = FORMAT.sessions(Source.of_file(file))
            started = time.perf_counter()
            info = import_stored(store, stored).info
            seconds = time.perf_counter() - started
            first_turn = asyncio.run(_first_turn(store, info.id, folder))
            return {
                "messages": info.messages,
                "bytes": file.stat().st_size,
                "seconds": seconds,
                "first_turn_seconds": first_turn,
            }


async def _first_turn(store: Store, session: str, project: Path) -> float:
    """From opening the session to the end of its first turn, in which nearly all of it is compacted."""
    started = time.perf_counter()
    conversation = opened(store, session, project)
    finished = await conversation.send("Go on.")
    seconds = time.perf_counter() - started
    await conversation.close()
    if finished.reason != "answered":
        raise RuntimeError(f"the first turn ended as {finished.reason}")
    return seconds


def claude_rows(rows: Sequence[Row]) -> Iterator[Row]:
    """The messages as Claude Code writes them: a line for each block, and each result twice."""
    parent: str | None = None
    for number, row in enumerate(rows):
        for place, (kind, more) in enumerate(_lines(row, number)):
            uuid = f"{number:08d}-{place:04d}-4000-8000-000000000000"
            at = datetime.fromtimestamp(_BEGAN + number, UTC).isoformat()
            known = {"sessionId": _SESSION, "cwd": "/project", "version": "2.1.0", "isSidechain": False}
            yield {"type": kind, "uuid": uuid, "parentUuid": parent, "timestamp": at, **known, **more}
            parent = uuid


def _lines(row: Row, number: int) -> Iterator[tuple[str, Row]]:
    content = row.get("content")
    if row["role"] == "user":
        yield "user", {"message": {"role": "user", "content": content}}
    elif row["role"] == "tool":
        result = {"type": "tool_result", "tool_use_id": row["tool_call_id"], "content": content}
        said = {"role": "user", "content": [result]}
        yield "user", {"message": said, "toolUseResult": {"stdout": content, "stderr": ""}}
    elif row["role"] == "assistant":
        blocks = [{"type": "text", "text": content}] if content else []
        for call in row.get("tool_calls", ()):
            function = call["function"]
            arguments = json.loads(function["arguments"])
            blocks.append({"type": "tool_use", "id": call["id"], "name": function["name"], "input": arguments})
        usage = {"input_tokens": 5, "cache_read_input_tokens": 20_000, "output_tokens": 60}
        for block in blocks:
            about = {"id": f"msg_{number}", "role": "assistant", "model": "claude-opus-4-5", "usage": usage}
            yield "assistant", {"message": {**about, "content": [block]}}


if __name__ == "__main__":
    print(json.dumps(imports()))
