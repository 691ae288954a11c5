"""Read and write the items of OpenAI's Responses API: `instructions` beside `input`.

One answer of the model (reasoning, text and calls, each an item of its own) is one message of nca, so that
reasoning stays with the call that it led to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

import msgspec

from nca.errors import InvalidMessages
from nca.humanize import kind_name, shown_value
from nca.messages import MediaPart, Message, Part, TextPart, ToolCall, clean_text, with_tool_names
from nca.shapes import shaped
from nca.wire import checked_text, content_text, is_note, plain_json, refusal_part, text_part

ROLES = ("system", "developer", "user", "assistant")
_FUNCTION, _CUSTOM, _SHELL, _PATCH = "function_call", "custom_tool_call", "shell_call", "apply_patch_call"
_GIVEN = {_FUNCTION: "arguments", _CUSTOM: "input", _SHELL: "action", _PATCH: "operation"}
"""The types of calls, each with its key for what the tool gets: text and a name beside it, or an object."""
CALLS = tuple(_GIVEN)
OUTPUTS = tuple(f"{kind}_output" for kind in CALLS)
ON_THE_SERVER = (
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_list_tools",
    "mcp_call",
    "tool_search_call",
    "tool_search_output",
    "compaction",
)
"""Items that the provider made and answered by itself: they stay with the answer that they belong to."""
ITEM_TYPES = ("message", *CALLS, *OUTPUTS, "reasoning", *ON_THE_SERVER)
TEXTS = ("input_text", "output_text", "text")
PICTURES = ("input_image", "input_file", "input_audio")
PART_TYPES = (*TEXTS, "refusal", *PICTURES)
HELD_ELSEWHERE = ("previous_response_id", "conversation")


class ResponsesItems(shaped.ShapedMessages):
    """A list of items, or an object with `input` and where there are some `instructions`."""

    shape = "responses"
    rules = "responses"
    key = "input"

    def __init__(self, given: Any, *, may_be_empty: bool = False) -> None:
        super().__init__(given, may_be_empty=may_be_empty)
        for key in HELD_ELSEWHERE:
            if self._given.get(key):
                raise InvalidMessages(f"{key}: its messages are held by the provider; valid: all items in input.")
        rows = [{"role": "user", "content": self._list}] if isinstance(self._list, str) else self._list
        items = shaped.copies([row for row in rows if not is_note(row)], "item")
        self.messages = []
        self._origins: list[list[dict[str, Any]]] = []
        self._has_instructions = bool(self._given.get("instructions"))
        if self._has_instructions:
            text = checked_text(self._given["instructions"], "instructions")
            self._take(Message("system", text), [])
        self._read(items)
        if not items and not may_be_empty:
            raise InvalidMessages("input: the list is empty; expected at least one item.")

    def write(self, messages: Sequence[Message], known: Sequence[Message]) -> shaped.Written:
        origins, rows, places = shaped.Origins(known), shaped.Rows(), list[int]()
        kinds = {one["call_id"]: one["type"] for items in self._origins for one in items if one.get("type") in CALLS}
        made_anew = set[str]()
        for message in messages:
            place = origins.find(message)
            if place == 0 and self._has_instructions:
                places.append(-1)
                continue
            places.append(len(rows))
            if place is None or message.tool_call_id in made_anew:
                new = _new_items(message, kinds)
            elif message is known[place]:
                new = self._origins[place]
            else:
                new = _changed_items(self._origins[place], known[place], message)
            for one in new:
                if one.get("type") == _FUNCTION and kinds.get(one["call_id"]) != _FUNCTION:
                    # Its output must be of the same kind.
                    made_anew.add(one["call_id"])
                    kinds[one["call_id"]] = _FUNCTION
            rows += new
        return shaped.Written(rows, places)

    def _changed_rows(self, texts: Mapping[int, str], rest: str) -> Iterator[tuple[int, dict[str, Any]]]:
        firsts = self._row_numbers()
        for number, text in texts.items():
            message = msgspec.structs.replace(self.messages[number], content=text)
            for row, item in enumerate(self._origins[number], firsts[number]):
                if _has_text(item):
                    yield row, _with_text(item, message)
                    message = msgspec.structs.replace(message, content=rest)

    def takes_text(self, number: int) -> bool:
        return any(map(_has_text, self._origins[number]))

    def request(self, rows: shaped.Rows) -> dict[str, Any] | None:
        is_same_text = isinstance(self._list, str) and rows == [{"role": "user", "content": self._list}]
        return super().request(self._list if is_same_text else rows)

    def _row_numbers(self) -> list[int]:
        before = accumulate((len(items) for items in self._origins), initial=1)
        return [number if items else 0 for number, items in zip(before, self._origins, strict=False)]

    def _take(self, message: Message, items: list[dict[str, Any]]) -> None:
        self.messages.append(message)
        self._origins.append(items)

    def _read(self, items: list[dict[str, Any]]) -> None:
        answer: list[tuple[int, dict[str, Any]]] = []
        for number, item in enumerate(items, 1):
            kind, role = _kind_of(item, f"item {number}")
            if role == "assistant":
                answer.append((number, item))
                continue
            self._end_answer(answer)
            answer = []
            self._take(_said(item, kind, role, f"item {number}"), [item])
        self._end_answer(answer)
        self.messages = list(with_tool_names(self.messages))

    def _end_answer(self, answer: list[tuple[int, dict[str, Any]]]) -> None:
        if answer:
            self._take(_answer(answer), [item for _, item in answer])


def _kind_of(item: Mapping[str, Any], place: str) -> tuple[str, str]:
    """An item's type, and who it comes from: a role, or "tool"."""
    kind = item.get("type", "message" if "role" in item else None)
    if kind not in ITEM_TYPES:
        raise shaped.refused_type(place, kind, ITEM_TYPES)
    if kind != "message":
        return kind, "tool" if kind in OUTPUTS else "assistant"
    role = item.get("role")
    if role not in ROLES:
        raise InvalidMessages(f"{place}: role {shown_value(role)} is not known; valid: {', '.join(ROLES)}.")
    if item.get("tool_calls"):
        raise InvalidMessages(f"{place}: tool_calls are of chat messages; valid: items of the type function_call.")
    return kind, role


