"""Read and write OpenAI's chat messages: a list of them, or an object with `messages`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nca.context.request import repair
from nca.messages import Message
from nca.shapes.shaped import Rows, Written
from nca.wire import message_to_dict, messages_from_list


class OpenAIMessages:
    """Chat messages. They are written anew, because the rows follow from the messages alone."""

    shape = "openai"
    provider = ""

    def __init__(self, given: Any, *, may_be_empty: bool = False) -> None:
        self._given = given if isinstance(given, Mapping) else None
        rows = given["messages"] if self._given else given
        self.messages: list[Message] = [] if may_be_empty and not rows else messages_from_list(rows)
        tools = self._given.get("tools") if self._given else None
        self.tools: list[Any] = tools if isinstance(tools, list) else []

    def repair(self, messages: Sequence[Message], provider: str) -> list[Message]:
        return repair(messages, provider)

    def write(self, messages: Sequence[Message], known: Sequence[Message]) -> Written:
        return Written([message_to_dict(message) for message in messages], list(range(len(messages))))

    def request(self, rows: Rows) -> dict[str, Any] | None:
        return None if self._given is None else {**self._given, "messages": rows}
