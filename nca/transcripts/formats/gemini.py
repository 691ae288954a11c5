"""Read Gemini CLI's sessions: JSON lines, or in older ones a single object, with parts of Google's contents.

A line with an id that was there before replaces that message: an answer is written again with each of its calls. So the
file is read twice, first for the last line of each message. `$rewindTo` takes messages back. `$set.messages` replaces
all of them: the new ones are a summary and copies of the kept messages
(google-gemini/gemini-cli, packages/core/src/services/chatRecordingService.ts).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nca.messages import Message, Part, TextPart, ToolCall
from nca.transcripts.formats import building as make
from nca.transcripts.formats.records import About, Format, Live, Reading, Record
from nca.transcripts.formats.row import Row, list_of, row_of, rows_of
from nca.transcripts.formats.source import BadLine, Source, first_line

SNAPSHOT = "<state_snapshot>"
"""A summary holds it."""
ACKNOWLEDGED = "Got it. Thanks for the additional context!"
"""The answer that Gemini CLI and Qwen Code put after a summary in the model's place."""
_COMMAND = re.compile(r"[/?][a-z][\w-]*(\s|$)")
"""A slash command: recorded, never sent."""
PROJECT_ROOT = ".project_root"
"""The file beside the chats that names the project's directory."""
FAILED = ("error", "cancelled")


