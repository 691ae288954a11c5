"""Build messages from other agents' files, with the source of each part of a message that is stored as the user's.

Results and a program's additions have the user's role as well. A reader gives each part of such a message its source;
where a format does not tell, a part has none. A message without a word of the person is the program's: no turn begins
with it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any, Literal, TypeGuard

import msgspec

from nca.messages import SIGNED_THOUGHTS, AttachmentPart, MediaPart, Message, Part, TextPart, ToolCall, clean_text
from nca.shapes.shaped import as_chat_message
from nca.transcripts.formats.row import Row, name_of, row_of, rows_of, text_of
from nca.words import Source

Content = str | tuple[Part, ...]


def as_json(value: Any) -> str:
    """A value as compact JSON with clean text."""
    with suppress(TypeError, ValueError, OverflowError, RecursionError):
        return msgspec.json.encode(value).decode()
    try:
        return clean_text(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str))
    except (ValueError, RecursionError):
        return "{}"


def shown(value: Any) -> str:
    """A value as text: text as it is, "" for nothing, anything else as JSON."""
    if isinstance(value, str):
        return clean_text(value)
    return "" if value is None else as_json(value)


def picture(data: Any, media_type: Any = "") -> MediaPart | None:
    """An image from base64 data or from an address, as chat messages have it; None if there is neither."""
    where = text_of(data)
    if not where:
        return None
    if not where.startswith(("data:", "http:", "https:")):
        where = f"data:{text_of(media_type) or 'image/png'};base64,{where}"
    return MediaPart("image", {"type": "image_url", "image_url": {"url": where}})


def media(data: Any, media_type: Any, title: Any = "") -> MediaPart | None:
    """An image, or for another media type a file from base64 data or a data URL; None if there is no data."""
    where = text_of(data)
    if text_of(media_type).startswith("image/") or where.startswith("data:image/"):
        return picture(data, media_type)
    if not where:
        return None
    if not where.startswith("data:"):
        where = f"data:{text_of(media_type) or 'application/octet-stream'};base64,{where}"
    return MediaPart(
        "document", {"type": "file", "file": {"filename": text_of(title) or "document", "file_data": where}}
    )


def joined(parts: Sequence[Part | None]) -> Content:
    """The content of a message: texts alone become one text, unless a part has a source of its own."""
    found = [part for part in parts if part is not None and (not isinstance(part, TextPart) or part.text)]
    if all(isinstance(part, TextPart) and not part.source for part in found):
        return "\n\n".join(part.text for part in found if isinstance(part, TextPart))
    return tuple(found)


def tool_call(call_id: Any, tool: Any, arguments: Any) -> ToolCall | None:
    """A tool call; None without an id or a name. `arguments` are an object, or JSON as text."""
    if not name_of(call_id) or not text_of(tool):
        return None
    written = clean_text(arguments) if isinstance(arguments, str) else as_json({} if arguments is None else arguments)
    return ToolCall(name_of(call_id), text_of(tool), written or "{}")


def tool_result(call_id: Any, tool: Any, content: Content, *, is_error: bool = False) -> Message:
    return Message(
        "tool", content or "(no output)", tool_call_id=name_of(call_id), name=text_of(tool), is_error=is_error
    )


def person(content: Content, source: Source | Literal[""] = "") -> Message | None:
    """A message in the user's role; None if it is empty. `source` is that of the parts without one."""
    return with_authors(Message("user", content, source=source)) if has_content(content) else None


def printed(content: Content) -> Message | None:
    """A program's output that the agent sent in the user's role; None if it is empty."""
    parts = (TextPart(content),) if isinstance(content, str) else content
    return person(tuple(text_by("tool", part.text) if isinstance(part, TextPart) else part for part in parts if part))


def command_ran(command: Any, output: Any, code: int) -> str:
    """A command that the person ran, its output, and how it ended."""
    lines = (f"$ {text_of(command)}", text_of(output).rstrip("\n"), f"exit code {code}" if code else "")
    return "\n".join(filter(None, lines))


