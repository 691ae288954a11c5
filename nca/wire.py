"""Convert messages to and from OpenAI-shaped dicts.

Input is validated and never modified. Keys that start with `_` are annotations of a transcript (`_usage`, `_error`),
and rows whose role starts with `_` are notes between messages: neither is sent to a provider.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, Literal, cast, get_args

import msgspec

from nca.errors import InvalidMessages
from nca.humanize import check_choice, check_kind, kind_name, shown_value
from nca.messages import AttachmentPart, MediaPart, Message, Part, TextPart, ToolCall, clean_text
from nca.words import Source, Span, Words, words

OBJECT = (dict, Mapping)
"""What `isinstance` asks of a row: nearly all are dicts, and an abstract class answers ten times as slowly."""
ROLES = ("system", "developer", "user", "assistant", "tool")
_OWN_KEYS = {"role", "content", "tool_calls", "tool_call_id", "tool_call_ids", "name", "reasoning_content"}
_CALL_KEYS = {"id", "type", "function", "index"}
"""Streamed calls have an `index`; providers refuse requests that contain it."""
_FUNCTION_KEYS = {"name", "arguments"}
CUSTOM = "custom"
_FLAGS = {"_error": "is_error", "_asks_to_read": "asks_to_read", "_interrupted": "is_interrupted"}
_SOURCES: frozenset[str] = frozenset(get_args(Source))


def messages_from_list(rows: Any) -> list[Message]:
    """Read a list of OpenAI-shaped dicts. Raises InvalidMessages naming the place and what is valid."""
    if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):
        raise InvalidMessages(f"messages: expected a list of messages, found {kind_name(rows)}.")
    read: list[Message] = []
    for index, row in enumerate(rows):
        message = _usual_message(row)
        if message is not None:
            read.append(message)
        elif not is_note(row):
            read.append(_any_message(row, index))
    if not read:
        raise InvalidMessages("messages: the list is empty; expected at least one message.")
    return read


def message_from_dict(row: Any, index: int = 0) -> Message:
    """Read one message; `index` (from 0) names its place in errors."""
    return _usual_message(row) or _any_message(row, index)


def _usual_message(row: Any) -> Message | None:
    """What `_any_message` gives for a row with nothing but text and usual calls; None for any other.

    Nearly all rows of a long conversation are so, and most of the time is saved by asking nothing else of them.
    """
    if type(row) is not dict:
        return None
    role, content, keys = row.get("role"), row.get("content"), len(row)
    if type(content) is str:
        text: str | None = content if content.isascii() else clean_text(content)
    elif content is None and role == "assistant" and "content" in row:
        text = None
    else:
        return None
    if keys == 2 and (role == "user" or role == "assistant" or role == "system"):
        return Message(role, text)
    if role == "tool" and (keys == 3 or (keys == 4 and "name" in row)):
        answered, name = row.get("tool_call_id"), row.get("name") or ""
        if type(answered) is str and answered and type(name) is str:
            return Message(role, text, (), clean_text(answered), clean_text(name))
    elif role == "assistant" and keys == 3:
        given = row.get("tool_calls")
        calls = [_usual_call(call) for call in given] if type(given) is list else [None]
        if None not in calls:
            return Message(role, text, tuple(calls))  # type: ignore[arg-type]
    return None


def _usual_call(call: Any) -> ToolCall | None:
    """A call with the keys that every call has, and no others; None for any other."""
    if type(call) is not dict or len(call) != 3 or "type" not in call or type(call.get("function")) is not dict:
        return None
    function = call["function"]
    id, name, arguments = call.get("id"), function.get("name"), function.get("arguments")
    if not id or not name or len(function) != 2 or not (type(id) is type(name) is type(arguments) is str):
        return None
    return ToolCall(clean_text(id), clean_text(name), clean_text(arguments))


def _any_message(row: Any, index: int) -> Message:
    place = f"message {index + 1}"
    if not isinstance(row, OBJECT):
        raise InvalidMessages(f"{place}: expected an object with role and content, found {kind_name(row)}.")
    role = row.get("role")
    if role == "function" or row.get("function_call"):
        raise InvalidMessages(f"{place}: functions are OpenAI's older form; valid: tool_calls, and the role tool.")
    if role not in ROLES:
        raise InvalidMessages(f"{place}: role {shown_value(role)} is not known; valid: {', '.join(ROLES)}.")
    calls = _read_calls(row["tool_calls"], place) if row.get("tool_calls") is not None else ()
    if calls and role != "assistant":
        raise InvalidMessages(f"{place}: a {role} message has tool_calls; valid: only on assistant messages.")
    others = () if row.keys() <= _OWN_KEYS else row.items()
    extra = {key: value for key, value in others if key not in _OWN_KEYS and not str(key).startswith("_")}
    if role == "developer":
        extra["role"] = role
    beside = _read_beside(row, place) if role == "assistant" and not calls else ()
    extra |= {part_to_wire(part)["type"]: None for part in beside} | ({"content": row.get("content")} if beside else {})
    return Message(
        role="system" if role == "developer" else role,
        content=_read_noted_parts(row) or beside or _read_content(row.get("content"), place, role),
        tool_calls=calls,
        tool_call_id=_read_answered_id(row, place) if role == "tool" else "",
        name=checked_text(row["name"], f"{place}: name") if row.get("name") else "",
        reasoning=checked_text(row["reasoning_content"], f"{place}: reasoning_content")
        if row.get("reasoning_content")
        else "",
        is_error=bool(row.get("_error")),
        asks_to_read=bool(row.get("_asks_to_read")),
        is_interrupted=bool(row.get("_interrupted")),
        source=_read_source(row),
        extra=plain_json(extra, place) if extra else {},
    )


def message_to_dict(message: Message, *, annotate: bool = False) -> dict[str, Any]:
    """The message as a provider expects it. `annotate` adds nca's own keys: `_error`, `_asks_to_read`, `_interrupted`,
    `_source`, and `_parts` where these have sources of their own."""
    row: dict[str, Any] = {"role": message.extra.get("role", message.role)}
    row["content"] = content_to_wire(message.content)
    if message.tool_calls:
        row["tool_calls"] = [_call_to_dict(call) for call in message.tool_calls]
    if message.role == "tool":
        row["tool_call_id"] = message.tool_call_id
    if message.name:
        row["name"] = message.name
    if message.reasoning:
        row["reasoning_content"] = message.reasoning
    row.update({key: value for key, value in message.extra.items() if key not in ("role", "content")})
    row.update(_beside(message))
    if annotate:
        row.update({key: True for key, field in _FLAGS.items() if getattr(message, field)})
        if message.source:
            row["_source"] = message.source
        if isinstance(message.content, tuple) and isinstance(row["content"], str):
            row["_parts"] = msgspec.to_builtins(message.content)
    return row


def content_to_wire(content: str | tuple[Part, ...] | None) -> Any:
    """Strings stay strings, parts become provider parts; text with attachments or reminders becomes one string."""
    if content is None or isinstance(content, str):
        return content
    return content_text(content) if is_one_text(content) else [part_to_wire(part) for part in content]


def is_one_text(content: tuple[Part, ...]) -> bool:
    """Whether parts are sent as one string."""
    return any(map(_is_beside_text, content)) and not any(isinstance(part, MediaPart) for part in content)


def content_text(content: str | tuple[Part, ...] | None) -> str:
    """The whole content as one string: attached files in `<file>` tags, a placeholder for each image."""
    if content is None or isinstance(content, str):
        return content or ""
    text, was_said = "", False
    for part in content:
        is_said = isinstance(part, TextPart) and part.source not in ("", "nca")
        between = "\n\n" if text and not (was_said and is_said) else ""
        text, was_said = f"{text}{between}{part_text(part)}", is_said
    return text


def part_text(part: Part) -> str:
    """A part as text: what was pasted, piped in or attached in tags, a placeholder for an image."""
    match part:
        case TextPart(text, source="pasted"):
            return _marked(text, "pasted", is_block="\n" in text)
        case TextPart(text, source="piped"):
            return _marked(text, "stdin", is_block=True)
        case TextPart(text):
            return text
        case AttachmentPart():
            cut = f' cut="{part.original_bytes} bytes in all"' if part.is_cut else ""
            return f"<file path={_quoted(part.path)}{cut}>\n{part.text}\n</file>"
        case MediaPart(kind):
            return f"[{kind}, not shown]"


def _quoted(text: str) -> str:
    """The value of an attribute, as it is: in quotes that it does not hold, else as a code span of Markdown."""
    if quote := next((quote for quote in "\"'" if quote not in text), ""):
        return f"{quote}{text}{quote}"
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    blank = " " * (text[0] == "`" or text[-1] == "`")
    return f"{fence}{blank}{text}{blank}{fence}"


def _marked(text: str, name: str, *, is_block: bool) -> str:
    """The text between tags of this name, or of one with a number where the text could end them."""
    tag, number = name, 1
    while f"</{tag}>" in text:
        number += 1
        tag = f"{name}-{number}"
    return f"\n<{tag}>\n{text}\n</{tag}>\n" if is_block else f"<{tag}>{text}</{tag}>"


def _call_to_dict(call: ToolCall) -> dict[str, Any]:
    if is_custom(call):
        given = msgspec.json.decode(call.arguments)["input"]
        return {**call.extra, "id": call.id, "type": CUSTOM, CUSTOM: {"name": call.name, "input": given}}
    function = {"name": call.name, "arguments": call.arguments, **call.extra.get("function", {})}
    return {**call.extra, "id": call.id, "type": "function", "function": function}


def is_custom(call: ToolCall) -> bool:
    """Whether a call is one of OpenAI's to a custom tool: with a text instead of arguments."""
    if call.extra.get("type") != CUSTOM:
        return False
    try:
        return isinstance(msgspec.json.decode(call.arguments)["input"], str)
    except (msgspec.DecodeError, RecursionError, KeyError, TypeError):
        return False


