"""Read Mistral Vibe's sessions: `messages.jsonl`, with facts about the session in `meta.json` beside it.

When Vibe compacts, it continues in a new folder that names the one before as its parent
(mistralai/mistral-vibe, vibe/core/session).
"""

from __future__ import annotations

from collections.abc import Iterator

from nca.messages import Message
from nca.transcripts.formats.chat_rows import ChatRows, is_row, most
from nca.transcripts.formats.records import About, Format, Record, Said
from nca.transcripts.formats.row import Row
from nca.transcripts.formats.source import Source, row_file


class Vibe(Format):
    name = "vibe"
    title = "Mistral Vibe"
    variables = ("VIBE_HOME",)
    own_folder = ".vibe"
    pattern = "logs/session/*/messages.jsonl"

    def knows(self, source: Source) -> bool:
        """All but the results of tools have an id of their own."""
        said = [row for row in source.first_rows if row.get("role") != "tool"]
        return most(said, lambda row: is_row(row) and isinstance(row.get("message_id"), str))

    def about(self, source: Source) -> About:
        meta = _meta(source)
        return About(
            session=meta.text("session_id"),
            title=meta.text("title"),
            directory=meta.text("environment", "working_directory"),
            model=meta.text("model") or meta.text("config", "active_model"),
            parent=meta.text("parent_session_id"),
            at=meta.seconds("end_time"),
        )

    def records(self, source: Source, key: str) -> Iterator[Record]:
        if prompt := _meta(source).text("system_prompt", "content"):
            yield Said(message=Message("system", prompt), place="meta.json")
        yield from ChatRows().lines(source)


FORMAT = Vibe()


def _meta(source: Source) -> Row:
    return row_file(source.path.with_name("meta.json")) if source.path else Row()
