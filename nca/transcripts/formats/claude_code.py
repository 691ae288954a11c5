"""Claude Code: one file of JSON lines a session, in `~/.claude/projects/<directory>/`.

One message of the model is several lines, one for each block, with the same `message.id`. Lines name their parent, so a
file holds all branches. A compaction is a line `compact_boundary`, and the summary is the person's message after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from nca.messages import Usage
from nca.safe_files import paths_below
from nca.transcripts.formats import building as make
from nca.transcripts.formats.claude_said import is_said, messages_of, titles_of
from nca.transcripts.formats.parent_chain import Link, live_branch
from nca.transcripts.formats.records import About, Compacted, Format, Live, Reading, Record, Said, StoredSession
from nca.transcripts.formats.row import Row, list_of, row_of, text_of, texts_of
from nca.transcripts.formats.source import Source

_OF_SUBAGENTS = "agent-"
_LONG_FIRST_LINE = re.compile(rb'\A\s*\{(?=.*"sessionId")(?=.*"parentUuid")(?=.*"isSidechain")(?!.*"parts")', re.DOTALL)
"""The first line may be longer than the head: a first message with a picture."""


class ClaudeCode(Format):
    hands_out_all = True
    """When the person continues."""

    def knows(self, source: Source) -> bool:
        rows = source.first_rows
        if not rows:
            return _LONG_FIRST_LINE.match(source.head) is not None
        return any(_is_row(row) or _is_note(row) for row in rows)

    def sessions(self, source: Source) -> Iterable[StoredSession]:
        rows = [row for row in source.first_rows if _is_row(row)]
        if not rows and (source.first_rows or not self.knows(source)):
            return ()
        directory = next((cwd for row in rows if (cwd := row.text("cwd"))), "")
        # In older versions a session may begin with what a subagent did, without an id of it.
        is_subagent = rows and all(row.get("isSidechain") and "agentId" in row for row in rows)
        about = About(directory=directory, title=titles_of(source.first_rows))
        return (self.stored(source, about, parent=text_of(rows[0]["sessionId"]) if is_subagent else ""),)

    def read(self, source: Source, key: str = "") -> Iterator[Record]:
        return Rows().records(source)

    def files(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        """Without those of subagents: each belongs to a session."""
        return (path for path in super().files(env, home) if not path.name.startswith(_OF_SUBAGENTS))

    def subagents(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        """Beside the sessions; since version 2.1 in a folder of each session."""
        root, names = self.folder(env, home) / "projects", f"{_OF_SUBAGENTS}*.jsonl"
        return chain(paths_below(root, f"*/{names}"), paths_below(root, f"*/*/subagents/**/{names}"))


def _is_row(row: Row) -> bool:
    """Whether it is a record of a conversation; Qwen Code has the same ones with `parts` in their messages."""
    has_ids = isinstance(row.get("sessionId"), str) and isinstance(row.get("uuid"), str) and "parentUuid" in row
    is_qwens = "systemPayload" in row or "parts" in row.row("message")
    return has_ids and not is_qwens and row.get("type") in FORMAT.places.kinds


def _is_note(row: Row) -> bool:
    """Whether it is not a message but beside messages: a file may begin with many, and may have nothing else."""
    return "leafUuid" in row or (row.get("type") == "file-history-snapshot" and "messageId" in row)


FORMAT = ClaudeCode("claude")


COUNTS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_NOT_BY_A_MODEL = "<synthetic>"
_FACTS = ("sessionId", "cwd", "forkedFrom", "version")


class _Answer(msgspec.Struct):
    """One message of the model, put together from its lines. `ids`: theirs; the first one is the message's."""

    ids: list[str]
    blocks: list[Row]
    model: str
    at: float
    place: str
    is_aside: bool
    usage: Usage | None = None

    def said(self) -> Said:
        message, is_aside, place = make.answer_message(self.blocks, self.model), self.is_aside, self.place
        own_id = self.ids[0] if self.ids else ""
        return Said(
            message=message, id=own_id, at=self.at, usage=self.usage, model=self.model, is_aside=is_aside, place=place
        )


class _Boundary(msgspec.Struct):
    """A compaction; its summary is the next line."""

    record: Compacted
    meta: Row


