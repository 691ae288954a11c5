"""Messages: roles, parts, tool calls, log entries and token usage.

The garbage collector does not look at what a log holds (gc=False): what never changes is never part of a cycle.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from nca.surrogates import clean_text as clean_text

Role = Literal["system", "user", "assistant", "tool"]


class TextPart(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="text"):
    """Text. `extra` holds a provider's own keys of the part, such as cache_control.

    is_synthetic  nca added it to the user's message (a reminder): sent, but not written by the user
    """

    text: str
    extra: dict[str, Any] = {}
    is_synthetic: bool = False


class AttachmentPart(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="attachment"):
    """A file attached with `@path`: the text that was admitted, and the size of the whole file."""

    path: str
    text: str
    original_bytes: int
    is_cut: bool = False


class MediaPart(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="media"):
    """An image, document or audio clip; `payload` is the provider-shaped part, never counted as text."""

    kind: Literal["image", "document", "audio"]
    payload: dict[str, Any]


Part = TextPart | AttachmentPart | MediaPart


class ToolCall(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A tool call. `arguments` is the JSON text exactly as the model wrote it.

    extra    a provider's other keys of the call, such as Gemini's thought signatures; sent back only to the model that
             set them. Keys inside `function` are kept under "function".
    made_by  the model that set `extra`; "" if unknown
    """

    id: str
    name: str
    arguments: str
    extra: dict[str, Any] = {}
    made_by: str = ""


class Message(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One message of a conversation. Immutable.

    content          text, a tuple of parts, or None (an assistant message with only tool calls)
    tool_call_id     on a tool message: the id of its call
    name             on a tool message: the tool's name; otherwise the optional participant name
    reasoning        the model's reasoning, if the provider sends it
    is_error         on a tool message: the tool failed
    is_interrupted   an answer that the user or a crash cut short
    is_synthetic     written by nca, not by the user or a model
    extra            a provider's other keys, such as signed thinking blocks; stored and sent back
    made_by          the model that set `extra`, and the only one it is sent back to; "" sends it to any model
    """

    role: Role
    content: str | tuple[Part, ...] | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    name: str = ""
    reasoning: str = ""
    is_error: bool = False
    is_interrupted: bool = False
    is_synthetic: bool = False
    extra: dict[str, Any] = {}
    made_by: str = ""

    @property
    def text(self) -> str:
        """The text that the user or the model wrote, without attachments, media and reminders."""
        content = self.content
        if isinstance(content, str):
            return content
        if content is None:
            return ""
        return "\n".join(part.text for part in content if isinstance(part, TextPart) and not part.is_synthetic)

    @property
    def attachments(self) -> tuple[AttachmentPart, ...]:
        if isinstance(self.content, tuple):
            return tuple(part for part in self.content if isinstance(part, AttachmentPart))
        return ()


class Entry(msgspec.Struct, frozen=True, gc=False):
    """A message in the log. `seq` counts from 1 without gaps and defines the order."""

    seq: int
    message: Message
    at: float = 0.0
    """Seconds since the epoch, for display only."""


class Usage(msgspec.Struct, frozen=True):
    """Token counts that a provider reported for one request; `cost` in US dollars, None if unknown.

    prompt_tokens includes cache reads and writes.
    """

    prompt_tokens: int
    completion_tokens: int
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float | None = None

    def __add__(self, other: Usage) -> Usage:
        """The sum of both; the cost is the sum of those that are known."""
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            sum(costs) if costs else None,
        )
