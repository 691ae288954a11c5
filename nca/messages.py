"""The nouns everyone shares: a message, its parts, its tool calls, its place in the log."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from nca.surrogates import clean_text as clean_text

Role = Literal["system", "user", "assistant", "tool"]


class TextPart(msgspec.Struct, frozen=True, tag_field="type", tag="text"):
    """A stretch of text. `extra` holds a provider's own keys of the part (such as cache_control).

    is_synthetic  added by nca to what a person wrote (a reminder): sent, but not the person's word
    """

    text: str
    extra: dict[str, Any] = {}
    is_synthetic: bool = False


class AttachmentPart(msgspec.Struct, frozen=True, tag_field="type", tag="attachment"):
    """A file brought in with `@path`: what of its text was admitted, and how large the whole was."""

    path: str
    text: str
    original_bytes: int
    is_cut: bool = False


class MediaPart(msgspec.Struct, frozen=True, tag_field="type", tag="media"):
    """An image, document or sound; `payload` is the provider-shaped part, never counted as text."""

    kind: Literal["image", "document", "audio"]
    payload: dict[str, Any]


Part = TextPart | AttachmentPart | MediaPart


class ToolCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """The model's wish to run a tool. `arguments` is the JSON text exactly as the model wrote it.

    extra    a provider's other keys of the call (such as Gemini's thought signatures), kept and sent back to the model
             that gave them; those inside of `function` stand under that key
    made_by  the model that gave `extra`, "" where that is not known
    """

    id: str
    name: str
    arguments: str
    extra: dict[str, Any] = {}
    made_by: str = ""


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message of a conversation; never changed once made.

    content          text, a tuple of parts, or None (an assistant that only calls tools)
    tool_call_id     on a tool message: the call that it answers
    name             on a tool message: the tool's name; else the provider's optional participant name
    reasoning        what the model thought, where the provider tells it
    is_error         on a tool message: the tool failed
    is_interrupted   an answer that was cut short by the user or by a crash
    is_synthetic     made by nca, not by a person or a model
    extra            a provider's other keys (such as signed thoughts), kept and sent back
    made_by          the model that gave `extra`, and the only one that gets it back; "": not known, and anyone's
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
        """All text a person wrote or a model answered; attachments, media and reminders left out."""
        match self.content:
            case None:
                return ""
            case str():
                return self.content
            case _:
                return "\n".join(
                    part.text for part in self.content if isinstance(part, TextPart) and not part.is_synthetic
                )

    @property
    def attachments(self) -> tuple[AttachmentPart, ...]:
        if isinstance(self.content, tuple):
            return tuple(part for part in self.content if isinstance(part, AttachmentPart))
        return ()


class Entry(msgspec.Struct, frozen=True):
    """A message in the log. `seq` counts from 1 without gaps; order is by seq, never by clock."""

    seq: int
    message: Message
    at: float = 0.0
    """Seconds since the epoch, for people only."""


class Usage(msgspec.Struct, frozen=True):
    """What a provider reported for one call, in tokens; `cost` in US dollars, None where unknown.

    prompt_tokens counts the whole request, cache reads and writes included.
    """

    prompt_tokens: int
    completion_tokens: int
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float | None = None