class Rows(Reading):
    """Takes the lines in the order of the file. Messages are handed out when the person continues: until then later
    lines may add to them."""

    def __init__(self) -> None:
        self._waiting: list[Said | _Answer | _Boundary] = []
        self._has_begun = False
        """Whether anything was handed out."""
        self._answers: dict[tuple[str, str], _Answer] = {}
        self._answered: list[tuple[list[str], list[str]]] = []
        """Of each answer that was handed out: the ids of its lines, and of its calls."""
        self._first_ids: dict[str, str] = {}
        """By the id of a later line of an answer, that of its first."""
        self._results: list[tuple[str, str]] = []
        """Of each result that was handed out: its id, and that of its call."""
        self._kept_by: dict[str, tuple[str, ...]] = {}
        self._links: list[Link] = []
        self._places: dict[str, int] = {}
        self._names: dict[str, str] = {}
        self._about = About()
        self._noted: list[Any] = []
        """The facts of the newest line: nearly all lines have the same."""
        self._titles: list[tuple[str, str]] = []
        self._boundary: _Boundary | None = None
        """The newest compaction, while it waits for its summary."""

    def record(self, row: Row) -> Iterator[Record]:
        kind = row.get("type")
        if kind in ("summary", "custom-title", "ai-title"):
            if title := row.first("aiTitle", "customTitle", "summary"):
                self._titles.append((title, row.text("leafUuid")))
            return
        is_aside = bool(row.get("isSidechain"))
        self.id, self.at = row.text("uuid"), row.seconds("timestamp")
        if self.id and not self._link(row, is_aside=is_aside):
            return
        if self.id and not is_aside and self._links[-1].is_said:
            yield from self._finished()
        message = row.get("message")
        if kind in ("user", "assistant") and not isinstance(message, dict):
            yield self.unreadable("has no message")
        elif kind == "assistant":
            self._take_answer(row, row_of(message), is_aside=is_aside)
        elif kind == "user":
            yield from self._take_user(row, row_of(message), is_aside=is_aside)
        elif kind == "attachment":
            self._take_queued(row.row("attachment"), is_aside=is_aside)
        elif kind == "system" and row.get("subtype") == "compact_boundary" and not is_aside:
            self._compact(row.row("compactMetadata") or row.row("compact_metadata"))
            self._answers.clear()
        if kind in ("user", "assistant") and not is_aside:
            self._note(row)

    def ended(self) -> Iterator[Record]:
        if not self._has_begun and self._are_aside():
            # The file is that of a subagent.
            self._waiting = [
                one if isinstance(one, _Boundary) else msgspec.structs.replace(one, is_aside=False)
                for one in self._waiting
            ]
        yield from self._handed_out()
        ids, breaks = self._live()
        titles = [title for title, leaf in self._titles if not leaf or leaf in self._places]
        yield msgspec.structs.replace(self._about, title=titles[-1] if titles else "")
        if breaks:
            named = "1 record names" if breaks == 1 else f"{breaks} records name"
            reason = f"{named} a parent that is missing; the order of the file is taken there"
            self.place = "the chain of messages"
            yield self.unreadable(f"is broken: {reason}")
        if ids is not None:
            yield Live(ids)

    def _finished(self) -> Iterator[Record]:
        """The messages that no later line extends. While all are a subagent's, the whole file may be one."""
        if self._boundary is None and (self._has_begun or not self._are_aside()):
            yield from self._handed_out()

    def _are_aside(self) -> bool:
        return all(one.is_aside for one in self._waiting if not isinstance(one, _Boundary))

    def _handed_out(self) -> Iterator[Record]:
        for one in self._waiting:
            self._has_begun = True
            if isinstance(one, Said):
                if one.message.tool_call_id:
                    self._results.append((one.id, one.message.tool_call_id))
                yield one
            elif isinstance(one, _Answer):
                said = one.said()
                self._answered.append((one.ids, [call.id for call in said.message.tool_calls]))
                for id in one.ids[1:]:
                    self._first_ids[id] = one.ids[0]
                yield said
            else:
                kept = tuple(dict.fromkeys(self._first_ids.get(id, id) for id in self._kept(one)))
                self._kept_by[one.record.id] = kept
                yield msgspec.structs.replace(one.record, kept=kept)
        self._waiting.clear()
        self._answers.clear()

    def _link(self, row: Row, *, is_aside: bool) -> bool:
        """Note the place of a record in the chain; False if the record is there already."""
        parent = row.text("parentUuid")
        if self.id in self._places:
            known = self._links[self._places[self.id]]
            known.parent = known.parent or ("" if known.is_compaction else parent)
            return False
        if not is_aside:
            is_compaction = row.get("subtype") == "compact_boundary"
            self._places[self.id] = len(self._links)
            before = "" if parent else row.first("logicalParentUuid", "logical_parent_uuid")
            self._links.append(Link(self.id, parent, before, is_compaction, is_said=is_said(row)))
        return True

    def _compact(self, meta: Row) -> _Boundary:
        before, after = (meta.count(f"{one}Tokens") or meta.count(f"{one}_tokens") for one in ("pre", "post"))
        trigger = meta.text("trigger")
        record = self.summarized("", trigger=trigger, tokens_before=before, tokens_after=after)
        self._boundary = _Boundary(record, meta)
        self._waiting.append(self._boundary)
        return self._boundary

    def _take_answer(self, row: Row, message: Row, *, is_aside: bool) -> None:
        model = message.text("model")
        blocks, usage = make.blocks_of(message.get("content")), message.row("usage").usage(*COUNTS, adds_cache=True)
        key = message.text("id"), row.text("requestId")
        for block in blocks:
            if block.get("type") == "tool_use":
                self._names[block.text("id")] = block.text("name")
        # An error of the network that is shown as an answer was never sent to a model.
        is_aside = is_aside or bool(row.get("isApiErrorMessage"))
        answer = self._answers.get(key) if key[0] else None
        if answer is None or answer.is_aside != is_aside:
            answer = _Answer([], [], "" if model == _NOT_BY_A_MODEL else model, self.at, self.place, is_aside)
            self._waiting.append(answer)
            if key[0]:
                self._answers[key] = answer
        answer.ids += [self.id] if self.id else []
        answer.blocks += [block for block in blocks if block not in answer.blocks] if answer.blocks else blocks
        if usage and (answer.usage is None or usage.completion_tokens >= answer.usage.completion_tokens):
            answer.usage = usage

    def _take_user(self, row: Row, message: Row, *, is_aside: bool) -> Iterator[Record]:
        blocks = make.blocks_of(message.get("content"))
        if row.get("isCompactSummary") and not is_aside:
            boundary = self._boundary or self._compact(Row())
            summary = texts_of(blocks)
            boundary.record = msgspec.structs.replace(boundary.record, summary=summary, is_unreadable=not summary)
            self._boundary = None
            return
        if not blocks:
            yield self.unreadable("has a message without content")
        self._waiting.extend(self.said(*messages_of(row, blocks, self._names), is_aside=is_aside))

    def _take_queued(self, attachment: Row, *, is_aside: bool) -> None:
        """Text that was typed while the model worked and sent with the next request."""
        blocks = make.blocks_of(attachment.get("prompt"))
        if attachment.get("type") != "queued_command" or not blocks:
            return
        is_typed = attachment.get("commandMode", "prompt") == "prompt"
        message = make.user_message([make.part_of(block) for block in blocks], source="typed" if is_typed else "nca")
        self._waiting.extend(self.said(message, is_aside=is_aside))

    def _note(self, row: Row) -> None:
        facts = [row.get(name) for name in _FACTS]
        if facts == self._noted:
            return
        self._noted = facts
        about, fork = self._about, row.row("forkedFrom")
        self._about = About(
            session=row.text("sessionId") or about.session,
            directory=about.directory or row.text("cwd"),
            parent=about.parent or fork.text("sessionId"),
            version=row.text("version") or about.version,
        )

    def _kept(self, boundary: _Boundary) -> tuple[str, ...]:
        """The ids of the messages that a compaction kept: a list, or the two ends of a run."""
        listed = boundary.meta.get("preservedMessages", boundary.meta.get("preserved_messages"))
        ids = row_of(listed).get("uuids") if isinstance(listed, dict) else listed
        if named := [id for id in list_of(ids) if isinstance(id, str)]:
            return tuple(named)
        run = row_of(boundary.meta.get("preservedSegment", boundary.meta.get("preserved_segment")))
        head = text_of(run.get("headUuid", run.get("head_uuid")))
        tail = text_of(run.get("tailUuid", run.get("tail_uuid")))
        if head not in self._places or tail not in self._places:
            return ()
        place, found = self._places[tail], [tail]
        while found[-1] != head and len(found) <= len(self._links):
            link = self._links[place]
            if link.is_compaction or link.parent not in self._places:
                end = min(self._places[tail], self._places.get(boundary.record.id, 0))
                return tuple(link.id for link in self._links[self._places[head] : end + 1])
            place = self._places[link.parent]
            found.append(link.parent)
        return tuple(found)

    def _live(self) -> tuple[frozenset[str] | None, int]:
        """The ids of the live branch, and how often its chain is broken. None: no record has an id."""
        if not self._links:
            return None, 0
        chain = live_branch(self._links, self._places)
        ids = set(chain.ids)
        for id, kept in self._kept_by.items():
            if id in ids:
                ids.update(kept)
        calls: set[str] = set()
        for lines, made in self._answered:
            if not ids.isdisjoint(lines):
                ids.update(lines)
                calls.update(made)
        # The results of calls in parallel are leaves beside the chain.
        beside = calls - {answered for id, answered in self._results if id in ids}
        ids.update(id for id, answered in self._results if answered in beside)
        return frozenset(ids), chain.breaks
