"""Build messages of what other agents' files hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

from nca.errors import InvalidMessages
from nca.messages import MediaPart, Message, Part, Source, TextPart, ToolCall, clean_text
from nca.transcripts.formats.authors import text_by, with_authors
from nca.transcripts.formats.records import Record, Said, Unreadable
from nca.transcripts.formats.source import BadLine, decode
from nca.transcripts.formats.source import Source as Given
from nca.transcripts.formats.values import text_of

Content = str | tuple[Part, ...]


def name_of(value: Any) -> str:
    """A text, or a whole number as text: an id may be either. "" for anything else."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else text_of(value)


def as_json(value: Any) -> str:
    """A value as compact JSON with clean text."""
    try:
        return clean_text(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str))
    except (ValueError, RecursionError):
        return "{}"


def shown(value: Any) -> str:
    """A value as text: text as it is, "" for nothing, anything else as JSON."""
    if isinstance(value, str):
        return clean_text(value)
    return "" if value is None else as_json(value)


def parsed(value: Any) -> Any:
    """What a text holds as JSON, None if it is no JSON; other values stay as they are."""
    if not isinstance(value, str | bytes):
        return value
    try:
        return decode(value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return None


def picture(data: Any, media_type: Any = "") -> MediaPart | None:
    """An image from base64 data or from an address, as chat messages have it; None if there is neither."""
    where = text_of(data)
    if not where:
        return None
    if not where.startswith(("data:", "http:", "https:")):
        where = f"data:{text_of(media_type) or 'image/png'};base64,{where}"
    return MediaPart("image", {"type": "image_url", "image_url": {"url": where}})


def document(data: Any, media_type: Any = "", title: Any = "") -> MediaPart | None:
    """A file from base64 data or a data URL, as chat messages have it; None if there is no data."""
    where = text_of(data)
    if not where:
        return None
    if not where.startswith("data:"):
        where = f"data:{text_of(media_type) or 'application/octet-stream'};base64,{where}"
    return MediaPart(
        "document", {"type": "file", "file": {"filename": text_of(title) or "document", "file_data": where}}
    )


def media(data: Any, media_type: Any, title: Any = "") -> MediaPart | None:
    """An image, or for another media type a document."""
    is_image = text_of(media_type).startswith("image/") or text_of(data).startswith("data:image/")
    return picture(data, media_type) if is_image else document(data, media_type, title)


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
    """What stands in the user's role; None if there is nothing. `source` is that of the parts without one."""
    return with_authors(Message("user", content, source=source)) if _has_content(content) else None


def printed(content: Content) -> Message | None:
    """What a program printed, and its agent sent in the user's role; None if there is nothing."""
    parts = (TextPart(content),) if isinstance(content, str) else content
    return person(tuple(text_by("tool", part.text) if isinstance(part, TextPart) else part for part in parts if part))


def command_ran(command: Any, output: Any, code: int) -> str:
    """A command that the person ran, its output, and how it ended."""
    lines = (f"$ {text_of(command)}", text_of(output).rstrip("\n"), f"exit code {code}" if code else "")
    return "\n".join(filter(None, lines))


def answer(
    parts: Sequence[Part | None], calls: Iterable[ToolCall | None] = (), reasoning: str = "", *, was_cut: bool = False
) -> Message | None:
    """An answer of the model; None if it is empty. Calls whose id is not unique in the answer are left out."""
    content = joined(parts)
    kept: dict[str, ToolCall] = {}
    for one in calls:
        if one is not None:
            kept.setdefault(one.id, one)
    if not _has_content(content) and not kept and not reasoning.strip():
        return None
    return Message("assistant", content or None, tuple(kept.values()), reasoning=reasoning, is_interrupted=was_cut)


def _has_content(content: Content) -> bool:
    if isinstance(content, str):
        return bool(content.strip())
    return any(not isinstance(part, TextPart) or part.text.strip() for part in content)


def bad_line(bad: BadLine) -> tuple[Unreadable, ...]:
    """Nothing for a last line without its end: the agent is writing it, or was stopped."""
    return () if bad.is_cut else (Unreadable(f"line {bad.number}", bad.reason),)


def read_rows(source: Given, read: Callable[[dict[str, Any], str], Iterable[Record]]) -> Iterator[Record]:
    """What `read` makes of each row, given its place ("line 12"), and Unreadable for each bad line."""
    for line in source.rows():
        if isinstance(line, BadLine):
            yield from bad_line(line)
        else:
            yield from read(line[1], f"line {line[0]}")


def some_messages(records: Iterable[Record], source: Given, agent: str) -> Iterator[Record]:
    """The records. Raises InvalidMessages if no message is among them; after one, it becomes Unreadable."""
    has_message, problem = False, ""
    try:
        for record in records:
            has_message = has_message or isinstance(record, Said)
            if isinstance(record, Unreadable) and not problem:
                problem = f" ({record.place}: {record.reason})"
            yield record
    except InvalidMessages as error:
        if not has_message:
            raise
        yield Unreadable(source.place, error.message.removeprefix(f"{source.place}: "))
    if not has_message:
        raise InvalidMessages(f"{source.place}: holds no messages of {agent}{problem}.")
