"""Codex CLI: one rollout a session, in `~/.codex/sessions/YYYY/MM/DD/` and `archived_sessions`.

A rollout repeats the conversation as events for the screen. What the model saw are the response items.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from nca.messages import Message, Usage
from nca.shapes.shaped import as_chat_message
from nca.transcripts.formats import building as make
from nca.transcripts.formats import codex_items as items
from nca.transcripts.formats.records import About, Compacted, Format, Live, Reading, Record, Said, StoredSession, facts
from nca.transcripts.formats.row import Row, row_of, rows_of, text_of
from nca.transcripts.formats.source import Source

_TURN_BEGINS = ("task_started", "turn_started")
_NOT_SHOWN = ("ghost_snapshot", "compaction", "compaction_summary", "context_compaction", "compaction_trigger", "other")
"""Items that are not part of an answer."""


class _Answer(make.Blocks, kw_only=True):
    """One answer of the model: reasoning, text and calls, each an item of its own."""

    id: str
    model: str
    at: float
    place: str
    usage: Usage | None = None


class _Part(NamedTuple):
    id: str
    is_by_a_person: bool


class Rollout(Reading):
    """Takes the lines in their order."""

    def __init__(self) -> None:
        self._count = 0
        self._waiting: list[Record | _Answer] = []
        """Messages that were not handed out yet."""
        self._alive: list[_Part] = []
        """Messages that were not taken back."""
        self._turns: list[int] = []
        """For each turn that was not taken back, how much of `_alive` came before it."""
        self._turn_began: int | None = None
        self._has_marks = False
        """Whether this rollout says where turns begin; older ones do not."""
        self._open: _Answer | None = None
        self._last: _Answer | None = None

        self._names: dict[str, str] = {}
        self._known: dict[tuple[str, ...], str] = {}
        """The newest part with this text or call, by its id."""
        self._events: list[Said] = []
        self._asked: Said | None = None
        """The newest message in the person's role, while an event may say that they typed it."""
        self._typed: set[str] = set()
        """The person's texts in events, until their message comes: older versions write the event first."""
        self._about: About | None = None
        self._model = ""

    def record(self, row: Row) -> list[Record]:
        """The messages that no later line extends: those before the newest answer."""
        self.at = row.seconds("timestamp")
        self._take(row)
        found = []
        while self._waiting and self._waiting[0] is not self._last and self._waiting[0] is not self._asked:
            found.append(_record(self._waiting.pop(0)))
        return found

    def _take(self, row: Row) -> None:
        kind, payload = row.get("type"), row.row("payload")
        if self._about is None and (kind == "session_meta" or "payload" not in row):
            # Of several the first counts: a fork repeats that of the session it comes from.
            self._about = facts("codex", payload or row)
            if kind is None:
                return
        if kind == "turn_context":
            self._model = payload.text("model") or self._model
        elif kind == "event_msg":
            self._take_event(payload)
        elif kind == "compacted":
            self._compact(payload)
        elif kind == "response_item":
            self._take_item(payload)
        elif "payload" not in row and kind != "session_meta" and kind is not None:
            self._take_item(row)

    def ended(self) -> Iterator[Record]:
        yield from map(_record, self._waiting)
        if not self._count:
            # Some rollouts have only the events for the screen.
            yield from self._events
        yield self._about or About()
        if self._count:
            yield Live(frozenset(part.id for part in self._alive))

    def _take_event(self, event: Row) -> None:
        kind = event.get("type")
        if kind == "token_count":
            usage = _usage(event.row("info", "last_token_usage"))
            if usage is not None and self._last is not None and self._last.usage is None:
                self._last.usage = usage
        elif kind in _TURN_BEGINS:
            self._open = None
            self._has_marks = True
            self._turn_began = len(self._alive)
        elif kind == "thread_rolled_back":
            self._take_back(event.count("num_turns"))
        elif kind in ("user_message", "agent_message") and (text := event.text("message")):
            message = Message("user", text) if kind == "user_message" else Message("assistant", text)
            if kind == "user_message":
                self._take_typed(text)
                message = items.as_typed(message, text) or message
            if not self._count:
                self._events.append(Said(message=message, at=self.at, place=self.place))

    def _take_typed(self, text: str) -> None:
        """Mark the message that the person typed; the event that says so comes after it or before it."""
        asked = self._asked
        if asked is None or (message := items.as_typed(asked.message, text)) is None:
            self._typed.add(text)
            return
        place = next(place for place, one in enumerate(self._waiting) if one is asked)
        self._waiting[place] = msgspec.structs.replace(asked, message=message)
        self._asked = None

    def _take_item(self, item: Row) -> None:
        kind = item.get("type")
        if kind == "message" and item.get("role") != "assistant":
            self._say(items.said(item), ("message", items.text_in(item)), is_aside=items.is_about_codex(item))
        elif kind in items.OUTPUTS:
            self._say(items.output(item, self._names), ("output", item.text("call_id")))
        elif kind in (*items.CALLS, "message", "reasoning") or (kind not in _NOT_SHOWN and isinstance(kind, str)):
            self._answer(item)

    def _say(self, message: Message | None, key: tuple[str, ...], *, is_aside: bool = False) -> None:
        self._open = None
        if message is None:
            self._waiting.append(self.unreadable("has no content"))
            return
        if message.role == "user" and not message.is_synthetic:
            # A second message in the same turn belongs to it.
            if self._turn_began is not None or not self._has_marks:
                self._turns.append(len(self._alive) if self._turn_began is None else self._turn_began)
            self._turn_began = None
        self._number()
        said = Said(message=message, id=self.id, at=self.at, place=self.place, is_aside=is_aside)
        if message.role == "user" and not message.source:
            for typed in self._typed:
                if marked := items.as_typed(message, typed):
                    said = msgspec.structs.replace(said, message=marked)
                    self._typed.remove(typed)
                    break
            self._asked = None if said.message.source else said
        self._add(said, key)

    def _answer(self, item: Row) -> None:
        kind = item.get("type")
        self._asked = None
        if self._open is None:
            self._number()
            self._open = self._last = _Answer(id=self.id, model=self._model, at=self.at, place=self.place)
            self._add(self._open, ("answer", self.id))
        if kind == "reasoning":
            self._open.thoughts += [text] if (text := items.thought(item)) else []
        elif kind == "message":
            self._open.content += items.parts_of(item.get("content"))
            self._known["message", items.text_in(item)] = self._open.id
        elif kind in items.CALLS:
            if (made := items.call(item)) is None:
                self._waiting.append(self.unreadable("is a call without an id"))
                return
            self._open.add(made)
            self._names[made.id] = made.name
            self._known["call", made.id] = self._open.id
        else:
            # The provider's own calls, such as a search.
            self._open.add(make.attached(text_of(kind), make.as_json(item)))

    def _number(self) -> None:
        """Number the messages and compactions: these have no ids."""
        self._count += 1
        self.id = str(self._count)

    def _add(self, part: Said | Compacted | _Answer, key: tuple[str, ...]) -> None:
        self._alive.append(_Part(part.id, _is_by_a_person(part)))
        self._waiting.append(part)
        self._known[key] = part.id

    def _take_back(self, turns: int) -> None:
        """Take back the newest turns, with the compactions in them."""
        self._open = None
        count = min(turns, len(self._turns))
        if count:
            del self._alive[self._turns[-count] :]
            del self._turns[-count:]
        self._turn_began = None

    def _compact(self, payload: Row) -> None:
        self._open = None
        summary = payload.text("message").strip()
        is_unreadable = not summary
        history = payload.get("replacement_history")
        if isinstance(history, list):
            kept, texts, is_unreadable = self._replaced(history)
            summary = summary if summary and not texts else "\n\n".join(texts)
        else:
            kept = [part.id for part in self._alive if part.is_by_a_person]
        self._number()
        compacted = self.compacted(summary, kept=tuple(kept), is_unreadable=is_unreadable)
        self._add(compacted, ("compacted", self.id))

    def _replaced(self, history: list[Any]) -> tuple[list[str], list[str], bool]:
        """The messages that a replacement kept, its own text, and whether that is encrypted."""
        alive = {part.id for part in self._alive}
        kept: list[str] = []
        texts: list[str] = []
        is_encrypted = False
        for item in rows_of(history):
            kind, text = item.get("type", "message"), items.text_in(item)
            call_id = item.text("call_id")
            key = ("message", text) if kind == "message" else ("output" if kind in items.OUTPUTS else "call", call_id)
            if self._known.get(key) in alive and (text or call_id):
                kept.append(self._known[key])
            elif kind == "message" and item.get("role") in ("user", "assistant"):
                texts += [text] if text and not items.is_context(text) else []
            elif kind in ("compaction", "compaction_summary", "context_compaction"):
                is_encrypted = True
        return kept, texts, is_encrypted or not (texts or kept)


