"""Read OpenHands' conversations: a folder with a JSON file for each event, or the events as JSON lines.

Calls of one answer are events of their own with the same response id. A condensation names the events that the model no
longer sees; its summary is in their place
(OpenHands/software-agent-sdk, openhands-sdk/openhands/sdk/event and conversation/persistence_const.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from nca.messages import Message, Part, TextPart, ToolCall, Usage
from nca.safe_files import paths_below
from nca.transcripts.formats import building as make
from nca.transcripts.formats.records import About, Format, Reading, Record, Said, facts
from nca.transcripts.formats.row import Row, list_of, row_of, rows_of, text_of, texts_of
from nca.transcripts.formats.source import Source, chosen_folder, json_file, row_file

_NO_REASON = "User rejected the action"
"""The text that OpenHands writes if the person gave no reason."""
_EVENTS, _STATE = "events", "base_state.json"
_COUNTS = ("prompt_tokens", "completion_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
_CONDENSER = "condenser"
"""Whose usage is not that of an answer."""


class OpenHands(Format):
    def knows(self, source: Source) -> bool:
        if source.path is not None and os.path.isdir(source.path):
            return next(_event_files(source.path), None) is not None
        return any(_is_event(row) for row in source.first_rows)

    def about(self, source: Source) -> About:
        folder = _folder(source)
        state = row_file(folder / _STATE) if folder else Row()
        return facts(self.name, state)

    def files(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        own = chosen_folder(env.get("OPENHANDS_CONVERSATIONS_DIR"), home)
        persisted = chosen_folder(env.get("OPENHANDS_PERSISTENCE_DIR"), home) or home / ".openhands"
        return sorted(state.parent for state in paths_below(own or persisted / "conversations", f"*/{_STATE}"))


def _is_event(row: Row) -> bool:
    return row.get("kind") in FORMAT.places.kinds and isinstance(row.get("id"), str) and "source" in row


def _folder(source: Source) -> Path | None:
    """The conversation's folder, for it, for its folder of events or for one of these; None for JSON lines."""
    path = source.path
    if path is None or (os.path.isfile(path) and not path.name.startswith("event-")):
        return None
    folder = path if os.path.isdir(path) else path.parent
    return folder.parent if folder.name == _EVENTS else folder


def _event_files(folder: Path) -> Iterator[Path]:
    """In the order of the events: the numbers in the names grow longer."""
    inside = folder / _EVENTS if os.path.isdir(folder / _EVENTS) else folder
    return iter(
        sorted(paths_below(inside, "event-*-*.json"), key=lambda path: (path.name.split("-")[1].zfill(12), path.name))
    )


class _Answer(msgspec.Struct):
    """The events of one answer so far."""

    first: Row
    place: str
    calls: list[ToolCall | None] = []


