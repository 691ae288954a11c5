"""Read files that hold many conversations: ChatGPT's export, and data sets for training (ShareGPT).

ChatGPT's `conversations.json` is a list of trees of messages. A message to a tool is a call, and the tool's message
below it is the result. Neither has an id of a call: the id of the message serves as one. Pictures are files of their
own in the export and are only named.

Data sets have `conversations` with `from` and `value`. A file holds one conversation, a JSON list of them, or one a
line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from nca.errors import InvalidMessages
from nca.messages import Message, TextPart, ToolCall
from nca.transcripts.formats import building as make
from nca.transcripts.formats.parent_chain import Branches
from nca.transcripts.formats.records import About, Format, Reading, Record, StoredSession, Unreadable
from nca.transcripts.formats.row import Row, list_of, parsed, row_of, rows_of, text_of
from nca.transcripts.formats.source import BadLine, Source

_EXPORT = re.compile(rb'\A\s*(\[\s*)?\{.*?"mapping"\s*:\s*\{\s*"[^"]+"\s*:\s*\{', re.DOTALL)
_TO_ALL = ("", "all")


class ChatGpt(Format):
    def knows(self, source: Source) -> bool:
        return _EXPORT.search(source.head) is not None and b'"children"' in source.head

    def sessions(self, source: Source) -> Iterable[StoredSession]:
        for key, row in _exported(source):
            at = row.seconds("update_time") or row.seconds("create_time")
            yield self.stored(source, About(title=row.text("title"), at=at), key)

    def records(self, source: Source, key: str) -> Iterator[Record]:
        found = list(_exported(source))
        key = key or self.newest_key(source)
        row = next((row for its_key, row in found if its_key == key), None)
        if row is None:
            raise InvalidMessages(f"{source.place}: holds no conversation {key}.")
        yield About(session=key, title=row.text("title"), model=row.text("default_model_slug"))
        yield from _Tree(row.row("mapping")).of_nodes(row.text("current_node"))


CHATGPT = ChatGpt("chatgpt")


def _exported(source: Source) -> Iterator[tuple[str, Row]]:
    value = source.value()
    for number, row in enumerate(rows_of(value if isinstance(value, list) else [value]), 1):
        if isinstance(row.get("mapping"), dict):
            yield row.first("conversation_id", "id") or str(number), row


class _Tree(Reading):
    def __init__(self, nodes: Row) -> None:
        self._nodes = nodes
        self._branches = Branches()
        self._calls: dict[str, str] = {}
        """The tools that messages call, by the id of the message."""

    def of_nodes(self, current: str) -> Iterator[Record]:
        for node_id in self._in_order():
            self.id, self.place = node_id, f"message {node_id}"
            node = row_of(self._nodes[node_id])
            self._branches.add(node_id, node.text("parent"))
            if isinstance(node.get("message"), dict):
                yield from self._message(node.row("message"))
            elif node.get("message") is not None:
                yield self.unreadable("is not a JSON object")
        yield from self._branches.live(current if current in self._nodes else "")

    def _in_order(self) -> list[str]:
        """All nodes, each before its children, branch by branch."""
        children: dict[str, list[str]] = {}
        roots: list[str] = []
        for node_id, node in self._nodes.items():
            parent = text_of(row_of(node).get("parent"))
            (children.setdefault(parent, []) if parent in self._nodes else roots).append(node_id)
        order: dict[str, None] = {}
        waiting = list(reversed(roots)) or list(self._nodes)[:1]
        while waiting:
            node_id = waiting.pop()
            if node_id not in order:
                order[node_id] = None
                waiting.extend(reversed(children.get(node_id, [])))
        return [*order, *(node_id for node_id in self._nodes if node_id not in order)]

    def _message(self, row: Row) -> Iterator[Record]:
        role, self.at = row.text("author", "role"), row.seconds("create_time")
        content = row.row("content")
        thoughts = _thoughts(content)
        said = "" if thoughts else _text(content)
        message: Message | None = None
        if role == "assistant":
            message = self._answer(row, said, thoughts)
        elif role == "tool":
            message = self._result(row, said)
        elif role == "user":
            hidden = row.value("metadata", "is_visually_hidden_from_conversation") is True
            # The person's text for every conversation is hidden as well.
            is_own = not hidden or content.get("content_type") == "user_editable_context"
            message = make.person(said, "typed" if is_own else "nca")
        elif role == "system":
            message = Message("system", said) if said.strip() else None
        else:
            yield self.unreadable("is a message without a known author")
        yield from self.said(message, model=row.text("metadata", "model_slug"))

    def _answer(self, row: Row, said: str, thoughts: str) -> Message | None:
        recipient = row.text("recipient")
        if recipient in _TO_ALL:
            return make.answer([TextPart(said)], (), thoughts)
        self._calls[self.id] = recipient
        return make.answer([], [make.tool_call(self.id, recipient, make.as_json({"input": said}))], thoughts)

    def _result(self, row: Row, said: str) -> Message | None:
        """The result of the call above it. What a tool says more than once, and unasked, is a message of its own."""
        name = row.text("author", "name")
        parent = text_of(row_of(self._nodes.get(self.id)).get("parent"))
        if parent in self._calls:
            failed = row.value("metadata", "aggregate_result", "status")
            is_error = failed == "failed_with_in_kernel_exception"
            return make.tool_result(parent, self._calls.pop(parent), said, is_error=is_error)
        return make.printed(f"[{name or 'tool'}]\n{said}") if said.strip() else None


def _text(content: Row) -> str:
    """The text of a message, whatever its type; a picture or a file is named."""
    found = [one if isinstance(one, str) else _named(row_of(one)) for one in list_of(content.get("parts"))]
    more = [content.get(key) for key in ("text", "result", "user_profile", "user_instructions")]
    return "\n".join(filter(None, [*map(text_of, found), *map(text_of, more)]))


def _named(part: Row) -> str:
    if said := part.text("text"):
        return said
    where = part.name("asset_pointer") or part.name("name")
    return f"[{text_of(part.get('content_type')) or 'file'} {where}]" if where else ""


def _thoughts(content: Row) -> str:
    if content.get("content_type") == "thoughts":
        said = ((one.text("summary"), one.text("content")) for one in content.rows("thoughts"))
        return "\n\n".join("\n".join(filter(None, one)) for one in said)
    return content.text("content") if content.get("content_type") == "reasoning_recap" else ""


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
            yield from _Talk().of_conversation(row, place)
            return
        if key:
            raise InvalidMessages(f"{source.place}: holds no conversation {key}.")


SHAREGPT = ShareGpt("sharegpt")


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


class _Talk(Reading):
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