def _is_by_a_person(part: Record | _Answer) -> bool:
    return isinstance(part, Said) and part.message.role == "user" and not part.message.is_synthetic


def _record(part: Record | _Answer) -> Record:
    if not isinstance(part, _Answer):
        return part
    thoughts = "\n\n".join(part.thoughts)
    content = tuple(part.content) or (None if part.calls or not thoughts else "")
    message = as_chat_message(Message("assistant", content, tuple(part.calls), reasoning=thoughts))
    return Said(message=message, id=part.id, at=part.at, usage=part.usage, model=part.model, place=part.place)


def _usage(row: Row) -> Usage | None:
    """Codex counts what came from a cache inside the input."""
    usage = row.usage("input_tokens", "output_tokens", "cached_input_tokens", thoughts="reasoning_output_tokens")
    if usage is None:
        return None
    return msgspec.structs.replace(usage, cache_read_tokens=min(usage.cache_read_tokens, usage.prompt_tokens))


UNKNOWN_PARENT = "another session"


class Codex(Format):
    def knows(self, source: Source) -> bool:
        rows = source.first_rows
        return bool(rows) and (_meta(rows[0]) is not None)

    def sessions(self, source: Source) -> Iterable[StoredSession]:
        rows = source.first_rows
        meta = _meta(rows[0]) if rows else None
        if meta is None:
            return ()
        payloads = [row.row("payload") or row for row in rows[1:]]
        said = (items.text_in(one) for one in payloads if one.get("type") == "message" and one.get("role") == "user")
        title = next((text for text in said if text and not items.is_context(text)), "")
        return (self.stored(source, About(directory=meta.text("cwd"), title=title), parent=_parent(meta)),)

    def read(self, source: Source, key: str = "") -> Iterator[Record]:
        return Rollout().records(source)


def _meta(row: Row) -> Row | None:
    """The facts in a rollout's first line; None if it is none. Before version 0.32 they stood in the line itself."""
    if row.get("type") == "session_meta":
        return row.row("payload")
    is_old = isinstance(row.get("id"), str) and isinstance(row.get("timestamp"), str)
    return row if is_old and not {"type", "role", "payload", "messages"} & row.keys() else None


def _parent(meta: Row) -> str:
    """The id of the session that started this one as a subagent; "" if none did. A review does not name its session."""
    subagent = meta.value("source", "subagent")
    if subagent is None and meta.get("thread_source") != "subagent":
        return ""
    spawned = text_of(row_of(row_of(subagent).get("thread_spawn")).get("parent_thread_id"))
    return spawned or meta.text("forked_from_id") or UNKNOWN_PARENT


FORMAT = Codex("codex")
