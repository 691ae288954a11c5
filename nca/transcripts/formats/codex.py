"""Codex CLI: one rollout a session, in `~/.codex/sessions/YYYY/MM/DD/` and `archived_sessions`.

A rollout repeats the conversation as events for the screen. What the model saw are the response items.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from nca.transcripts.formats.codex_items import is_context, text_in
from nca.transcripts.formats.codex_rollout import Rollout
from nca.transcripts.formats.records import Record, StoredSession, Unreadable
from nca.transcripts.formats.source import BadLine, Source
from nca.transcripts.formats.stores import stored
from nca.transcripts.formats.values import object_of, text_of

UNKNOWN_PARENT = "another session"


class Codex:
    name = "codex"
    title = "Codex CLI"

    def knows(self, source: Source) -> bool:
        rows = source.first_rows
        return bool(rows) and (_meta(rows[0]) is not None)

    def sessions(self, source: Source) -> Iterable[StoredSession]:
        rows = source.first_rows
        meta = _meta(rows[0]) if rows else None
        if meta is None:
            return ()
        items = [object_of(row.get("payload")) or row for row in rows[1:]]
        said = (text_in(item) for item in items if item.get("type") == "message" and item.get("role") == "user")
        title = next((text for text in said if text and not is_context(text)), "")
        found = stored(self.name, source, directory=text_of(meta.get("cwd")), title=title)
        return (msgspec.structs.replace(found, parent=_parent(meta)),)

    def read(self, source: Source, key: str = "") -> Iterator[Record]:
        rollout = Rollout()
        for line in source.rows():
            if not isinstance(line, BadLine):
                rollout.take(*line)
                yield from rollout.finished()
            elif not line.is_cut:
                yield Unreadable(f"line {line.number}", line.reason)
        yield from rollout.records()

    def files(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        root = Path(env.get("CODEX_HOME") or home / ".codex")
        return chain.from_iterable(
            (root / folder).rglob(f"rollout-*.jsonl{ending}")
            for folder in ("sessions", "archived_sessions")
            for ending in ("", ".zst")
        )


def _meta(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """The facts in a rollout's first line; None if it is none. Before version 0.32 they stood in the line itself."""
    if row.get("type") == "session_meta":
        return object_of(row.get("payload"))
    is_old = isinstance(row.get("id"), str) and isinstance(row.get("timestamp"), str)
    return dict(row) if is_old and not {"type", "role", "payload", "messages"} & row.keys() else None


def _parent(meta: Mapping[str, Any]) -> str:
    """The id of the session whose subagent this one is; "" of one of its own. A review does not name its session."""
    subagent = object_of(meta.get("source")).get("subagent")
    if subagent is None and meta.get("thread_source") != "subagent":
        return ""
    spawned = text_of(object_of(object_of(subagent).get("thread_spawn")).get("parent_thread_id"))
    return spawned or text_of(meta.get("forked_from_id")) or UNKNOWN_PARENT


FORMAT = Codex()
