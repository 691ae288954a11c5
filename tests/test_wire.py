"""OpenAI-shaped dicts in and out: what is kept, what is refused, and the errors."""

from __future__ import annotations

import copy
import types
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.errors import InvalidMessages
from nca.humanize import clean_text
from nca.messages import AttachmentPart, MediaPart, Message, TextPart, ToolCall
from nca.wire import content_text, content_to_wire, message_from_dict, message_to_dict, messages_from_list
from tests.context.logs import logs
from tests.context.samples import some

CALL: dict[str, Any] = {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}
ROWS: list[dict[str, Any]] = [
    {"role": "system", "content": "Rules."},
    {"role": "developer", "content": "More rules."},
    {"role": "user", "content": "Hi", "name": "ann"},
    {"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}]},
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}, {"type": "text", "text": "?"}]},
    {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}]},
    {"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "assistant", "content": "", "tool_calls": [CALL], "reasoning_content": "hm"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {**CALL, "extra_content": {"google": {"thought_signature": "Zm9v"}}},
            {**CALL, "id": "b", "function": {**CALL["function"], "provider_specific_fields": {"signature": "Zm9v"}}},
        ],
    },
    {"role": "assistant", "content": "Hello", "refusal": None, "annotations": [{"n": 1}]},
    {"role": "tool", "tool_call_id": "a", "content": "done", "name": "f"},
    {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "done"}]},
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["role"]))
def test_a_row_comes_back_as_it_was_and_is_not_changed(row: dict[str, Any]) -> None:
    before = copy.deepcopy(row)
    message = message_from_dict(row)
    assert message_to_dict(message) == before == row
    assert msgspec.json.decode(msgspec.json.encode(message), type=Message) == message


def test_what_a_part_holds_is_told_by_its_type() -> None:
    parts = [part for row in ROWS if isinstance(row["content"], list) for part in message_from_dict(row).content or ()]
    kinds = {part.payload["type"]: part.kind for part in parts if isinstance(part, MediaPart)}
    assert kinds == {"image_url": "image", "input_audio": "audio", "file": "document"}


def test_a_call_has_no_keys_but_its_own_where_it_came_with_none_that_say_something() -> None:
    call = {**CALL, "index": 0, "extra_content": None, "_note": 1}
    row = {"role": "assistant", "content": None, "tool_calls": [call]}
    message = message_from_dict(row)
    assert message_to_dict(message)["tool_calls"] == [CALL]
    assert b"extra" not in msgspec.json.encode(message)


def test_developer_is_a_system_message_that_keeps_its_role() -> None:
    message = message_from_dict({"role": "developer", "content": "Rules."})
    assert message.role == "system"
    assert message_to_dict(message) == {"role": "developer", "content": "Rules."}


@some
@given(logs())
def test_any_log_goes_out_and_comes_back(messages: list[Message]) -> None:
    plain = [message for message in messages if not message.attachments]
    rows = [message_to_dict(message, annotate=True) for message in plain]
    assert messages_from_list(rows) == plain if plain else True


def test_annotations_are_read_and_never_sent() -> None:
    row = {"role": "tool", "tool_call_id": "a", "content": "x", "_error": True, "_usage": {"n": 1}, "_synthetic": True}
    message = message_from_dict(row)
    assert (message.is_error, message.is_synthetic, message.is_interrupted, message.extra) == (True, True, False, {})
    assert message_to_dict(message) == {"role": "tool", "tool_call_id": "a", "content": "x"}
    annotated = message_to_dict(message, annotate=True)
    assert annotated == {"role": "tool", "tool_call_id": "a", "content": "x", "_error": True, "_source": "nca"}


def test_notes_between_messages_are_skipped() -> None:
    rows = [{"role": "_compaction", "summary": "x"}, {"role": "user", "content": "Hi"}]
    assert messages_from_list(rows) == [Message("user", "Hi")]
    assert messages_from_list(iter(rows)) == [Message("user", "Hi")]


