"""Read the logs of Simon Willison's `llm`: one database of all conversations.

Older versions keep a row for each response, with its prompt, calls and results. Newer ones keep messages that name
their parent, the newest message of each thread, and a turn for each request (simonw/llm, docs/logging.md, llm/logs.py).
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from nca.messages import Message, Part, TextPart, ToolCall, Usage, user_message
from nca.sessions.foreign_rows import ForeignDatabase, foreign_database
from nca.shapes.shaped import as_file
from nca.transcripts.formats.building import (
    answer,
    attached,
    count_of,
    joined,
    media,
    object_of,
    objects_of,
    parsed,
    person,
    seconds_of,
    some_messages,
    text_of,
    tool_call,
    tool_result,
)
from nca.transcripts.formats.records import (
    About,
    Live,
    Record,
    Said,
    StoredSession,
    chosen_folder,
    is_database_with,
    newest_key,
)
from nca.transcripts.formats.source import Source
from nca.words import Span, Words, merged
from nca.words import text_of as text_of_words

_MAC_FOLDER = Path("Library/Application Support/io.datasette.llm")
_LINUX_FOLDER = Path(".config/io.datasette.llm")


class Llm:
    name = "llm"
    title = "llm"

    def knows(self, source: Source) -> bool:
        older = {"conversations": ("id", "model"), "responses": ("id", "prompt", "response", "conversation_id")}
        newer = {"threads": ("id", "tip_message_hash"), "messages": ("hash", "parent_hash"), "parts": ("message_hash",)}
        return is_database_with(source, **older) or is_database_with(source, **newer)

    def sessions(self, source: Source) -> Iterable[StoredSession]:
        if source.path is None:
            return
        with foreign_database(source.path) as database:
            found = {text_of(row.get("id")): row for row in database.rows("conversations", order=("id",))}
            found |= {text_of(row.get("id")): row for row in database.rows("threads", order=("id",))}
            used: dict[str, float] = {}
            for table, column in (("responses", "conversation_id"), ("turns", "thread_id")):
                for row in database.rows(table, columns=(column, "datetime_utc")):
                    key = text_of(row.get(column))
                    used[key] = max(used.get(key, 0.0), seconds_of(row.get("datetime_utc")))
            for key, row in found.items():
                title, at = text_of(row.get("name")), used.get(key, 0.0)
                yield StoredSession(agent=self.name, path=source.path, key=key, title=title, at=at)

    def read(self, source: Source, key: str = "") -> Iterator[Record]:
        return some_messages(self._records(source, key), source, self.title)

    def files(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        own = chosen_folder(env.get("LLM_USER_PATH"), home)
        folders = [own] if own else [home / _LINUX_FOLDER, home / _MAC_FOLDER]
        return [folder / "logs.db" for folder in folders if (folder / "logs.db").is_file()]

    def _records(self, source: Source, key: str) -> Iterator[Record]:
        if source.path is None:
            return
        key = key or newest_key(self.sessions(source))
        with foreign_database(source.path) as database:
            thread = next(database.rows("threads", {"id": key}), None)
            if thread is not None:
                yield from _Thread(database).records(thread)
                return
            row = next(database.rows("conversations", {"id": key}), {})
            yield About(session=key, title=text_of(row.get("name")), model=text_of(row.get("model")))
            yield from _Conversation(database).records(key)


FORMAT = Llm()


class _Attachments:
    """Reads attachments, which both schemas keep in one table."""

    def __init__(self, database: ForeignDatabase) -> None:
        self._database = database

    def of(self, table: str, owner: Mapping[str, Any]) -> list[Part | None]:
        """Those that a table of links names for its owner, in their order."""
        links = self._database.rows(table, owner, order=("order",))
        return [self.part(link.get("attachment_id")) for link in links]

    def part(self, attachment: Any) -> Part | None:
        row = next(self._database.rows("attachments", {"id": text_of(attachment)}), {})
        held, kind = row.get("content"), row.get("type")
        if isinstance(held, bytes):
            return media(base64.b64encode(held).decode("ascii"), kind, attachment)
        if url := text_of(row.get("url")):
            return media(url, kind, attachment) if text_of(kind).startswith("image/") else TextPart(f"[file {url}]")
        where = text_of(row.get("path"))
        return TextPart(f"[file {where}]") if where else None


class _Conversation:
    """A conversation as older versions keep it."""

    def __init__(self, database: ForeignDatabase) -> None:
        self._database = database
        self._attachments = _Attachments(database)
        self._system = ""

    def records(self, key: str) -> Iterator[Record]:
        for row in self._database.rows("responses", {"conversation_id": key}, order=("datetime_utc", "id")):
            response, at = text_of(row.get("id")), seconds_of(row.get("datetime_utc"))
            for message in [*self._asked(row, response), self._answered(row, response)]:
                if message is None:
                    continue
                is_answer = message.role == "assistant"
                yield Said(
                    message=message,
                    id=response,
                    at=at,
                    usage=_usage(row) if is_answer else None,
                    model=(text_of(row.get("resolved_model")) or text_of(row.get("model"))) if is_answer else "",
                    place=f"response {response}",
                )

    def _asked(self, row: Mapping[str, Any], response: str) -> Iterator[Message | None]:
        """What was sent: the system prompt where it is new, the results of calls, and what the person said."""
        system = self._with_fragments("system_fragments", response, text_of(row.get("system")))
        if system.strip() and system != self._system:
            self._system = system
            yield Message("system", system)
        for result in self._database.rows("tool_results", {"response_id": response}, order=("id",)):
            beside = self._attachments.of("tool_results_attachments", {"tool_result_id": result.get("id")})
            output = TextPart(text_of(result.get("output")) or text_of(result.get("exception")))
            is_error = bool(text_of(result.get("exception")))
            call_id = result.get("tool_call_id") or f"{result.get('name')}"
            yield tool_result(call_id, result.get("name"), joined([output, *beside]), is_error=is_error)
        files = [
            attached(text_of(one.get("source")) or "fragment", text)
            for one in self._fragments("prompt_fragments", response)
            if (text := text_of(one.get("content")))
        ]
        beside = self._attachments.of("prompt_attachments", {"response_id": response})
        yield person(joined([*files, TextPart(text_of(row.get("prompt"))), *beside]))

    def _answered(self, row: Mapping[str, Any], response: str) -> Message | None:
        calls = [
            tool_call(one.get("tool_call_id") or f"{one.get('name')}", one.get("name"), one.get("arguments"))
            for one in self._database.rows("tool_calls", {"response_id": response}, order=("id",))
        ]
        return answer([TextPart(text_of(row.get("response")))], calls, text_of(row.get("reasoning")))

    def _with_fragments(self, table: str, response: str, text: str) -> str:
        held = self._fragments(table, response)
        return "\n".join(filter(None, [*(text_of(one.get("content")) for one in held), text]))

    def _fragments(self, table: str, response: str) -> list[dict[str, Any]]:
        """The files and pages that went along, in their order."""
        links = self._database.rows(table, {"response_id": response}, order=("order",))
        return [next(self._database.rows("fragments", {"id": link.get("fragment_id")}), {}) for link in links]


class _Thread:
    """A thread as newer versions keep it. Messages of its turns that its tip does not follow are other branches."""

    def __init__(self, database: ForeignDatabase) -> None:
        self._database = database
        self._attachments = _Attachments(database)
        self._done: set[str] = set()

    def records(self, thread: Mapping[str, Any]) -> Iterator[Record]:
        key, tip = text_of(thread.get("id")), text_of(thread.get("tip_message_hash"))
        yield About(session=key, title=text_of(thread.get("name")), parent=text_of(thread.get("forked_from")))
        for turn in self._database.rows("turns", {"thread_id": key}, order=("datetime_utc", "id")):
            yield from self._chain(text_of(turn.get("tip_message_hash")), turn)
        yield from self._chain(tip, {})
        live = {text_of(row.get("hash")) for row in self._way(tip)}
        if live and live != self._done:
            yield Live(frozenset(live))

    def _way(self, tip: str) -> list[dict[str, Any]]:
        """The messages from the first to this one."""
        way: dict[str, dict[str, Any]] = {}
        while tip and tip not in way:
            row = next(self._database.rows("messages", {"hash": tip}), None)
            if row is None:
                break
            way[tip] = row
            tip = text_of(row.get("parent_hash"))
        return list(reversed(way.values()))

    def _chain(self, tip: str, turn: Mapping[str, Any]) -> Iterator[Record]:
        at, model = (
            seconds_of(turn.get("datetime_utc")),
            text_of(turn.get("resolved_model")) or text_of(turn.get("model")),
        )
        for row in self._way(tip):
            message_hash = text_of(row.get("hash"))
            if message_hash in self._done:
                continue
            self._done.add(message_hash)
            for message in self._messages(row, message_hash):
                is_answer = message.role == "assistant"
                yield Said(
                    message=message,
                    id=message_hash,
                    at=at,
                    usage=_usage(turn) if message_hash == tip and is_answer else None,
                    model=model if is_answer else "",
                    place=f"message {message_hash[:12]}",
                )

    def _messages(self, row: Mapping[str, Any], message_hash: str) -> Iterator[Message]:
        parts: list[Part | None] = []
        pieces: list[Span] = []
        calls: list[ToolCall | None] = []
        thoughts: list[str] = []
        for part in self._database.rows("parts", {"message_hash": message_hash}, order=("position",)):
            held = object_of(parsed(part.get("payload")))
            kind, text = part.get("type"), text_of(part.get("text"))
            call_id = held.get("tool_call_id") or held.get("name")
            if held.get("server_executed") is True:
                parts.append(as_file(text_of(kind), held, "parts"))
            elif kind == "tool_call":
                calls.append(tool_call(call_id, held.get("name"), held.get("arguments")))
            elif kind == "tool_result":
                output = TextPart(text_of(held.get("output")) or text_of(held.get("exception")))
                beside = [self._attachments.part(one.get("id")) for one in objects_of(held.get("attachments"))]
                is_error = bool(held.get("exception"))
                yield tool_result(call_id, held.get("name"), joined([output, *beside]), is_error=is_error)
            elif kind == "reasoning":
                thoughts.append(text or text_of_words(self._words(held)))
            elif kind == "attachment":
                parts.append(self._attachments.part(object_of(held.get("attachment")).get("id")))
            elif text or row.get("role") != "user":
                parts.append(TextPart(text or text_of_words(self._words(held))))
            else:
                pieces += self._words(held)
        role = row.get("role")
        if role == "assistant":
            message = answer(parts, calls, "\n\n".join(filter(None, thoughts)))
        elif role == "system" and (system := joined(parts)):
            message = Message("system", system)
        elif pieces:
            message = user_message(tuple(pieces), [part for part in parts if part is not None])
        else:
            message = person(joined(parts))
        if message is not None:
            yield message

    def _words(self, held: Mapping[str, Any]) -> Words:
        """The text of a part that shares pieces with others: these are the files and pages that went along."""
        found = [Span(text_of(held.get("text")), "foreign")]
        for piece in objects_of(held.get("text_ref")):
            fragment = piece.get("fragment")
            if isinstance(fragment, int):
                row = next(self._database.rows("fragments", {"id": fragment}), {})
                found.append(Span(text_of(row.get("content")), "attached"))
            found.append(Span(text_of(piece.get("literal")), "foreign"))
        return merged(tuple(found))


def _usage(row: Mapping[str, Any]) -> Usage | None:
    prompt, completion = count_of(row.get("input_tokens")), count_of(row.get("output_tokens"))
    if not prompt and not completion:
        return None
    details = object_of(parsed(row.get("token_details")))
    cached = count_of(object_of(details.get("prompt_tokens_details")).get("cached_tokens"))
    thoughts = count_of(object_of(details.get("completion_tokens_details")).get("reasoning_tokens"))
    return Usage(prompt, completion, cached, reasoning_tokens=thoughts)
