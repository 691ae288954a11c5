"""Messages: roles, parts, tool calls, log entries and token usage.

The garbage collector does not look at what a log holds (gc=False): what never changes is never part of a cycle.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import msgspec

from nca.humanize import clean_text as clean_text
from nca.words import Source as Source
from nca.words import Span, Words, merged, text_of

Role = Literal["system", "user", "assistant", "tool"]

_IMPLIED: dict[Role, Source] = {"system": "nca", "user": "foreign", "assistant": "model", "tool": "tool"}


NAME_CHARS = 80
_NAMED_BY = ("filename", "title", "url", "file_url", "image_url")


class TextPart(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="text"):
    """Text. `extra` holds a provider's own keys of the part, such as cache_control.

    source  who said it; "": the source of its message. Parts with a source of their own follow each other
            without a space
    """

    text: str
    extra: dict[str, Any] = {}
    source: Source | Literal[""] = ""


class AttachmentPart(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="attachment"):
    """A file that goes with a message: an attached file, piped text, or a command's output.

    text            as much of it as was admitted
    original_bytes  the size of all of it
    source          its origin
    """

    path: str
    text: str
    original_bytes: int
    is_cut: bool = False
    source: Source = "attached"


class MediaPart(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="media"):
    """An image, document or audio clip; `payload` is the provider-shaped part, never counted as text."""

    kind: Literal["image", "document", "audio"]
    payload: dict[str, Any]

    @property
    def name(self) -> str:
        """The file's name, its title, or the end of its address; "" if the part has none."""
        inside = [self.payload, *(value for value in self.payload.values() if isinstance(value, dict))]
        named = (one.get(key) for key in _NAMED_BY for one in inside)
        found = next((one for one in named if isinstance(one, str) and one and not one.startswith("data:")), "")
        return " ".join(found.partition("?")[0].rstrip("/").rpartition("/")[2].split())[:NAME_CHARS]


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


SIGNED_THOUGHTS = "thinking_blocks"
"""litellm's key in `extra` for a model's signed thoughts."""


class Message(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One message of a conversation. Immutable.

    content          text, a tuple of parts, or None (an assistant message with only tool calls)
    tool_call_id     on a tool message: the id of its call
    name             on a tool message: the tool's name; otherwise the optional participant name
    reasoning        the model's reasoning, if the provider sends it
    is_error         on a tool message: the tool failed
    asks_to_read     on a tool message: the tool refused a change because the model has not read the file as it is now
    is_interrupted   an answer that the user or a crash cut short
    source           who said it, unless a part says otherwise; "": the role implies it
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
    asks_to_read: bool = False
    is_interrupted: bool = False
    source: Source | Literal[""] = ""
    extra: dict[str, Any] = {}
    made_by: str = ""

    @property
    def is_synthetic(self) -> bool:
        """nca wrote it, not the user or a model."""
        return self.source == "nca"

    @property
    def text(self) -> str:
        """The text that the user or the model wrote, without attachments, media and reminders."""
        content = self.content
        if isinstance(content, str):
            return content
        return text_of(self.said)

    @property
    def lines(self) -> list[str]:
        """The lines of its text and of its attached files, as a person counts them: without the tags around these."""
        return [line for text in (self.text, *(part.text for part in self.attachments)) for line in text.splitlines()]

    @property
    def said(self) -> Words:
        """The same with who said each part."""
        implied, content = self.source or _IMPLIED[self.role], self.content
        if isinstance(content, str):
            return (Span(content, implied),)
        found: list[Span] = []
        is_own = False
        for part in content or ():
            if isinstance(part, TextPart) and part.source != "nca":
                # Parts with sources of their own follow each other as they were handed in.
                if found and not (part.source and is_own):
                    found.append(Span("\n", implied))
                is_own = bool(part.source)
                found.append(Span(part.text, part.source or implied))
        return tuple(found)

    @property
    def marks(self) -> tuple[str, ...]:
        """A mark such as `[image: plan.png]` for each picture, document or clip."""
        found: list[str] = []
        before = ""
        for part in self.content if isinstance(self.content, tuple) else ():
            if isinstance(part, MediaPart):
                name = part.name or before
                found.append(f"[{part.kind}: {name}]" if name else f"[{part.kind}]")
            is_name = isinstance(part, TextPart) and part.source == "nca" and len(part.text) <= NAME_CHARS
            before = part.text.strip("[]") if is_name and isinstance(part, TextPart) else ""
        return tuple(found)

    @property
    def told(self) -> str:
        """Its text and its marks: what a record, a list and a search have of it."""
        return "\n".join(filter(None, (self.text, *self.marks))) if isinstance(self.content, tuple) else self.text

    @property
    def attachments(self) -> tuple[AttachmentPart, ...]:
        if isinstance(self.content, tuple):
            return tuple(part for part in self.content if isinstance(part, AttachmentPart))
        return ()


def user_message(said: Words, beside: Sequence[Part] = ()) -> Message:
    """The user's message, with its attachments. A pasted text stays a part, so that the model sees where it ends."""
    own = tuple(TextPart(span.text, source=span.source) for span in merged(said))
    if len(own) <= 1 and not beside and "pasted" not in [part.source for part in own]:
        said = merged(said) or said
        return Message("user", text_of(said), source=said[0].source if said else "")
    return Message("user", (*own, *beside))


def with_tool_names(messages: Iterable[Message]) -> Iterator[Message]:
    """The messages; a result without a name has the name of the tool that was called."""
    names: dict[str, str] = {}
    for message in messages:
        names.update((call.id, call.name) for call in message.tool_calls)
        if message.role == "tool" and not message.name and message.tool_call_id in names:
            yield msgspec.structs.replace(message, name=names[message.tool_call_id])
        else:
            yield message


class Entry(msgspec.Struct, frozen=True, gc=False, eq=False):
    """A message in the log. `seq` counts from 1 without gaps and defines the order."""

    seq: int
    message: Message
    at: float = 0.0
    """Seconds since the epoch, for display only."""
    tokens: int | None = None
    """The message's tokens by `nca.context.tokens`, if stored with it. Not part of the entry's identity."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Entry):
            return NotImplemented
        return (self.seq, self.message, self.at) == (other.seq, other.message, other.at)

    def __hash__(self) -> int:
        # Without the message: what its provider added to it are dicts, which have none.
        return hash((self.seq, self.at))


class ResponseFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """The provider's facts about its answer, in its own words. A field that it did not report is left out of JSON."""

    model: str = ""
    id: str = ""
    finish_reasons: tuple[str, ...] = ()


class Server(msgspec.Struct, frozen=True):
    """The host and port of the endpoint that a request goes to."""

    address: str
    port: int


class Usage(msgspec.Struct, frozen=True):
    """Token counts that a provider reported for one request.

    prompt_tokens  includes cache reads and writes
    cost           US dollars; None if unknown
    """

    prompt_tokens: int
    completion_tokens: int
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float | None = None

    def __add__(self, other: Usage) -> Usage:
        """The sum of both; the cost is the sum of those that are known."""
        *counts, costs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        known = [cost for cost in costs if cost is not None]
        sums: list[Any] = [*map(sum, counts), sum(known) if known else None]
        return Usage(*sums)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the garbage collector: its passes over many rows of JSON that all stay cost more than they could free."""
    was_enabled = gc.isenabled()
    if was_enabled:
        gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
