"""What was changed in a message is changed in its blocks or items, and nothing beside it; chat messages of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import nca
from nca.messages import AttachmentPart, MediaPart, Message, Part, TextPart, ToolCall
from nca.shapes.anthropic import AnthropicMessages
from nca.shapes.responses import ResponsesItems
from nca.shapes.shaped import Origins, as_chat_message, content_rows, result_content
from tests.shapes import test_anthropic, test_responses

Row = dict[str, Any]

THOUGHT, SIGNED = test_anthropic.THOUGHT, {"type": "redacted_thinking", "data": "x"}
SAID = {"type": "text", "text": "I look."}
USES: list[Row] = [{"type": "tool_use", "id": one, "name": "grep", "input": {"pattern": one}} for one in ("c1", "c2")]
RESULTS: list[Row] = [
    {"type": "tool_result", "tool_use_id": "c1", "content": "found", "is_error": True},
    {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "none"}]},
]
ANTHROPIC: list[Row] = [
    {"role": "user", "content": "Go."},
    {"role": "assistant", "content": [THOUGHT, SIGNED, SAID, *USES], "id": "msg_1"},
    {"role": "user", "content": [*RESULTS, {"type": "text", "text": "More."}]},
]

REASONING = test_responses.REASONING
TOLD = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]}
CALL, CUSTOM = test_responses.CALL, {**test_responses.CUSTOM, "call_id": "c2"}
RESPONSES: list[Row] = [
    {"role": "user", "content": "Go."},
    *(REASONING, TOLD, CALL, CUSTOM),
    {"type": "function_call_output", "call_id": "c1", "output": "found", "id": "o1"},
    {"type": "custom_tool_call_output", "call_id": "c2", "output": "none", "id": "o2"},
]


SHELL: Row = {"type": "shell_call", "call_id": "c1", "action": {"commands": ["ls", "make"]}, "status": "completed"}
ENDED: Row = {"type": "exit", "exit_code": 2}
PRINTED: list[Row] = [
    {"stdout": "a.py\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
    {"stdout": "", "stderr": "no rule", "outcome": ENDED},
]
PATCH: Row = {
    "type": "apply_patch_call",
    "call_id": "c2",
    "operation": {"type": "update_file", "path": "a.py", "diff": "-x\n+y"},
    "status": "completed",
}
TOOLS: list[Row] = [
    {"role": "user", "content": "Go."},
    *(REASONING, SHELL, PATCH),
    {"type": "shell_call_output", "call_id": "c1", "output": PRINTED, "max_output_length": 9},
    {"type": "apply_patch_call_output", "call_id": "c2", "status": "failed", "output": None},
]


def test_calls_of_the_providers_own_tools_are_calls() -> None:
    shaped = ResponsesItems(TOOLS)
    known = shaped.messages
    assert shaped.write(known, known).rows == TOOLS
    assert [(call.name, call.arguments) for call in known[1].tool_calls] == [
        ("shell", '{"commands":["ls","make"]}'),
        ("apply_patch", '{"type":"update_file","path":"a.py","diff":"-x\\n+y"}'),
    ]
    assert [message.text for message in known[2:]] == ["a.py\n\nno rule\n[exit 2]", "failed"]
    answer = with_arguments(known[1], '{"commands":["ls"]}')
    less = [changed(message, content="Less.") for message in known[2:]]
    assert shaped.write([known[0], answer, *less], known).rows == [
        *TOOLS[:2],
        {**SHELL, "action": {"commands": ["ls"]}},
        PATCH,
        {**TOOLS[4], "output": [{"stdout": "Less.", "stderr": "", "outcome": ENDED}]},
        {**TOOLS[5], "output": "Less."},
    ]


def test_an_output_is_of_the_kind_of_its_call() -> None:
    for items in (TOOLS, RESPONSES):
        results = items[-2:]
        missing = nca.repair_tool_pairs(items[:-2]).messages[-2:]
        assert [(one["type"], one["call_id"]) for one in missing] == [(one["type"], one["call_id"]) for one in results]
        calls_gone = nca.repair_tool_pairs([items[0], *results]).messages
        assert [one["type"] for one in calls_gone if "call_id" in one] == ["function_call", "function_call_output"] * 2


@pytest.mark.parametrize(
    ("item", "says"),
    [
        ({**SHELL, "action": "ls"}, "item 1: action is text; valid: an object"),
        ({**TOOLS[4], "output": "x"}, "item 1, output: expected a list, found text"),
        ({**TOOLS[4], "output": [{"stdout": 1, "stderr": ""}]}, "item 1, output 1, stdout is a number; valid: text"),
    ],
)
def test_a_call_of_the_providers_own_tools_that_is_not_understood_is_refused_by_name(item: Row, says: str) -> None:
    with pytest.raises(nca.InvalidMessages) as refused:
        ResponsesItems([item])
    assert says in refused.value.message


def changed(message: Message, **fields: Any) -> Message:
    return msgspec.structs.replace(message, **fields)


def with_arguments(message: Message, arguments: str) -> Message:
    first, *others = message.tool_calls
    return changed(message, tool_calls=(changed_call(first, arguments), *others))


def changed_call(call: ToolCall, arguments: str) -> ToolCall:
    return msgspec.structs.replace(call, arguments=arguments)


@pytest.mark.parametrize(
    ("content", "arguments", "blocks"),
    [
        ("same", '{"pattern": "y"}', [THOUGHT, SIGNED, SAID, {**USES[0], "input": {"pattern": "y"}}, USES[1]]),
        ("same", "no JSON", [THOUGHT, SIGNED, SAID, {**USES[0], "input": {}}, USES[1]]),
        ("Short.", "", [THOUGHT, SIGNED, {"type": "text", "text": "Short."}, *USES]),
        (None, "", [THOUGHT, SIGNED, *USES]),
        (None, '{"a":1}', [THOUGHT, SIGNED, {**USES[0], "input": {"a": 1}}, USES[1]]),
    ],
)
def test_an_answer_of_anthropic_keeps_its_thoughts_and_each_call_that_is_as_it_was(
    content: str | None, arguments: str, blocks: list[Row]
) -> None:
    shaped = AnthropicMessages(ANTHROPIC)
    known = shaped.messages
    answer = known[1] if content == "same" else changed(known[1], content=content)
    answer = with_arguments(answer, arguments) if arguments else answer
    written = shaped.write([known[0], answer, *known[2:]], known)
    assert written.rows == [ANTHROPIC[0], {**ANTHROPIC[1], "content": blocks}, ANTHROPIC[2]]
    assert written.places == [0, 1, 2, 2, 2]


@pytest.mark.parametrize(
    ("content", "arguments", "items"),
    [
        ("same", '{"pattern": "y"}', [REASONING, TOLD, {**CALL, "arguments": '{"pattern": "y"}'}, CUSTOM]),
        ("Short.", "", [REASONING, {"type": "message", "role": "assistant", "content": "Short."}, CALL, CUSTOM]),
        (None, "", [REASONING, CALL, CUSTOM]),
        (None, "{}", [REASONING, {**CALL, "arguments": "{}"}, CUSTOM]),
    ],
)
def test_an_answer_of_responses_keeps_its_reasoning_and_each_call_that_is_as_it_was(
    content: str | None, arguments: str, items: list[Row]
) -> None:
    shaped = ResponsesItems({"instructions": "Rules.", "input": RESPONSES})
    known = shaped.messages
    answer = known[2] if content == "same" else changed(known[2], content=content)
    answer = with_arguments(answer, arguments) if arguments else answer
    written = shaped.write([*known[:2], answer, *known[3:]], known)
    assert written.rows == [RESPONSES[0], *items, *RESPONSES[5:]]
    assert written.places == [-1, 0, 1, 1 + len(items), 2 + len(items)]


@pytest.mark.parametrize(("arguments", "given"), [('{"input":"*** End"}', "*** End"), ('{"x":1}', '{"x":1}')])
def test_a_custom_call_s_input_is_text_whatever_its_arguments_became(arguments: str, given: str) -> None:
    shaped = ResponsesItems(RESPONSES[3:5])
    (known,) = shaped.messages
    call = changed_call(known.tool_calls[1], arguments)
    (first, second) = shaped.write([changed(known, tool_calls=(known.tool_calls[0], call))], [known]).rows
    assert first == CALL
    assert second == {**CUSTOM, "input": given}


def test_a_changed_output_stands_in_its_own_row_with_its_other_keys() -> None:
    shaped = AnthropicMessages(ANTHROPIC)
    known = shaped.messages
    cleared = [changed(message, content="cleared") if message.role == "tool" else message for message in known]
    (row,) = shaped.write(cleared, known).rows[2:]
    assert row["content"] == [*({**one, "content": "cleared"} for one in RESULTS), {"type": "text", "text": "More."}]
    again = [changed(message, name="other") if message.role == "tool" else message for message in known]
    assert shaped.write(again, known).rows == ANTHROPIC

    items = ResponsesItems(RESPONSES)
    known = items.messages
    cleared = [changed(message, content="cleared") if message.role == "tool" else message for message in known]
    assert items.write(cleared, known).rows[5:] == [{**one, "output": "cleared"} for one in RESPONSES[5:]]
    again = [changed(message, name="other") if message.role == "tool" else message for message in known]
    assert items.write(again, known).rows == RESPONSES


def test_an_answer_with_other_calls_is_written_anew() -> None:
    shaped = AnthropicMessages(ANTHROPIC)
    fewer = changed(shaped.messages[1], tool_calls=shaped.messages[1].tool_calls[:1])
    (row,) = shaped.write([fewer], shaped.messages).rows
    assert row["content"] == [THOUGHT, SIGNED, SAID, USES[0]]
    items = ResponsesItems(RESPONSES)
    fewer = changed(items.messages[1], tool_calls=items.messages[1].tool_calls[:1])
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]}
    own = {"type": "function_call", "call_id": "c1", "name": "grep", "arguments": CALL["arguments"]}
    (first, second) = items.write([fewer], items.messages).rows
    assert first in (said, {**said, "content": "I look."})
    assert second == own


def test_thoughts_alone_are_no_empty_message_and_beside_words_are_not_counted() -> None:
    (alone,) = AnthropicMessages([{"role": "assistant", "content": [THOUGHT, SIGNED]}]).messages
    assert [part.path for part in alone.attachments] == ["thinking", "redacted_thinking"]
    for beside in (SAID, USES[0]):
        (message,) = AnthropicMessages([{"role": "assistant", "content": [THOUGHT, beside]}]).messages
        assert message.attachments == ()
    (alone,) = ResponsesItems([REASONING]).messages
    assert [part.path for part in alone.attachments] == ["reasoning"]
    for items in ([REASONING, TOLD], [REASONING, CALL]):
        (message,) = ResponsesItems(items).messages
        assert message.attachments == ()


def test_a_message_is_found_by_identity_or_by_a_call_that_is_there_once() -> None:
    call = ToolCall("a", "f", "{}")
    known = [Message("user", "x"), Message("assistant", None, (call,)), Message("tool", "y", tool_call_id="a")]
    origins = Origins(known)
    assert [origins.find(message) for message in known] == [0, 1, 2]
    assert [origins.find(changed(message, content="z")) for message in known] == [None, 1, 2]
    again = [*known, *(changed(message, content="again") for message in known[1:])]
    twice = Origins(again)
    assert [twice.find(message) for message in known] == [0, 1, 2]
    assert [twice.find(changed(message, content="z")) for message in known] == [None, None, None]


def source(kind: str, **more: str) -> Row:
    return {"type": kind, **more}


DATA = source("base64", media_type="image/png", data="Zm9v")
HELD = "data:image/png;base64,Zm9v"
PICTURE = {"type": "image_url", "image_url": {"url": HELD}}


def file_part(name: str, address: str = HELD) -> Row:
    return {"type": "file", "file": {"filename": name, "file_data": address}}


@pytest.mark.parametrize(
    ("kind", "payload", "shown"),
    [
        ("image", {"type": "image", "source": DATA}, PICTURE),
        ("image", {"type": "image", "source": source("url", url="https://x/p")}, "https://x/p"),
        ("image", {"type": "image", "source": source("file", file_id="f")}, None),
        ("image", {"type": "input_image", "image_url": HELD}, PICTURE),
        ("image", {"type": "input_image", "file_id": "f"}, None),
        ("image", {"type": "image_url", "image_url": {"url": HELD, "detail": "low"}}, PICTURE),
        ("image", {"type": "image_url", "image_url": {}}, None),
        ("document", {"type": "document", "source": DATA}, file_part("document.pdf")),
        ("document", {"type": "document", "source": DATA, "title": "t.pdf"}, file_part("t.pdf")),
        ("document", {"type": "document", "source": source("url", url="https://x/p")}, None),
        ("document", {"type": "input_file", "filename": "n.pdf", "file_data": HELD}, file_part("n.pdf")),
        ("document", {"type": "input_file", "file_id": "f"}, None),
        ("document", {"type": "file", "file": {"filename": "m.pdf", "file_data": HELD}}, file_part("m.pdf")),
        ("document", {"type": "file", "file": {"file_id": "f"}}, None),
        ("document", {"type": "file", "file": "f"}, None),
    ],
)
def test_a_picture_or_file_of_any_shape_is_one_of_chat_messages_or_is_named(
    kind: Any, payload: Row, shown: Any
) -> None:
    message = as_chat_message(Message("user", (TextPart("Look:", {"cache_control": {}}), MediaPart(kind, payload))))
    if shown is None:
        assert message.content == f"Look:\n\n[{kind}, not shown]"
        return
    address = shown if isinstance(shown, dict) else {"type": "image_url", "image_url": {"url": shown}}
    assert message.content == (TextPart("Look:"), MediaPart(kind, address))


def test_texts_of_any_shape_are_one_text_and_what_has_a_source_stays() -> None:
    marked = TextPart("b", {"cache_control": {}})
    assert as_chat_message(Message("user", "a")).content == "a"
    assert as_chat_message(Message("user", (TextPart("a"), marked))).content == "a\n\nb"
    pasted = TextPart("c", {"x": 1}, source="pasted")
    assert as_chat_message(Message("user", (marked, pasted))).content == (TextPart("b"), TextPart("c", source="pasted"))
    sound, file = MediaPart("audio", {"type": "input_audio"}), AttachmentPart("a", "b", 1)
    assert as_chat_message(Message("user", (sound, file))).content == (sound, file)


@pytest.mark.parametrize(
    ("parts", "content"),
    [
        ((), "(no output)"),
        ((TextPart(" \n"),), "(no output)"),
        ((TextPart(""), TextPart(" ")), "(no output)"),
        ((TextPart("x"),), "x"),
        ((TextPart("x", {"k": 1}),), (TextPart("x", {"k": 1}),)),
        ((TextPart("x"), TextPart("")), (TextPart("x"), TextPart(""))),
        ((MediaPart("image", {}),), (MediaPart("image", {}),)),
    ],
)
def test_a_result_is_never_empty(parts: tuple[Part, ...], content: Any) -> None:
    assert result_content(parts) == content


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        (None, ""),
        ("x", "x"),
        ((TextPart("x"), TextPart("y")), "x\n\ny"),
        ((TextPart("x"), AttachmentPart("a", "b", 1)), 'x\n\n<file path="a">\nb\n</file>'),
        (
            (TextPart("x", {"k": 1}), TextPart("y")),
            [{"type": "kind", "text": "x", "k": 1}, {"type": "kind", "text": "y"}],
        ),
        ((TextPart("x"), MediaPart("image", {"i": 1})), [{"type": "kind", "text": "x"}, {"i": 1}]),
    ],
)
def test_a_content_is_text_unless_it_has_more(content: Any, rows: Any) -> None:
    assert content_rows(content, "kind") == rows


def test_a_number_of_a_view_has_its_place_in_the_list_that_was_handed_in() -> None:
    calls = [{"type": "tool_use", "id": one, "name": "f", "input": {}} for one in "ab"]
    results = [{"type": "tool_result", "tool_use_id": one, "content": "r"} for one in "ab"]
    rows: list[dict[str, Any]] = [
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": calls},
        {"role": "user", "content": results},
        {"role": "assistant", "content": [{"type": "text", "text": "fourth"}]},
    ]
    fit = nca.ContextView(context_window=32_000).fit
    assert fit(rows).positions == [1, 2, 3, 3, 4]
    view = nca.ContextView(context_window=32_000)
    assert view.fit({"system": "Be brief.", "messages": rows}).positions == [0, 1, 2, 3, 3, 4]
    items = [
        {"role": "user", "content": "first"},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "function_call", "call_id": "b", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "r"},
        {"type": "function_call_output", "call_id": "b", "output": "r"},
    ]
    view = nca.ContextView(context_window=32_000)
    assert view.fit({"instructions": "Be brief.", "input": items}).positions == [0, 1, 2, 4, 5]
    chat: list[dict[str, Any]] = [rows[0], {"role": "_note", "content": "x"}, {"role": "assistant", "content": "third"}]
    assert nca.ContextView(context_window=32_000).fit(chat).positions == [1, 3]
    assert nca.ContextView(context_window=32_000).fit({"input": "Hi", "instructions": ""}).positions == [1]
