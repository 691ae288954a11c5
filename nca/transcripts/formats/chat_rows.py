"""Read the sessions of gptme, Kimi CLI and Mistral Vibe, which keep rows in the shape of chat messages.

gptme's tools answer as system messages, without ids; they are read as the user's, so that they stay at their place.
Its branches are files of their own, and views that gptme made when it compacted: the main file holds every message
(gptme/gptme, gptme/logmanager.py and gptme/message.py).

Kimi CLI's `context.jsonl` holds what the model sees now. Roles with an underscore are notes: the system prompt,
checkpoints, counts of tokens. When Kimi CLI compacts, clears or goes back, it begins a new file and keeps the old one
beside it under a number; that one can be read by itself
(MoonshotAI/kimi-cli, src/kimi_cli/soul/context.py and metadata.py).

When Vibe compacts, it continues in a new folder that names the one before as its parent. Facts about the session are in
`meta.json` beside it (mistralai/mistral-vibe, vibe/core/session).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from nca.messages import Message, TextPart
from nca.transcripts.formats import building as make
from nca.transcripts.formats.records import PLACES, About, Format, Reading, Record, facts
from nca.transcripts.formats.row import Row, list_of, row_of, text_of
from nca.transcripts.formats.source import Source, row_file


class _Rows(Reading):
    """Turns rows into messages, and refuses nothing; some have ids or times.

    added  how a message in the user's role begins that the program wrote
    """

    added: tuple[str, ...] = ()
    _has_begun = False

    def record(self, row: Row) -> Iterator[Record]:
        self.id, self.at = row.text("message_id"), row.seconds("timestamp")
        if _is_row(row):
            yield from self.said(self._message(row), **self.facts(row))
        else:
            yield self.unreadable("is a message without a known role")

    def facts(self, row: Row) -> dict[str, Any]:
        """The row's facts about its message, as in `Said`."""
        return {}

    def _message(self, row: Row) -> Message | None:
        """None for a row without content. A later system row, and a result without a call, are what a program
        printed, and stay at their place in the user's role."""
        role = row.get("role")
        found = _read(row)
        if role == "assistant":
            self._has_begun = True
            return found.answer()
        if role == "tool" and (call_id := row.text("tool_call_id")):
            return make.tool_result(call_id, row.get("name"), found.said, is_error=row.get("is_error") is True)
        if role in ("system", "developer") and not self._has_begun:
            return found.system()
        self._has_begun = True
        if role != "user":
            return make.printed(found.said)
        first = next((part.text for part in found.content if isinstance(part, TextPart)), "").lstrip()
        is_added = row.get("injected") is True or first.startswith(self.added)
        return make.person(found.said, "nca" if is_added else "")


def _read(row: Row) -> make.Blocks:
    found, content = make.Blocks(thoughts=[row.text("reasoning_content")]), row.get("content")
    for one in content if isinstance(content, list) else [make.shown(content)]:
        block = row_of(one)
        if block.get("type") == "think":
            found.thoughts.append(block.text("think"))
        elif "image_url" in block:
            found.add(make.picture(block.text("image_url", "url") or block["image_url"]))
        else:
            found.add(TextPart(text_of(one) or block.text("text")))
    for file in filter(None, map(text_of, list_of(row.get("files")))):
        found.add(make.text_by("nca", f"[file {file}]"))
    for one in row.rows("tool_calls"):
        found.add(make.tool_call(one.get("id"), one.value("function", "name"), one.value("function", "arguments")))
    return found


def _is_row(row: Row) -> bool:
    return row.get("role") in ("system", "user", "assistant", "tool") and ("content" in row or "tool_calls" in row)


def _most(rows: Sequence[Row], is_own: Callable[[Row], bool]) -> bool:
    """Whether more than half of the rows are of a format; a damaged one must not hide the others."""
    return 2 * sum(map(is_own, rows)) > len(rows)


_PROMPT, _NOTES = "_system_prompt", ("_checkpoint", "_usage")


class _KimiRows(_Rows):
    added = PLACES["kimi"].added

    def record(self, row: Row) -> Iterator[Record]:
        if row.get("role") == _PROMPT:
            if prompt := row.text("content"):
                yield from self.said(Message("system", prompt))
        elif row.get("role") not in _NOTES:
            yield from super().record(row)


class Kimi(Format):
    def knows(self, source: Source) -> bool:
        return any(row.get("role") in (_PROMPT, *_NOTES) for row in source.first_rows)

    def about(self, source: Source) -> About:
        return About(session=source.path.parent.name if source.path else "", directory=_directory(source))


KIMI = Kimi("kimi", _KimiRows)


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


class _VibeRows(_Rows):
    def records(self, source: Source) -> Iterator[Record]:
        self.place = "meta.json"
        if prompt := _meta(source).text("system_prompt", "content"):
            yield from self.said(Message("system", prompt))
        yield from super().records(source)


class Vibe(Format):
    def knows(self, source: Source) -> bool:
        """All but the results of tools have an id of their own."""
        said = [row for row in source.first_rows if row.get("role") != "tool"]
        return _most(said, lambda row: _is_row(row) and isinstance(row.get("message_id"), str))

    def about(self, source: Source) -> About:
        return facts(self.name, _meta(source))


VIBE = Vibe("vibe", _VibeRows)


def _meta(source: Source) -> Row:
    return row_file(source.path.with_name("meta.json")) if source.path else Row()


class _GptmeRows(_Rows):
    def facts(self, row: Row) -> dict[str, Any]:
        beside = row.row("metadata")
        names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens")
        usage = (beside.row("usage") or beside).usage(*names, cost=beside.get("cost"), adds_cache=True)
        return {"usage": usage, "model": beside.text("model")}


class Gptme(Format):
    def knows(self, source: Source) -> bool:
        """Plain chat messages have no time; those of others that have one are read alike."""
        return _most(source.first_rows, lambda row: _is_row(row) and isinstance(row.get("timestamp"), str))

    def about(self, source: Source) -> About:
        """gptme names the folder after the conversation."""
        is_own = source.path is not None and source.path.name == "conversation.jsonl"
        name = source.path.parent.name if is_own and source.path else ""
        return About(session=name, title=name)


GPTME = Gptme("gptme", _GptmeRows)