def _is_beside_text(part: Part) -> bool:
    return isinstance(part, AttachmentPart) or (isinstance(part, TextPart) and part.source != "")


def part_to_wire(part: Part, text_type: str = "text") -> dict[str, Any]:
    """A part as a provider expects it. `text_type` is what the provider's shape calls a text."""
    match part:
        case TextPart(text, {"type": "refusal"}):
            return {"type": "refusal", "refusal": text}
        case TextPart(_, {"type": "audio"} as spoken):
            return spoken
        case TextPart(_, extra):
            return {"type": text_type, "text": part_text(part), **extra}
        case MediaPart(_, payload):
            return payload
        case AttachmentPart():
            return {"type": text_type, "text": part_text(part)}


def _read_source(row: Mapping[str, Any]) -> Source | Literal[""]:
    if row.get("_synthetic"):  # as files of an older nca have it
        return "nca"
    source = row.get("_source")
    return cast(Source, source) if isinstance(source, str) and source in _SOURCES else ""


def _read_noted_parts(row: Mapping[str, Any]) -> tuple[Part, ...] | None:
    """The parts of which the content was put together; None if there are none, or where the content is another."""
    if "_parts" not in row:
        return None
    try:
        parts = msgspec.convert(plain_json(row["_parts"], "_parts"), tuple[Part, ...])
    except (msgspec.ValidationError, InvalidMessages):
        return None
    return parts if parts and content_to_wire(parts) == row.get("content") else None


