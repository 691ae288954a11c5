"""Read Kimi CLI's sessions: `context.jsonl`, which holds what the model sees now.

Roles with an underscore are notes: the system prompt, checkpoints, counts of tokens. When Kimi CLI compacts, clears or
goes back, it begins a new file and keeps the old one beside it under a number; that one can be read by itself
(MoonshotAI/kimi-cli, src/kimi_cli/soul/context.py and metadata.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from nca.messages import Message
from nca.transcripts.formats.chat_rows import ChatRows
from nca.transcripts.formats.records import About, Format, Record
from nca.transcripts.formats.row import Row
from nca.transcripts.formats.source import Source, row_file

_PROMPT, _NOTES = "_system_prompt", ("_checkpoint", "_usage")


class Kimi(Format):
    name = "kimi"
    title = "Kimi CLI"
    variables = ("KIMI_SHARE_DIR",)
    own_folder = ".kimi"
    pattern = "sessions/*/*/context.jsonl"

    def knows(self, source: Source) -> bool:
        return any(row.get("role") in (_PROMPT, *_NOTES) for row in source.first_rows)

    def about(self, source: Source) -> About:
        return About(session=source.path.parent.name if source.path else "", directory=_directory(source))

    def records(self, source: Source, key: str) -> Iterator[Record]:
        return _Reading().lines(source)


FORMAT = Kimi()


class _Reading(ChatRows):
    added = ("<system>", "<system-reminder>", "<notification")

    def record(self, row: Row) -> Iterator[Record]:
        if row.get("role") == _PROMPT:
            if prompt := row.text("content"):
                yield self.said(Message("system", prompt))
        elif row.get("role") not in _NOTES:
            yield from super().record(row)


def _directory(source: Source) -> str:
    """The session's directory: its folder is named by a digest of it, and a list of all is above."""
    if source.path is None or len(source.path.parents) < 4:
        return ""
    digest, share = source.path.parents[1].name, source.path.parents[3]
    for one in row_file(share / "kimi.json").rows("work_dirs"):
        path = one.text("path")
        if hashlib.md5(path.encode(), usedforsecurity=False).hexdigest() == digest:
            return path
    return ""