def answer(
    parts: Sequence[Part | None], calls: Iterable[ToolCall | None], *thoughts: str, was_cut: bool = False
) -> Message | None:
    """An answer of the model; None if it is empty. Calls without a unique id in the answer are left out."""
    content, reasoning = joined(parts), "\n\n".join(filter(None, thoughts))
    kept: dict[str, ToolCall] = {}
    for one in calls:
        if one is not None:
            kept.setdefault(one.id, one)
    if not has_content(content) and not kept and not reasoning.strip():
        return None
    return Message("assistant", content or None, tuple(kept.values()), reasoning=reasoning, is_interrupted=was_cut)


def has_content(content: Content) -> bool:
    if isinstance(content, str):
        return bool(content.strip())
    return any(not isinstance(part, TextPart) or part.text.strip() for part in content)


class Blocks(msgspec.Struct):
    """What the blocks of a message hold, whoever said it. `content`: its texts, pictures and files, in their order."""

    content: list[Part] = []
    calls: list[ToolCall] = []
    thoughts: list[str] = []
    results: list[Message] = []

    def add(self, found: Part | ToolCall | Message | None) -> None:
        """Add a part, a call or a result; nothing for what is none."""
        if isinstance(found, ToolCall):
            self.calls.append(found)
        elif isinstance(found, Message):
            self.results.append(found)
        elif found is not None:
            self.content.append(found)

    @property
    def said(self) -> Content:
        return joined(self.content)

    def answer(self, *, was_cut: bool = False) -> Message | None:
        return answer(self.content, self.calls, *self.thoughts, was_cut=was_cut)

    def system(self) -> Message | None:
        return Message("system", self.said) if self.said else None


_OF_A_PROGRAM = ("nca", "tool")
_GAP = "\n\n"
"""Between blocks of text. Parts with sources of their own follow each other without a space."""


def text_by(source: Source, text: str) -> TextPart:
    return TextPart(text, source=source)


def attached(name: str, text: str) -> AttachmentPart:
    """The content of a file, a page or a folder that the person mentioned."""
    return AttachmentPart(name, text, len(text.encode("utf-8", "replace")))


def with_authors(message: Message) -> Message:
    """The message as nca stores it: one source for all of it where there is one, else a source for each part.

    The message's own source applies to the parts that have none.
    """
    content = message.content
    if message.role != "user" or not isinstance(content, tuple) or not _sources(content):
        return message
    own = message.source or "foreign"
    content = tuple(text_by(own, one.text) if isinstance(one, TextPart) and not one.source else one for one in content)
    found = _sources(content)
    if len(found) == 1 and all(isinstance(part, TextPart) for part in content):
        (only,) = found
        if only != "tool":
            return msgspec.structs.replace(message, content=_GAP.join(_texts(content)), source=only)
    is_of_program = found <= {*_OF_A_PROGRAM} and not any(isinstance(part, AttachmentPart) for part in content)
    return msgspec.structs.replace(message, content=_spaced(content), source="nca" if is_of_program else "")


def typed_after(lead: str, typed: str, rest: str = "") -> tuple[Part, ...]:
    """The content of a result with what the person typed about the call between what the program wrote."""
    parts = (TextPart(lead.strip()), TextPart(typed.strip(), source="typed"), TextPart(rest.strip()))
    return tuple(part for part in parts if part.text)


def _sources(content: tuple[Part, ...]) -> set[str]:
    return {part.source for part in content if isinstance(part, TextPart) and part.source}


def _texts(content: tuple[Part, ...]) -> list[str]:
    return [part.text for part in content if isinstance(part, TextPart)]


def _spaced(content: tuple[Part, ...]) -> tuple[Part, ...]:
    """The parts with a gap between two texts that nca would put together without one."""
    found: list[Part] = []
    for part in content:
        before = found[-1] if found else None
        if _has_source(part) and _has_source(before):
            found[-1] = msgspec.structs.replace(before, text=before.text + _GAP)
        found.append(part)
    return tuple(found)