def is_note(row: Any) -> bool:
    """Whether a row of a transcript is a note between messages, not a message."""
    return isinstance(row, OBJECT) and isinstance(role := row.get("role"), str) and role.startswith("_")


def _read_content(content: Any, place: str, role: str) -> str | tuple[Part, ...] | None:
    if isinstance(content, str):
        return clean_text(content)
    if content is None:
        if role in ("assistant", "tool"):
            return None if role == "assistant" else ""
        raise InvalidMessages(f"{place}: a {role} message has no content; valid: text or a list of parts.")
    if isinstance(content, Sequence) and not isinstance(content, bytes):
        return tuple(_read_part(part, f"{place}, part {index + 1}") for index, part in enumerate(content))
    raise InvalidMessages(f"{place}: content is {kind_name(content)}; valid: text, a list of parts, or null.")


def _read_beside(row: Mapping[str, Any], place: str) -> tuple[Part, ...]:
    """What an answer of OpenAI's has instead of content: a refusal, or speech, whose transcript is the model's text."""
    if row.get("content"):
        return ()
    if row.get("refusal"):
        return (refusal_part(row, place),)
    if not isinstance(row.get("audio"), Mapping):
        return ()
    spoken = plain_json({"type": "audio", "audio": dict(row["audio"])}, place)
    said = spoken["audio"].get("transcript")
    return (TextPart(said, spoken) if isinstance(said, str) and said else MediaPart("audio", spoken),)


def _beside(message: Message) -> dict[str, Any]:
    """The keys of an answer that was read by `_read_beside`."""
    if isinstance(message.content, tuple) and len(message.content) == 1:
        match part_to_wire(message.content[0]):
            case {"type": "refusal" | "audio" as key} as part if key in message.extra:
                return {"content": message.extra.get("content"), key: part[key]}
    return {}


def refusal_part(holder: Mapping[str, Any], place: str) -> TextPart:
    """A refusal is the model's text, and stays a refusal where it is sent again."""
    return TextPart(checked_text(holder.get("refusal"), f"{place}: refusal"), {"type": "refusal"})


