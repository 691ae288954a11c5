"""Read conversations as data sets for training hold them (ShareGPT): `conversations` with `from` and `value`.

A file holds one conversation, a JSON list of them, or one a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from nca.errors import InvalidMessages
from nca.messages import Message, ToolCall
from nca.transcripts.formats import building as make
from nca.transcripts.formats.records import About, Format, Reading, Record, StoredSession, Unreadable
from nca.transcripts.formats.row import Row, list_of, parsed, row_of, rows_of
from nca.transcripts.formats.source import BadLine, Source

_BEGINNING = re.compile(rb'\A\s*(\[\s*)?\{.*?"conversations"\s*:\s*\[\s*\{\s*"(from|value)"\s*:', re.DOTALL)
_ROLES = {
    **dict.fromkeys(("human", "user"), "user"),
    **dict.fromkeys(("gpt", "assistant", "model", "bard", "bing", "chatgpt"), "assistant"),
    "system": "system",
    **dict.fromkeys(("function_call", "tool_call"), "call"),
    **dict.fromkeys(("observation", "function_response", "tool"), "tool"),
}


class ShareGpt(Format):
    def knows(self, source: Source) -> bool:
        return _BEGINNING.search(source.head) is not None

    def sessions(self, source: Source) -> Iterable[StoredSession]:
        found = [(key, row) for _, key, row in _conversations(source) if row is not None]
        for key, row in found:
            yield self.stored(source, About(title=row.text("title")), key if len(found) > 1 else "")

    def records(self, source: Source, key: str) -> Iterator[Record]:
        for place, its_key, row in _conversations(source):
            if row is None:
                if not key:
                    yield Unreadable(place, "is not a conversation")
                continue
            if key and its_key != key:
                continue
            yield About(session=its_key, title=row.text("title"), model=row.text("model"))
            yield from _Reading().of_conversation(row, place)
            return
        if key:
            raise InvalidMessages(f"{source.place}: holds no conversation {key}.")


FORMAT = ShareGpt("sharegpt")


def _conversations(source: Source) -> Iterator[tuple[str, str, Row | None]]:
    """Each conversation with its place and its key; None for what is none."""
    rows: Iterable[Any]
    if source.head.lstrip()[:1] == b"[" or not source.first_rows:
        value = source.value()
        rows = value if isinstance(value, list) else [value]
    else:
        rows = (line if isinstance(line, BadLine) else line[1] for line in source.rows())
    keys = set[str]()
    for number, given in enumerate(rows, 1):
        row = row_of(given)
        if not isinstance(row.get("conversations"), list):
            yield f"conversation {number}", "", None
            continue
        key = row.name("id") or str(number)
        key = f"{key} ({number})" if key in keys else key
        keys.add(key)
        yield f"conversation {number}", key, row


class _Reading(Reading):
    """Results have no ids in this shape: each answers the oldest call that still waits."""

    def __init__(self) -> None:
        self._open: list[ToolCall] = []

    def of_conversation(self, row: Row, place: str) -> Iterator[Record]:
        self.place = place
        if system := row.text("system"):
            yield from self.said(Message("system", system))
        for number, one in enumerate(map(row_of, list_of(row.get("conversations"))), 1):
            self.place = f"{place}, message {number}"
            if role := _ROLES.get(one.text("from").lower()):
                yield from self.said(self._message(role, one.get("value"), number))
            else:
                yield self.unreadable("is a message without a known sender")

    def _message(self, role: str, value: Any, number: int) -> Message | None:
        said = make.shown(value)
        if role == "user":
            return make.person(said)
        if role == "call":
            rows = parsed(value)
            made = [
                make.tool_call(f"call-{number}-{place}", one.get("name"), one.get("arguments", one.get("parameters")))
                for place, one in enumerate(rows_of(rows if isinstance(rows, list) else [rows]), 1)
            ]
            calls = tuple(call for call in made if call is not None)
            self._open += calls
            return Message("assistant", None, calls) if calls else Message("assistant", said) if said else None
        if role == "tool":
            if not self._open:
                return make.printed(said)
            call = self._open.pop(0)
            return make.tool_result(call.id, call.name, said)
        return Message("system" if role == "system" else "assistant", said) if said.strip() else None
