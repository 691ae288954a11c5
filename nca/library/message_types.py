"""Messages as type checkers see them. Every function takes other mappings just as well.

A provider's own keys beyond these are kept where a message is kept; give a message that has some as a plain dict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict

Content = str | Sequence[Mapping[str, Any]]
"""Text, or parts such as {"type": "text", "text": …}."""


class ChatFunction(TypedDict):
    """What a call calls. `arguments`: an object as JSON text."""

    name: str
    arguments: str


class ChatToolCall(TypedDict):
    """A tool call of an assistant's `ChatMessage`."""

    id: str
    type: Literal["function"]
    function: ChatFunction


class ChatMessage(TypedDict):
    """A message in OpenAI's chat shape. A tool's message names the call that it answers by `tool_call_id`."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Content | None
    tool_calls: NotRequired[Sequence[ChatToolCall]]
    tool_call_id: NotRequired[str]
    name: NotRequired[str]


class AnthropicMessage(TypedDict):
    """A message in Anthropic's shape. The system prompt stands beside the messages, calls and results are blocks."""

    role: Literal["user", "assistant"]
    content: Content


class ResponsesItem(TypedDict, total=False):
    """An item of the Responses API: a message (`role`, `content`), a call, its output, or reasoning."""

    type: str
    id: str
    status: str
    role: Literal["system", "developer", "user", "assistant"]
    content: Content
    call_id: str
    name: str
    arguments: str
    input: str
    output: Content
    summary: Sequence[Mapping[str, Any]]
    encrypted_content: str | None