def _read_part(part: Any, place: str) -> Part:
    if isinstance(part, str):
        return TextPart(clean_text(part))
    if not isinstance(part, Mapping) or not isinstance(part.get("type"), str):
        raise InvalidMessages(f'{place}: expected an object with a "type", found {kind_name(part)}.')
    kind = part["type"]
    if kind in ("text", "input_text", "output_text"):
        return text_part(part, place)
    if kind == "refusal":
        return refusal_part(part, place)
    payload = plain_json(dict(part), place)
    if "image" in kind:
        return MediaPart("image", payload)
    return MediaPart("audio" if "audio" in kind else "document", payload)


def text_part(part: Mapping[str, Any], place: str) -> TextPart:
    extra = {key: value for key, value in part.items() if key not in ("type", "text")}
    return TextPart(checked_text(part.get("text"), f"{place}: text"), plain_json(extra, place) if extra else {})


def _read_calls(calls: Any, place: str) -> tuple[ToolCall, ...]:
    if not isinstance(calls, (list, Sequence)) or isinstance(calls, str | bytes):
        raise InvalidMessages(f"{place}: tool_calls is {kind_name(calls)}; valid: a list of calls.")
    return tuple(_read_call(call, f"{place}, tool call {index + 1}") for index, call in enumerate(calls))


def _read_call(call: Any, place: str) -> ToolCall:
    if isinstance(call, OBJECT) and call.get("type") == CUSTOM and isinstance(call.get(CUSTOM), OBJECT):
        custom = call[CUSTOM]
        given = {"input": checked_text(custom.get("input"), f"{place}: custom.input")}
        read = _read_call({"id": call.get("id"), "function": {**custom, "arguments": given}}, place)
        return msgspec.structs.replace(read, extra={"type": CUSTOM, **_others(call, {*_CALL_KEYS, CUSTOM}, place)})
    function = call.get("function") if isinstance(call, OBJECT) else None
    if not isinstance(call, OBJECT) or not isinstance(function, OBJECT):
        raise InvalidMessages(f'{place}: expected {{"id", "type", "function": {{"name", "arguments"}}}}.')
    if not isinstance(call.get("id"), str) or not call["id"]:
        raise InvalidMessages(f"{place}: the id is missing; valid: a text that one tool message answers to.")
    if not isinstance(function.get("name"), str) or not function["name"]:
        raise InvalidMessages(f"{place}: function.name is missing; valid: the tool's name.")
    arguments = "{}" if function.get("arguments") is None else function["arguments"]
    if not isinstance(arguments, str):
        arguments = msgspec.json.encode(plain_json(arguments, f"{place}: function.arguments")).decode()
    extra = _others(call, _CALL_KEYS, place)
    if inside := _others(function, _FUNCTION_KEYS, place):
        extra["function"] = inside
    return ToolCall(clean_text(call["id"]), clean_text(function["name"]), clean_text(arguments), extra)


def _others(row: Mapping[str, Any], known: Set[str], place: str) -> dict[str, Any]:
    """A provider's own keys that are not null."""
    if row.keys() <= known:
        return {}
    names = [key for key in row if key not in known and not str(key).startswith("_")]
    found = {key: row[key] for key in names if row[key] is not None}
    return plain_json(found, place) if found else {}


def _read_answered_id(row: Mapping[str, Any], place: str) -> str:
    answered, several = row.get("tool_call_id"), row.get("tool_call_ids")
    if not answered and isinstance(several, Sequence) and several:
        answered = several[0]
    if not isinstance(answered, str) or not answered:
        raise InvalidMessages(f"{place}: a tool message has no tool_call_id; valid: the id of the call it answers.")
    return clean_text(answered)


def plain_json(value: Any, place: str) -> Any:
    """A JSON copy of a provider's own values, with lone surrogates replaced."""
    try:
        return json.loads(clean_text(json.dumps(value, ensure_ascii=False, allow_nan=False)))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidMessages(
            f"{place}: holds a value that JSON cannot ({error}); valid: text, numbers, lists, objects."
        ) from error


def checked_text(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise InvalidMessages(f"{place} is {kind_name(value)}; valid: text.")
    return clean_text(value)


def read_words(value: Any, source: Source) -> Words:
    """What a program sends as a message. Raises UsageError."""
    check_choice(source, get_args(Source), "source")
    if isinstance(value, tuple) and all(isinstance(span, Span) for span in value):
        return value
    check_kind(value, str, "text", "text (or nca.words.Words)")
    return words(value, source)