@pytest.mark.parametrize(
    ("row", "place", "valid"),
    [
        (None, "message 3: expected an object", "found nothing"),
        ("hi", "message 3: expected an object", "found text"),
        ({}, "message 3: role (missing) is not known", "system, developer, user, assistant, tool"),
        ({"role": "owner", "content": ""}, "message 3: role 'owner' is not known", "valid: system"),
        ({"role": ["user"], "content": ""}, "message 3: role ['user'] is not known", "valid: system"),
        ({"role": "user"}, "message 3: a user message has no content", "valid: text or a list of parts"),
        ({"role": "user", "content": 5}, "message 3: content is a number", "valid: text, a list of parts, or null"),
        ({"role": "user", "content": {"a": 1}}, "message 3: content is an object", "valid: text"),
        ({"role": "user", "content": [5]}, "message 3, part 1", 'expected an object with a "type"'),
        ({"role": "user", "content": [{"type": "text"}]}, "message 3, part 1: text is nothing", "valid: text"),
        ({"role": "user", "content": "x", "tool_calls": [CALL]}, "a user message has tool_calls", "assistant"),
        ({"role": "user", "content": "x", "name": 5}, "message 3: name is a number", "valid: text"),
        ({"role": "assistant", "tool_calls": "x"}, "message 3: tool_calls is text", "valid: a list of calls"),
        ({"role": "assistant", "tool_calls": {"id": 1}}, "message 3: tool_calls is an object", "valid: a list"),
        ({"role": "assistant", "tool_calls": [5]}, "message 3, tool call 1", "arguments"),
        ({"role": "assistant", "tool_calls": [CALL, {"id": "b"}]}, "message 3, tool call 2", "arguments"),
        ({"role": "assistant", "tool_calls": [{**CALL, "id": ""}]}, "tool call 1: the id is missing", "valid: a text"),
        ({"role": "assistant", "tool_calls": [{**CALL, "function": {}}]}, "function.name is missing", "the tool"),
        ({"role": "assistant", "content": "x", "reasoning_content": [1]}, "reasoning_content is a list", "valid: text"),
        ({"role": "tool", "content": "x"}, "message 3: a tool message has no tool_call_id", "valid: the id"),
        ({"role": "tool", "content": "x", "tool_call_id": 5}, "message 3: a tool message has no", "valid: the id"),
        ({"role": "user", "content": "x", "extra": object()}, "holds a value that JSON cannot", "valid: text"),
    ],
)  # fmt: skip
def test_an_error_names_the_place_and_what_is_valid(row: Any, place: str, valid: str) -> None:
    fine = {"role": "user", "content": "Hi"}
    with pytest.raises(InvalidMessages) as refused:
        messages_from_list([fine, fine, row])
    assert place in refused.value.message
    assert valid in refused.value.message


@pytest.mark.parametrize("rows", [None, 5, "text", b"bytes", {"role": "user"}, [], [{"role": "_note"}]])
def test_what_is_no_list_of_messages_is_refused(rows: Any) -> None:
    with pytest.raises(InvalidMessages, match="expected"):
        messages_from_list(rows)


