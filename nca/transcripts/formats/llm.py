"""Read the logs of Simon Willison's `llm`: one database of all conversations.

Older versions keep a row for each response, with its prompt, calls and results. Newer ones keep messages that name
their parent, the newest message of each thread, and a turn for each request (simonw/llm, docs/logging.md, llm/logs.py).
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from nca.messages import Message, Part, TextPart, ToolCall, Usage, user_message
from nca.shapes.shaped import as_file
from nca.transcripts.formats import building as make
from nca.transcripts.formats.databases import Tables, is_database_with, tables_of
from nca.transcripts.formats.records import About, Format, Live, Reading, Record, StoredSession
from nca.transcripts.formats.row import Row, parsed, row_of, text_of
from nca.transcripts.formats.source import Source
from nca.words import Span, Words, merged
from nca.words import text_of as text_of_words


class Llm(Format):
    def knows(self, source: Source) -> bool:
        older = {"conversations": ("id", "model"), "responses": ("id", "prompt", "response", "conversation_id")}
        newer = {"threads": ("id", "tip_message_hash"), "messages": ("hash", "parent_hash"), "parts": ("message_hash",)}
        return is_database_with(source, **older) or is_database_with(source, **newer)

    def sessions(self, source: Source) -> Iterable[StoredSession]:
        with tables_of(source) as tables:
            found = {row.text("id"): row for row in tables.rows("conversations")}
            found |= {row.text("id"): row for row in tables.rows("threads")}
            used: dict[str, float] = {}
            for table, column in (("responses", "conversation_id"), ("turns", "thread_id")):
                for row in tables.rows(table, (), columns=(column, "datetime_utc")):
                    key = text_of(row.get(column))
                    used[key] = max(used.get(key, 0.0), row.seconds("datetime_utc"))
            for key, row in found.items():
                title, at = row.text("name"), used.get(key, 0.0)
                yield StoredSession(agent=self.name, path=source.path or Path(), key=key, title=title, at=at)

    def records(self, source: Source, key: str) -> Iterator[Record]:
        key = key or self.newest_key(source)
        with tables_of(source) as tables:
            if thread := tables.one("threads", id=key):
                yield from _Thread(tables).of_thread(thread)
                return
            row = tables.one("conversations", id=key)
            yield About(session=key, title=row.text("name"), model=row.text("model"))
            yield from _Conversation(tables).of_conversation(key)


FORMAT = Llm("llm")


class _Schema(Reading):
    """Reads attachments, which both schemas keep in the same tables."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def _attachments(self, table: str, **owner: Any) -> list[Part | None]:
        """Those that a table of links names for its owner, in their order."""
        links = self._tables.rows(table, ("order",), **owner)
        return [self._attachment(link.get("attachment_id")) for link in links]

    def _attachment(self, attachment: Any) -> Part | None:
        row = self._tables.one("attachments", id=text_of(attachment))
        content, kind = row.get("content"), row.get("type")
        if isinstance(content, bytes):
            return make.media(base64.b64encode(content).decode("ascii"), kind, attachment)
        if url := row.text("url"):
            is_image = text_of(kind).startswith("image/")
            return make.media(url, kind, attachment) if is_image else TextPart(f"[file {url}]")
        where = row.text("path")
        return TextPart(f"[file {where}]") if where else None


class _Conversation(_Schema):
    """A conversation as older versions keep it."""

    def __init__(self, tables: Tables) -> None:
        super().__init__(tables)
        self._system = ""

    def of_conversation(self, key: str) -> Iterator[Record]:
        for row in self._tables.rows("responses", ("datetime_utc", "id"), conversation_id=key):
            self.id = response = row.text("id")
            self.at, self.place = row.seconds("datetime_utc"), f"response {response}"
            messages = (*self._asked(row, response), self._answered(row, response))
            yield from self.said(*messages, usage=_usage(row), model=row.first("resolved_model", "model"))

    def _asked(self, row: Row, response: str) -> Iterator[Message | None]:
        """The messages sent: the system prompt if it is new, the results of calls, and the person's message."""
        system = self._with_fragments("system_fragments", response, row.text("system"))
        if system.strip() and system != self._system:
            self._system = system
            yield Message("system", system)
        for result in self._tables.rows("tool_results", response_id=response):
            yield _result(result, self._attachments("tool_results_attachments", tool_result_id=result.get("id")))
        files = [
            make.attached(one.text("source") or "fragment", text)
            for one in self._fragments("prompt_fragments", response)
            if (text := one.text("content"))
        ]
        beside = self._attachments("prompt_attachments", response_id=response)
        yield make.person(make.joined([*files, TextPart(row.text("prompt")), *beside]))

    def _answered(self, row: Row, response: str) -> Message | None:
        calls = map(_call, self._tables.rows("tool_calls", response_id=response))
        return make.answer([TextPart(row.text("response"))], calls, row.text("reasoning"))

    def _with_fragments(self, table: str, response: str, text: str) -> str:
        fragments = self._fragments(table, response)
        return "\n".join(filter(None, [*(one.text("content") for one in fragments), text]))

    def _fragments(self, table: str, response: str) -> list[Row]:
        """The files and pages that went along, in their order."""
        links = self._tables.rows(table, ("order",), response_id=response)
        return [self._tables.one("fragments", id=link.get("fragment_id")) for link in links]


