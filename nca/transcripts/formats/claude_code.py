"""Claude Code: one file of JSON lines a session, in `~/.claude/projects/<directory>/`.

One message of the model is several lines, one for each block, with the same `message.id`. Lines name their parent, so a
file holds all branches. A compaction is a line `compact_boundary`, and the summary is the person's message behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from nca.transcripts.formats.claude_rows import Rows
from nca.transcripts.formats.claude_said import titles_of
from nca.transcripts.formats.records import Record, StoredSession, Unreadable
from nca.transcripts.formats.source import BadLine, Source
from nca.transcripts.formats.stores import stored
from nca.transcripts.formats.values import object_of, text_of

_OF_SUBAGENTS = "agent-"
_KINDS = ("user", "assistant", "system", "attachment")
_LONG_FIRST_LINE = re.compile(rb'\A\s*\{(?=.*"sessionId")(?=.*"parentUuid")(?=.*"isSidechain")(?!.*"parts")', re.DOTALL)
"""The first line may be longer than the head: a first message with a picture."""


class ClaudeCode:
    name = "claude"
    title = "Claude Code"
    hands_out_all = True
    """When the person goes on."""

    def knows(self, source: Source) -> bool:
        rows = source.first_rows
        if not rows:
            return _LONG_FIRST_LINE.match(source.head) is not None
        return any(_is_row(row) or _is_note(row) for row in rows)

    def sessions(self, source: Source) -> Iterable[StoredSession]:
        rows = [row for row in source.first_rows if _is_row(row)]
        if not rows and (source.first_rows or not self.knows(source)):
            return ()
        directory = next((cwd for row in rows if (cwd := text_of(row.get("cwd")))), "")
        found = stored(self.name, source, directory=directory, title=titles_of(source.first_rows))
        # In older versions a session may begin with what a subagent did, without an id of it.
        is_subagent = rows and all(row.get("isSidechain") and "agentId" in row for row in rows)
        return (msgspec.structs.replace(found, parent=text_of(rows[0]["sessionId"])) if is_subagent else found,)

    def read(self, source: Source, key: str = "") -> Iterator[Record]:
        found = Rows()
        for line in source.rows():
            if isinstance(line, BadLine):
                if not line.is_cut:
                    yield Unreadable(f"line {line.number}", line.reason)
            else:
                yield from found.take(*line)
        yield from found.records()

    def files(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        """Without those of subagents: each belongs to a session."""
        return (path for path in _projects(env, home).glob("*/*.jsonl") if not path.name.startswith(_OF_SUBAGENTS))

    def subagents(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        """Beside the sessions; since version 2.1 in a folder of each session."""
        root, names = _projects(env, home), f"{_OF_SUBAGENTS}*.jsonl"
        return chain(root.glob(f"*/{names}"), root.glob(f"*/*/subagents/**/{names}"))


def _projects(env: Mapping[str, str], home: Path) -> Path:
    return Path(env.get("CLAUDE_CONFIG_DIR") or home / ".claude") / "projects"


def _is_row(row: Mapping[str, Any]) -> bool:
    """Whether it is a record of a conversation; Qwen Code has the same ones with `parts` in their messages."""
    has_ids = isinstance(row.get("sessionId"), str) and isinstance(row.get("uuid"), str) and "parentUuid" in row
    return (
        has_ids
        and row.get("type") in _KINDS
        and "systemPayload" not in row
        and "parts" not in object_of(row.get("message"))
    )


def _is_note(row: Mapping[str, Any]) -> bool:
    """Whether it is no message but beside messages: a file may begin with many, and may have nothing else."""
    return "leafUuid" in row or (row.get("type") == "file-history-snapshot" and "messageId" in row)


FORMAT = ClaudeCode()