@pytest.mark.parametrize("arguments", [None, {}, {"x": 1}, [1]])
def test_arguments_that_came_as_objects_become_json_text(arguments: Any) -> None:
    row = {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": arguments}}]}
    (call,) = message_from_dict(row).tool_calls
    assert msgspec.json.decode(call.arguments) == ({} if arguments is None else arguments)


def test_the_older_plural_of_the_answered_id_is_understood() -> None:
    assert message_from_dict({"role": "tool", "content": "x", "tool_call_ids": ["a"]}).tool_call_id == "a"


def test_a_missing_content_is_allowed_where_providers_allow_it() -> None:
    assert message_from_dict({"role": "assistant"}).content is None
    assert message_from_dict({"role": "tool", "tool_call_id": "a", "content": None}).content == ""


def test_rows_may_be_any_mapping() -> None:
    row = types.MappingProxyType({"role": "user", "content": ({"type": "text", "text": "a"}, "b")})
    assert message_from_dict(row).content == (TextPart("a"), TextPart("b"))


BAD = "a\ud800b"


@pytest.mark.parametrize(
    "row",
    [
        {"role": "user", "content": BAD, "name": BAD},
        {"role": "user", "content": [{"type": "text", "text": BAD, "cache_control": {BAD: [BAD]}}]},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": BAD}}]},
        {"role": "assistant", "content": "x", "reasoning_content": BAD, "refusal": BAD},
        {"role": "assistant", "tool_calls": [{"id": BAD, "function": {"name": BAD, "arguments": BAD}}]},
        {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": {"x": BAD}}}]},
        {"role": "tool", "tool_call_id": BAD, "content": BAD},
    ],
)
def test_lone_surrogates_are_replaced_wherever_they_stand(row: dict[str, Any]) -> None:
    sent = msgspec.json.encode(message_to_dict(message_from_dict(row)))
    assert "a\ufffdb" in sent.decode()


def test_what_a_provider_s_own_keys_hold_is_a_copy() -> None:
    row = {"role": "assistant", "content": "x", "annotations": [{"n": 1}]}
    message = message_from_dict(row)
    row["annotations"][0]["n"] = 2  # type: ignore[index]
    assert message.extra == {"annotations": [{"n": 1}]}


def test_attachments_become_framed_text() -> None:
    whole, cut = AttachmentPart("a.txt", "text", 4), AttachmentPart("b.txt", "te", 400, is_cut=True)
    assert content_to_wire((TextPart("Look:"), whole, cut)) == (
        'Look:\n\n<file path="a.txt">\ntext\n</file>\n\n<file path="b.txt" cut="400 bytes in all">\nte\n</file>'
    )
    both = AttachmentPart("$ echo \"$A\" '$A'", "1 $A", 4)
    assert content_to_wire((both,)) == "<file path=`$ echo \"$A\" '$A'`>\n1 $A\n</file>"
    image = MediaPart("image", {"type": "image_url"})
    assert content_to_wire((whole, image)) == [
        {"type": "text", "text": '<file path="a.txt">\ntext\n</file>'},
        {"type": "image_url"},
    ]
    assert content_text((TextPart("Look:"), image)) == "Look:\n\n[image, not shown]"
    assert (content_text(None), content_text("x")) == ("", "x")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=9),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
            st.sampled_from(["role", "content", "tool_calls", "id", "function", "name", "arguments", "type", "text"]),
            inner | st.sampled_from(["user", "assistant", "tool", "text"]), max_size=5,
        ),
        max_leaves=12,
    )
)  # fmt: skip
def test_anything_is_read_or_refused_with_its_place(row: Any) -> None:
    try:
        message = message_from_dict(row, 4)
    except InvalidMessages as refused:
        assert "message 5" in refused.message  # noqa: PT017 - either outcome is right
        return
    msgspec.json.encode(message_to_dict(message))


def test_a_call_is_written_in_full() -> None:
    message = Message("assistant", None, (ToolCall("a", "f", "{}"),))
    assert message_to_dict(message) == {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    }


@pytest.mark.parametrize("code", [0xD800, 0xDBFF, 0xDC00, 0xDFFF])
def test_every_lone_surrogate_is_replaced(code: int) -> None:
    assert clean_text(f"a{chr(code)}b") == "a\ufffdb"
    assert clean_text("😀") == "😀"


CALLS: list[Any] = [
    CALL,
    {**CALL, "index": 0},
    {**CALL, "id": ""},
    {**CALL, "function": {"name": "f", "arguments": None}},
    {**CALL, "function": {"name": "\ud800", "arguments": {"x": 1}}},
    {key: CALL[key] for key in ("id", "function")},
    {"id": "a", "function": CALL["function"], "strange": 1},
    "no call",
]
KEYS: dict[str, st.SearchStrategy[Any]] = {
    "role": st.sampled_from(["system", "developer", "user", "assistant", "tool", "nobody", None]),
    "content": st.sampled_from(["Hi", "", "\ud800", None, [{"type": "text", "text": "Hi"}], 7]),
    "tool_calls": st.none() | st.just("x") | st.lists(st.sampled_from(CALLS), max_size=2),
    "tool_call_id": st.sampled_from(["a", "", "\ud800", None, 7]),
    "name": st.sampled_from(["ann", "", "\ud800", None, 7]),
    "_error": st.booleans(),
    "more": st.just(1),
}


@given(st.fixed_dictionaries({}, optional=KEYS))
def test_the_quick_way_through_usual_rows_reads_what_the_other_reads(row: dict[str, Any]) -> None:
    def read(way: Callable[[], Message]) -> Message | str:
        try:
            return way()
        except InvalidMessages as error:
            return error.message

    assert read(lambda: messages_from_list([row])[0]) == read(lambda: message_from_dict(row))