class _Reading(Reading):
    def __init__(self) -> None:
        self._answer: _Answer | None = None
        self._same: dict[str, str] = {}
        """Events that are not a message of their own: the message that they are in."""
        self._seen: dict[str, None] = {}
        """The messages that the model sees."""
        self._summaries: dict[str, str] = {}
        self._spent = self._reported = Usage(0, 0)
        self._model = ""

    def records(self, source: Source) -> Iterator[Record]:
        folder = _folder(source)
        if folder is None:
            yield from super().records(source)
            return
        for path in _event_files(folder):
            event, self.place = json_file(path), path.name
            if isinstance(event, dict):
                yield from self.record(Row(event))
            else:
                yield self.unreadable("is not a JSON object")
        yield from self.ended()

    def record(self, row: Row) -> Iterator[Record]:
        kind = row.get("kind")
        if kind == "ActionEvent":
            yield from self._action(row)
        elif kind == "ConversationStateUpdateEvent":
            if row.get("key") == "stats":
                self._count(row.row("value", "usage_to_metrics"))
        elif kind == "Condensation":
            yield from self.ended()
            yield from self._condensed(row)
        elif isinstance(kind, str):
            message = _message(kind, row)
            if message is not None:
                yield from self.ended()
                yield self._sees(message, row, self.place)
        else:
            yield self.unreadable("is an event without a kind")

    def _action(self, event: Row) -> Iterator[Record]:
        response = event.text("llm_response_id")
        if self._answer and response and self._answer.first.get("llm_response_id") == response:
            self._same[event.text("id")] = self._answer.first.text("id")
        else:
            yield from self.ended()
            self._answer = _Answer(event, self.place)
        made = event.row("tool_call")
        call_id = made.text("id") or event.get("tool_call_id")
        name = made.text("name") or event.get("tool_name")
        self._answer.calls.append(make.tool_call(call_id, name, made.get("arguments", event.get("action"))))

    def ended(self) -> Iterator[Record]:
        """The answer, if there is one: it is whole now."""
        given, self._answer = self._answer, None
        if given is not None:
            said, thought = _parts(given.first.get("thought")), given.first.text("reasoning_content")
            message = make.answer(said, given.calls, thought)
            if message is not None:
                yield self._sees(message, given.first, given.place)

    def _sees(self, message: Message, event: Row, place: str) -> Record:
        record_id, usage = event.text("id"), None
        if message.role == "assistant" and self._spent != self._reported:
            usage, self._reported = _difference(self._spent, self._reported), self._spent
        self._seen[record_id] = None
        at = event.seconds("timestamp")
        return Said(message=message, id=record_id, at=at, usage=usage, model=self._model, place=place)

    def _count(self, metrics: Row) -> None:
        """The sum of all requests so far, except for those of the condenser."""
        total = Usage(0, 0)
        for name, one in metrics.items():
            row = row_of(one)
            if name != _CONDENSER:
                self._model = row.text("model_name") or self._model
                cost = row.get("accumulated_cost") or None
                total += row.row("accumulated_token_usage").usage(*_COUNTS, cost=cost) or Usage(0, 0)
        self._spent = total

    def _condensed(self, event: Row) -> Iterator[Record]:
        gone = {self._same.get(one, one) for one in list_of(event.get("forgotten_event_ids")) if isinstance(one, str)}
        kept = [one for one in self._seen if one not in gone]
        summary = event.text("summary")
        self.id, self.at = event.text("id"), event.seconds("timestamp")
        before = len(self._seen)
        self._seen = dict.fromkeys(kept)
        self._summaries = {one: text for one, text in self._summaries.items() if one not in gone}
        if summary and isinstance(event.get("summary_offset"), int):
            self._summaries[f"{self.id}-summary"] = summary
        if len(kept) < before or summary:
            yield self.compacted("\n\n".join(self._summaries.values()), kept=tuple(kept))


def _message(kind: str, event: Row) -> Message | None:
    """The message of an event; None for one that the model does not see."""
    if kind == "SystemPromptEvent":
        text = texts_of(event.row(key) for key in ("system_prompt", "dynamic_context"))
        return Message("system", text) if text else None
    if kind == "MessageEvent":
        row = event.row("llm_message")
        parts, added = _parts(row.get("content")), _parts(event.get("extended_content"))
        if row.get("role") == "assistant":
            return make.answer([*parts, *added], (), row.text("reasoning_content"))
        # OpenHands's knowledge of a subject goes along with the person's words.
        more = [make.text_by("nca", part.text) if isinstance(part, TextPart) else part for part in added]
        return make.person(make.joined([*parts, *more]), "typed" if event.get("source") == "user" else "nca")
    return _result(kind, event)


def _result(kind: str, event: Row) -> Message | None:
    call_id, name = event.get("tool_call_id"), event.get("tool_name")
    if not text_of(call_id):
        return None
    if kind == "AgentErrorEvent":
        return make.tool_result(call_id, name, event.text("error"), is_error=True)
    if kind == "UserRejectObservation":
        reason = event.text("rejection_reason")
        is_typed = event.get("rejection_source", "user") == "user" and reason not in ("", _NO_REASON)
        said: make.Content = make.typed_after("Rejected:", reason) if is_typed else f"Rejected: {reason}"
        return make.tool_result(call_id, name, said, is_error=True)
    if kind != "ObservationEvent":
        return None
    row = event.row("observation")
    content: make.Content = make.joined([*_parts(row.get("content")), *_parts(event.get("extended_content"))])
    exit_code = row.get("exit_code")
    failed = row.get("is_error") is True or (isinstance(exit_code, int) and exit_code not in (0, -1))
    return make.tool_result(call_id, name, content or row.text("output"), is_error=failed)


def _parts(content: Any) -> list[Part | None]:
    if isinstance(content, str):
        return [TextPart(text_of(content))]
    parts: list[Part | None] = []
    for block in rows_of(content):
        if block.get("type") == "image":
            parts += [make.picture(url) for url in list_of(block.get("image_urls"))]
        else:
            parts.append(TextPart(block.text("text")))
    return parts


def _difference(now: Usage, before: Usage) -> Usage:
    cost = None if now.cost is None else max(0.0, now.cost - (before.cost or 0.0))
    counts = zip(msgspec.structs.astuple(now)[:-1], msgspec.structs.astuple(before)[:-1], strict=True)
    return msgspec.structs.replace(Usage(*(max(0, one - two) for one, two in counts)), cost=cost)


FORMAT = OpenHands("openhands", _Reading)
