"""Claude Code: one file of JSON lines a session, in `~/.claude/projects/<directory>/`.

One message of the model is several lines, one for each block, with the same `message.id`. Lines name their parent, so a
file holds all branches. A compaction is a line `compact_boundary`, and the summary is the person's message behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from nca.transcripts.formats.claude_rows import Rows, titles_of
from nca.transcripts.formats.records import Record, StoredSession, Unreadable
from nca.transcripts.formats.source import BadLine, Source
from nca.transcripts.formats.stores import stored
from nca.transcripts.formats.values import object_of, text_of

_KINDS = ("user", "assistant", "system", "attachment")
_LONG_FIRST_LINE = re.compile(rb'\A\s*\{(?=.*"sessionId")(?=.*"parentUuid")(?=.*"isSidechain")(?!.*"parts")', re.DOTALL)
"""The first line may be longer than the head: a first message with a picture."""


class ClaudeCode:
    name = "claude"
    title = "Claude Code"

    def knows(self, source: Source) -> bool:
        rows = source.first_rows
        if not rows:
            return _LONG_FIRST_LINE.match(source.head) is not None
        return any(_is_row(row) for row in rows)

    def sessions(self, source: Source) -> Iterable[StoredSession]:
        rows = [row for row in source.first_rows if _is_row(row)]
        if not rows and not self.knows(source):
            return ()
        directory = next((cwd for row in rows if (cwd := text_of(row.get("cwd")))), "")
        return (stored(self.name, source, directory=directory, title=titles_of(source.first_rows)),)

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
        root = Path(env.get("CLAUDE_CONFIG_DIR") or home / ".claude") / "projects"
        return (path for path in root.glob("*/*.jsonl") if not path.name.startswith("agent-"))


def _is_row(row: Mapping[str, Any]) -> bool:
    """Whether it is a record of a conversation; Qwen Code has the same ones with `parts` in their messages."""
    has_ids = isinstance(row.get("sessionId"), str) and isinstance(row.get("uuid"), str) and "parentUuid" in row
    return (
        has_ids
        and row.get("type") in _KINDS
        and "systemPayload" not in row
        and "parts" not in object_of(row.get("message"))
    )


FORMAT = ClaudeCode()