def _has_source(part: Part | None) -> TypeGuard[TextPart]:
    return isinstance(part, TextPart) and part.source not in ("", "nca")


_THOUGHTS = ("thinking", "redacted_thinking")
"""Of Anthropic's blocks, which several agents store. Unlike `nca.shapes`, what follows refuses none: one that is not
known, or not as it should be, becomes text that says what it holds."""


def blocks_of(content: Any) -> list[Row]:
    """The blocks of a content, which may be a text."""
    if isinstance(content, str):
        return [Row(type="text", text=content)] if content else []
    if isinstance(content, dict):
        return [Row(content)]
    return rows_of(content)


def user_message(parts: Iterable[Part], *, source: Source | Literal[""] = "") -> Message:
    return as_chat_message(Message("user", tuple(parts), source=source))


def user_messages(
    blocks: Iterable[Row], names: Mapping[str, str], said: Callable[[list[Part]], Message] = user_message
) -> list[Message]:
    """The messages of a user's row: each result is one, and so is the text before, between and after them.

    names  the tools by the ids of their calls
    said   makes the message of parts that are not a result
    """
    found: list[Message] = []
    for answered, run in groupby(blocks, _answered):
        given = list(run)
        found += [_result(answered, names, one) for one in given] if answered else [said([*map(part_of, given)])]
    return found


def _answered(block: Row) -> str:
    """The id of the call whose result a block is; "" for another block."""
    return block.text("tool_use_id") if block.get("type") == "tool_result" else ""


def _result(answered: str, names: Mapping[str, str], block: Row) -> Message:
    given, is_error = block.get("content"), bool(block.get("is_error"))
    content = text_of(given) if isinstance(given, str) else tuple(map(part_of, blocks_of(given)))
    shown = content if has_content(content) else ""
    return as_chat_message(tool_result(answered, names.get(answered), shown, is_error=is_error))


def answer_message(blocks: Iterable[Row], model: str) -> Message:
    """An answer: its text, calls, and thoughts with their signatures."""
    found, thoughts = Blocks(), list[Row]()
    for block in blocks:
        if block.get("type") in _THOUGHTS:
            thoughts.append(block)
            continue
        is_call = block.get("type") == "tool_use"
        call = tool_call(block.get("id"), block.get("name"), block.get("input")) if is_call else None
        found.add(call or part_of(block))
    parts, calls = tuple(found.content), tuple(found.calls)
    if not thoughts:
        return as_chat_message(Message("assistant", parts or None, calls))
    reasoning = "\n\n".join(text for thought in thoughts if (text := thought.text("thinking")))
    if not parts and not calls:
        # It was stopped while it thought: nothing was said, and nothing of it is sent again.
        return Message("assistant", reasoning=clean_text(reasoning))
    signed = [dict(thought) for thought in thoughts if thought.get("signature") or thought.get("data")]
    message = as_chat_message(Message("assistant", parts or None, calls))
    extra = {SIGNED_THOUGHTS: signed} if signed else {}
    return msgspec.structs.replace(
        message, reasoning="" if signed else reasoning, extra=extra, made_by=clean_text(model) if extra else ""
    )


def part_of(block: Row) -> Part:
    kind, text = block.get("type"), block.get("text")
    if kind in ("text", "input_text", "output_text", None) and isinstance(text, str):
        return TextPart(clean_text(text))
    source = row_of(block.get("source"))
    data, address = source.get("data"), source.get("url")
    if kind == "image" and (
        (isinstance(data, str) and isinstance(source.get("media_type"), str)) or isinstance(address, str)
    ):
        return MediaPart("image", {"type": "image", "source": block["source"]})
    if kind == "document" and isinstance(data, str):
        if source.get("type") == "text":
            return TextPart(clean_text(data))
        if source.get("type") == "base64":
            return MediaPart("document", {**block})
    return attached(text_of(kind) or "block", as_json(block))