class Gemini(Format):
    def knows(self, source: Source) -> bool:
        if is_header(source.first_row):
            return True
        head = source.head.lstrip()
        return head.startswith(b"{") and b'"sessionId"' in head[:2048] and b'"projectHash"' in head[:2048]

    def about(self, source: Source) -> About:
        titles = [row.text("$set", "summary") for row in reversed(source.first_rows)]
        return About(directory=_directory(source), title=next(filter(None, titles), ""))

    def files(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        found = list(super().files(env, home))
        # An older file stays beside the one that replaced it.
        return [path for path in found if path.suffix != ".json" or path.with_suffix(".jsonl") not in found]


def is_header(row: Row) -> bool:
    return isinstance(row.get("sessionId"), str) and isinstance(row.get("projectHash"), str)


def _directory(source: Source) -> str:
    """The session's directory: a file beside the chats names it."""
    return first_line(source.path.parent.parent / PROJECT_ROOT) if source.path else ""


class _Reading(Reading):
    _source: Source

    def __init__(self) -> None:
        self._last: dict[str, str] = {}
        """The place of a message's last line."""
        self._known: dict[tuple[str, ...], str] = {}
        """A message by what it says, to find it again in a copy with another id."""
        self._alias: dict[str, str] = {}
        self._seen: dict[str, None] = {}
        self._present: dict[str, None] = {}
        """The messages that the model sees, in order."""
        self._gone: set[str] = set()
        self._answered: set[str] = set()

    def records(self, source: Source) -> Iterator[Record]:
        self._source = source
        whole = self._whole()
        if whole is None:
            self._last = {row["id"]: f"line {number}" for number, row in self._rows() if isinstance(row.get("id"), str)}
            yield from super().records(source)
            return
        yield from self._header(whole)
        for number, message in enumerate(list_of(whole.get("messages")), 1):
            self.place = f"message {number}"
            yield from self._message(message)
        yield from self.ended()

    def ended(self) -> Iterator[Live]:
        if self._gone:
            yield Live(frozenset(self._seen.keys() - self._gone))

    def _whole(self) -> Row | None:
        """The object of an older file; None for JSON lines."""
        first = self._source.first_rows[:1]
        if first and ("messages" not in first[0] or len(self._source.first_rows) > 1):
            return None
        return row_of(self._source.value()) if first or not any(self._rows()) else None

    def _rows(self) -> Iterator[tuple[int, Row]]:
        return (row for row in self._source.rows() if not isinstance(row, BadLine))

    def record(self, row: Row) -> Iterator[Record]:
        changed = row.get("$set")
        if isinstance(row.get("$rewindTo"), str):
            self._rewind(row["$rewindTo"])
        elif isinstance(row.get("id"), str):
            if self._last.get(row["id"], self.place) == self.place:  # it may have come since
                yield from self._message(row)
        elif isinstance(changed, dict):
            yield from self._header(row_of(changed))
            if isinstance(changed.get("messages"), list):
                yield from self._replace(changed["messages"])
        elif is_header(row):
            yield from self._header(row)
            for message in list_of(row.get("messages")):
                yield from self._message(message)

    def _header(self, row: Row) -> Iterator[Record]:
        directory = _directory(self._source)
        yield About(session=row.text("sessionId"), title=row.text("summary"), directory=directory)

    def _rewind(self, to: str) -> None:
        """Take back a message and all after it; all, if it is not there. A summary goes with its messages."""
        to = self._alias.get(to, to)
        present = list(self._present)
        taken = present[present.index(to) :] if to in self._present else present
        is_whole = len(taken) == len(present)
        for one in taken:
            del self._present[one]
        self._gone.update(self._seen if is_whole else taken)

    def _message(self, given: Any) -> Iterator[Record]:
        row = row_of(given)
        self.id, self.at, kind = row.text("id"), row.seconds("timestamp"), row.get("type")
        if kind not in ("user", "gemini"):
            if not isinstance(kind, str):
                yield self.unreadable("is a message without a type")
            return
        self._seen[self.id] = self._present[self.id] = None
        self._gone.discard(self.id)
        self._known[_says(row)] = self.id
        parts = read_parts(row.get("content"), self.id or self.place)
        yield from self._answer(row, parts) if kind == "gemini" else self._asked(row, parts)

    def _asked(self, row: Row, parts: make.Blocks) -> Iterator[Record]:
        yield from self._results(parts.results)
        typed = read_parts(row.get("displayContent"), "").content
        message = sent(parts.content, "".join(part.text for part in typed if isinstance(part, TextPart)))
        is_aside = message is not None and _COMMAND.match(message.text) is not None
        yield from self.said(message, is_aside=is_aside)

    def _answer(self, row: Row, parts: make.Blocks) -> Iterator[Record]:
        made, unnamed = row.rows("toolCalls"), f"{self.id or self.place}, "
        calls: list[ToolCall | None] = [call for call in parts.calls if not made or not call.id.startswith(unnamed)]
        calls += [make.tool_call(one.get("id"), one.get("name"), one.get("args")) for one in made]
        thoughts = list(filter(None, parts.thoughts)) or [_thought(one) for one in row.rows("thoughts")]
        usage = row.row("tokens").usage("input", "output", "cached", thoughts="thoughts", adds_thoughts=True)
        message = make.answer(parts.content, calls, *thoughts) or (Message("assistant", "") if usage else None)
        if message is not None:
            yield from self.said(message, usage=usage, model=row.text("model"))
            yield from self._results([found for one in made if (found := _result(one))])

    def _results(self, results: Iterable[Message]) -> Iterator[Record]:
        """The results that were not read before: newer files hold each twice."""
        for message in results:
            if message.tool_call_id and message.tool_call_id not in self._answered:
                self._answered.add(message.tool_call_id)
                yield from self.said(message)

    def _replace(self, messages: list[Any]) -> Iterator[Record]:
        """The messages that take the place of all before them."""
        before = list(self._present)
        kept: list[str] = []
        added: list[Row] = []
        summary = summary_id = ""
        for row in rows_of(messages):
            record_id, text = row.text("id"), make.joined(read_parts(row.get("content"), self.place).content)
            known = record_id if record_id in self._seen else self._known.get(_says(row), "")
            if known:
                self._alias[record_id] = known
                kept.append(known)
            elif isinstance(text, str) and SNAPSHOT in text and row.get("type") == "user":
                summary, summary_id = text, record_id
            elif text != ACKNOWLEDGED or row.get("type") != "gemini":
                added.append(row)
        if before and (summary or not set(before) <= set(kept)):
            self.id, self.at = summary_id or self.place, 0.0
            self._seen[self.id] = None
            self._present = dict.fromkeys([self.id, *kept])
            yield self.compacted(summary, kept=tuple(kept))
        for row in added:
            yield from self._message(row)


def _says(row: Row) -> tuple[str, ...]:
    calls = [one.text("id") for one in row.rows("toolCalls")]
    return said_by(row.text("type"), read_parts(row.get("content"), ""), calls)


def _thought(row: Row) -> str:
    return ": ".join(filter(None, (row.text("subject"), row.text("description"))))


def _result(row: Row) -> Message | None:
    """A call's result; None while there is none. The parts after the first are pictures or other calls' responses."""
    given, failed = row.get("result"), row.get("status") in FAILED
    if not given:
        return None
    parts = rows_of(given if isinstance(given, list) else [given])
    for number, part in enumerate(parts):
        response = part.row("functionResponse")
        if response and response.get("id") in (row.get("id"), None):
            beside = [*list_of(response.get("parts")), *(p for p in parts[number + 1 :] if "functionResponse" not in p)]
            named = Row(response, id=row.get("id"), name=row.get("name"))
            return read_response(named, beside, is_error=failed)
    content = make.joined(read_parts(given, "").content) or make.shown(row.get("resultDisplay"))
    return make.tool_result(row.get("id"), row.get("name"), content, is_error=failed)


_FILES = "--- Content from referenced files ---"
_FILE = re.compile(r"\s*Content from @?(.+?):\s*")
_END = "--- End of content ---"
_ADDED = re.compile(
    r"<(hook_context|system_note|system-reminder|session_context)>(?:.*</\1>(?P<rest>.*)|.*)", re.DOTALL
)
"""The program's part of a text: up to the last end of its tag."""


def read_parts(given: Any, place: str) -> make.Blocks:
    """Read a text, a part or a list of them. A call without an id gets one of the place and its number."""
    found = make.Blocks()
    for number, part in enumerate(given if isinstance(given, list) else [given], 1):
        row = Row({"text": part} if isinstance(part, str) else row_of(part))
        if called := row.row("functionCall"):
            call_id = called.text("id") or f"{place}, call {number}"
            found.add(make.tool_call(call_id, called.get("name"), called.get("args")))
        elif response := row.row("functionResponse"):
            found.add(read_response(response, list_of(response.get("parts"))))
        elif row.get("thought") is True or isinstance(row.get("thought"), str):
            found.thoughts.append(row.first("text", "thought"))
        else:
            found.add(_shown(row))
    return found


def sent(content: Sequence[Part], typed: str = "") -> Message | None:
    """A person's message; None if it is empty.

    The files that they mentioned follow their text in parts of their own, between two lines that say so.

    typed  their text, where the format has it beside what was sent
    """
    found: list[Part] = []
    name, is_file = "", False
    for place, part in enumerate(content):
        text = part.text.strip() if isinstance(part, TextPart) else ""
        if place and text in (_FILES, _END):
            is_file, name = text == _FILES, ""
            found.append(make.text_by("nca", text))
        elif is_file and text and (titled := _FILE.fullmatch(text)):
            name = titled[1]
        elif is_file and text:
            found.append(make.attached(name or "file", text))
        elif added := _ADDED.match(text):
            rest = (added["rest"] or "").strip()
            found.append(make.text_by("nca", text.removesuffix(rest).strip()))
            if rest:
                found.append(make.text_by("typed", rest) if rest == typed.strip() else TextPart(rest))
        else:
            found.append(make.text_by("typed", text) if text and text == typed.strip() else part)
    return make.person(make.joined(found))


def said_by(speaker: str, parts: make.Blocks, calls: Iterable[str] = ()) -> tuple[str, ...]:
    """The content of a message without its id, to find it in a copy: who, its text, calls, and the call it answers."""
    shown = "\n".join(part.text if isinstance(part, TextPart) else str(part)[:200] for part in parts.content)
    answered = (one.tool_call_id for one in parts.results)
    return (speaker, shown, *(tuple(calls) or (one.id for one in parts.calls)), *answered)


def read_response(response: Row, beside: list[Any], *, is_error: bool = False) -> Message:
    """A function's response as the result of its call; `beside` are parts with its pictures."""
    said = response.get("response")
    row = row_of(said)
    error = row.get("error")
    output = row.get("output", row.get("result", error if error else said))
    pictures = [_shown(part) for part in rows_of(beside)]
    return make.tool_result(
        response.get("id"),
        response.get("name"),
        make.joined([TextPart(make.shown(output)), *pictures]),
        is_error=is_error or (bool(error) and "output" not in row),
    )


def _shown(row: Row) -> Part | None:
    if said := row.text("text"):
        return TextPart(said)
    if inline := row.row("inlineData"):
        return make.media(inline.get("data"), inline.get("mimeType"), inline.get("displayName"))
    if file := row.row("fileData"):
        return TextPart(f"[file {file.text('fileUri')}]")
    return None


FORMAT = Gemini("gemini", _Reading)