def _said(item: Mapping[str, Any], kind: str, role: str, place: str) -> Message:
    """A message of the person or the developer, or a call's output."""
    if kind == "message":
        parts = _parts(item.get("content"), place)
        extra = {"role": role} if role == "developer" else {}
        content = parts[0].text if isinstance(item.get("content"), str) and isinstance(parts[0], TextPart) else parts
        return Message("user" if role == "user" else "system", content, extra=extra)
    answered = clean_text(shaped.named(item.get("call_id"), "call_id", place))
    output = item.get("output", "")
    if kind == f"{_PATCH}_output":
        output = output or str(item.get("status") or "")
    parts = _printed(output, place) if kind == f"{_SHELL}_output" else _parts(output, place)
    content = shaped.result_content(parts)
    return Message("tool", content, tool_call_id=answered)


def _answer(items: Sequence[tuple[int, dict[str, Any]]]) -> Message:
    parts: list[Part] = []
    calls: list[ToolCall] = []
    thoughts: list[Part] = []
    for number, item in items:
        place, kind = f"item {number}", item.get("type", "message")
        if kind == "message":
            parts += _parts(item.get("content"), place)
        elif kind in CALLS:
            calls.append(_call(item, kind, place))
        elif kind == "reasoning":
            thoughts.append(shaped.as_file(kind, item, place))
        else:
            parts.append(shaped.as_file(kind, item, place))
    # Reasoning alone is not an empty message; beside words and calls it is not counted, as everywhere.
    content = parts or ([] if calls else thoughts)
    return Message("assistant", tuple(content) or None, tuple(calls))


def _call(item: Mapping[str, Any], kind: str, place: str) -> ToolCall:
    call_id, key, is_named = shaped.named(item.get("call_id"), "call_id", place), _GIVEN[kind], kind in CALLS[:2]
    name = shaped.named(item.get("name"), "name", place) if is_named else kind.removesuffix("_call")
    given = item.get(key)
    if not isinstance(given, str if is_named else dict):
        raise InvalidMessages(f"{place}: {key} is {kind_name(given)}; valid: {'text' if is_named else 'an object'}.")
    arguments = str(given) if kind == _FUNCTION else shaped.json_text({key: given} if kind == _CUSTOM else given)
    return ToolCall(clean_text(call_id), clean_text(name), clean_text(arguments))


def words_of(item: Mapping[str, Any]) -> str:
    """What a call, an output or an item that the provider made says, for whoever takes messages alone."""
    kind = str(item["type"])
    if kind in OUTPUTS:
        return content_text(_said(item, kind, "tool", kind).content)
    if kind in CALLS:
        call = _call(item, kind, kind)
        return f"{call.name} {item['input'] if kind == _CUSTOM else call.arguments}"
    return f"{kind} {shaped.json_text({key: item[key] for key in item if key not in ('type', 'id', 'status')})}"