class _Thread(_Schema):
    """A thread as newer versions keep it. Messages of its turns that its tip does not follow are other branches."""

    def __init__(self, tables: Tables) -> None:
        super().__init__(tables)
        self._done: set[str] = set()

    def of_thread(self, thread: Row) -> Iterator[Record]:
        key, tip = thread.text("id"), thread.text("tip_message_hash")
        yield About(session=key, title=thread.text("name"), parent=thread.text("forked_from"))
        for turn in self._tables.rows("turns", ("datetime_utc", "id"), thread_id=key):
            yield from self._chain(turn.text("tip_message_hash"), turn)
        yield from self._chain(tip, Row())
        live = {row.text("hash") for row in self._way(tip)}
        if live and live != self._done:
            yield Live(frozenset(live))

    def _way(self, tip: str) -> list[Row]:
        """The messages from the first to this one."""
        way: dict[str, Row] = {}
        while tip and tip not in way:
            row = self._tables.one("messages", hash=tip)
            if not row:
                break
            way[tip] = row
            tip = row.text("parent_hash")
        return list(reversed(way.values()))

    def _chain(self, tip: str, turn: Row) -> Iterator[Record]:
        self.at, model = turn.seconds("datetime_utc"), turn.first("resolved_model", "model")
        for row in self._way(tip):
            self.id = row.text("hash")
            if self.id in self._done:
                continue
            self._done.add(self.id)
            self.place = f"message {self.id[:12]}"
            usage = _usage(turn) if self.id == tip else None
            yield from self.said(*self._messages(row), usage=usage, model=model)

    def _messages(self, row: Row) -> Iterator[Message | None]:
        found, pieces = make.Blocks(), list[Span]()
        for part in self._tables.rows("parts", ("position",), message_hash=self.id):
            payload = row_of(parsed(part.get("payload")))
            kind, text = part.get("type"), part.text("text")
            if payload.get("server_executed") is True:
                found.add(as_file(text_of(kind), payload, "parts"))
            elif kind == "tool_call":
                found.add(_call(payload))
            elif kind == "tool_result":
                yield _result(payload, [self._attachment(one.get("id")) for one in payload.rows("attachments")])
            elif kind == "reasoning":
                found.thoughts.append(text or text_of_words(self._words(payload)))
            elif kind == "attachment":
                found.add(self._attachment(payload.value("attachment", "id")))
            elif text or row.get("role") != "user":
                found.add(TextPart(text or text_of_words(self._words(payload))))
            else:
                pieces += self._words(payload)
        role = row.get("role")
        if role == "assistant":
            yield found.answer()
        elif role == "system" and found.said:
            yield found.system()
        else:
            yield user_message(tuple(pieces), found.content) if pieces else make.person(found.said)

    def _words(self, payload: Row) -> Words:
        """The text of a part that shares pieces with others: these are the files and pages that went along."""
        found = [Span(payload.text("text"), "foreign")]
        for piece in payload.rows("text_ref"):
            fragment = piece.get("fragment")
            if isinstance(fragment, int):
                row = self._tables.one("fragments", id=fragment)
                found.append(Span(row.text("content"), "attached"))
            found.append(Span(piece.text("literal"), "foreign"))
        return merged(tuple(found))


def _call(row: Row) -> ToolCall | None:
    """A call without an id has its tool's name as one."""
    return make.tool_call(row.get("tool_call_id") or row.get("name"), row.get("name"), row.get("arguments"))


def _result(row: Row, beside: Sequence[Part | None]) -> Message:
    content = make.joined([TextPart(row.first("output", "exception")), *beside])
    call_id, is_error = row.get("tool_call_id") or row.get("name"), bool(row.get("exception"))
    return make.tool_result(call_id, row.get("name"), content, is_error=is_error)


def _usage(row: Row) -> Usage | None:
    counts = Row(row, details=parsed(row.get("token_details")))
    cached, thoughts = (
        "details.prompt_tokens_details.cached_tokens",
        "details.completion_tokens_details.reasoning_tokens",
    )
    return counts.usage("input_tokens", "output_tokens", cached, thoughts=thoughts)
