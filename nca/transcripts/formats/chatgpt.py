"""Read ChatGPT's export: `conversations.json`, a list of conversations that are trees of messages.

A message to a tool is a call, and the tool's message below it is the result. Neither has an id of a call: the id of the
message serves as one. Pictures are files of their own in the export and are only named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from nca.errors import InvalidMessages
from nca.messages import Message, TextPart
from nca.transcripts.formats import building as make
from nca.transcripts.formats.parent_chain import Branches
from nca.transcripts.formats.records import About, Format, Reading, Record, StoredSession
from nca.transcripts.formats.row import Row, list_of, row_of, rows_of, text_of
from nca.transcripts.formats.source import Source

_BEGINNING = re.compile(rb'\A\s*(\[\s*)?\{.*?"mapping"\s*:\s*\{\s*"[^"]+"\s*:\s*\{', re.DOTALL)
_TO_ALL = ("", "all")


class ChatGpt(Format):
    def knows(self, source: Source) -> bool:
        return _BEGINNING.search(source.head) is not None and b'"children"' in source.head

    def sessions(self, source: Source) -> Iterable[StoredSession]:
        for key, row in _conversations(source):
            at = row.seconds("update_time") or row.seconds("create_time")
            yield self.stored(source, About(title=row.text("title"), at=at), key)

    def records(self, source: Source, key: str) -> Iterator[Record]:
        found = list(_conversations(source))
        key = key or self.newest_key(source)
        row = next((row for its_key, row in found if its_key == key), None)
        if row is None:
            raise InvalidMessages(f"{source.place}: holds no conversation {key}.")
        yield About(session=key, title=row.text("title"), model=row.text("default_model_slug"))
        yield from _Reading(row.row("mapping")).of_nodes(row.text("current_node"))


FORMAT = ChatGpt("chatgpt")


def _conversations(source: Source) -> Iterator[tuple[str, Row]]:
    value = source.value()
    for number, row in enumerate(rows_of(value if isinstance(value, list) else [value]), 1):
        if isinstance(row.get("mapping"), dict):
            yield row.first("conversation_id", "id") or str(number), row


class _Reading(Reading):
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