def _printed(pieces: Any, place: str) -> tuple[Part, ...]:
    """What commands printed, each with its end if that was not a good one."""
    texts = []
    for number, piece in enumerate(shaped.objects(pieces, f"{place}, output"), 1):
        texts += [checked_text(piece.get(key), f"{place}, output {number}, {key}") for key in ("stdout", "stderr")]
        outcome = piece.get("outcome")
        if isinstance(outcome, dict) and outcome.get("exit_code") != 0:
            texts.append(f"[{outcome.get('type')} {outcome.get('exit_code', '')}".rstrip() + "]")
    return (TextPart(clean_text("\n".join(filter(None, texts)))),)


def _parts(content: Any, place: str) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (TextPart(clean_text(content)),)
    if not isinstance(content, list):
        raise InvalidMessages(f"{place}: content is {kind_name(content)}; valid: text or a list of parts.")
    return tuple(
        _part(part, f"{place}, part {number}")
        for number, part in enumerate(shaped.objects(content, f"{place}, part"), 1)
    )


def _part(part: Mapping[str, Any], place: str) -> Part:
    kind = part.get("type")
    if kind in TEXTS:
        return text_part(part, place)
    if kind == "refusal":
        return refusal_part(part, place)
    if kind in PICTURES:
        payload = plain_json(dict(part), place)
        return MediaPart(
            "image" if kind == "input_image" else "audio" if kind == "input_audio" else "document", payload
        )
    raise shaped.refused_type(place, kind, PART_TYPES)


def _new_items(message: Message, kinds: Mapping[str, str] = {}) -> list[dict[str, Any]]:
    """The items of a message that replaces others, or that was changed beyond recognition. `kinds`: of calls, by id."""
    if message.role == "tool":
        kind = kinds.get(message.tool_call_id, _FUNCTION)
        item = {"type": f"{kind}_output", "call_id": message.tool_call_id}
        return [_with_output(item | {"status": "failed"} if kind == _PATCH else item, message)]
    role = str(message.extra.get("role", message.role))
    content = shaped.content_rows(message.content, "output_text" if role == "assistant" else "input_text")
    items: list[dict[str, Any]] = [{"type": "message", "role": role, "content": content}] if content else []
    return items + [
        {"type": _FUNCTION, "call_id": call.id, "name": call.name, "arguments": call.arguments}
        for call in message.tool_calls
    ]


def _has_text(item: Mapping[str, Any]) -> bool:
    return item.get("type", "message") in ("message", *OUTPUTS)


def _with_text(item: dict[str, Any], message: Message) -> dict[str, Any]:
    """An output or a message with the text of this message."""
    if item.get("type") in OUTPUTS:
        return _with_output(item, message)
    said = {"type": "output_text", "annotations": []} if message.role == "assistant" else {"type": "input_text"}
    return shaped.with_text(item, message.text, said)


def _with_output(item: dict[str, Any], message: Message) -> dict[str, Any]:
    if item["type"] != f"{_SHELL}_output":
        return {**item, "output": shaped.content_rows(message.content, "input_text")}
    ends = [piece["outcome"] for piece in item.get("output", ()) if "outcome" in piece]
    end = ends[-1] if ends else {"type": "exit", "exit_code": 1}
    return {**item, "output": [{"stdout": message.text, "stderr": "", "outcome": end}]}


def _changed_items(items: list[dict[str, Any]], before: Message, after: Message) -> list[dict[str, Any]]:
    """The items of a message with what compaction changed in it: an output, a call's arguments, a text."""
    if after.role == "tool":
        if after.content == before.content:
            return items
        return [_with_output(items[0], after)]
    if [call.id for call in before.tool_calls] != [call.id for call in after.tool_calls]:
        return _new_items(after)
    changed = shaped.changed_calls(before, after)
    items = [_changed_call(item, changed) if item.get("type") in CALLS else item for item in items]
    if after.content == before.content:
        return items
    text = _new_items(msgspec.structs.replace(after, tool_calls=()))
    thoughts = [item for item in items if item.get("type") == "reasoning"]
    return thoughts + text + [item for item in items if item.get("type") in CALLS]


def _changed_call(item: dict[str, Any], changed: Mapping[str, ToolCall]) -> dict[str, Any]:
    call = changed.get(item["call_id"])
    if call is None:
        return item
    if item["type"] == _FUNCTION:
        return {**item, "name": call.name, "arguments": call.arguments}
    given = shaped.arguments_of(call)
    if item["type"] != _CUSTOM:
        return {**item, _GIVEN[item["type"]]: given}
    text = given.get("input")
    return {**item, "name": call.name, "input": text if isinstance(text, str) else call.arguments}
