"""nca's own files are read back completely; those of other programs become sessions or one clear error."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nca.context.rules.messages import NO_OUTPUT
from nca.errors import InvalidMessages
from nca.messages import Entry, with_tool_names
from nca.redact import Redactor
from nca.sessions import Store
from nca.sessions.transfer import SessionCopy, new_copy
from nca.transcripts import read_transcript
from nca.transcripts.session_file import read_session, redacted, to_json
from nca.wire import message_to_dict, messages_from_list
from tests.context.logs import logs
from tests.shapes.conversions import Rows, conversations, to_anthropic, to_responses
from tests.transcripts.samples import HOSTILE, full

DATA = Path(__file__).parents[1] / "data"


def read(raw: bytes, name: str = "") -> SessionCopy:
    return read_session(raw, "talk.json", directory="/here", name=name)


def test_everything_comes_back() -> None:
    copy = full()
    for raw in (to_json(copy), to_json(copy, is_ascii=True)):
        assert read(raw) == copy
    assert set(to_json(copy, is_ascii=True)) <= {10, *range(32, 127)}
    assert read(to_json(copy), name="another").info.name == "another"
    counted = json.loads(to_json(copy))
    counted["session"]["messages"] += 90
    assert read(json.dumps(counted).encode()).info.messages == len(copy.entries), "what is there is counted"


def test_a_second_store_has_the_same_bytes_and_the_same_history() -> None:
    copy = full()
    with Store.open(None) as store:
        info = store.add(read(to_json(copy)))
        again = store.copy_of(info.id)
        assert [msgspec.json.encode(entry.message) for entry in again.entries] == [
            msgspec.json.encode(entry.message) for entry in copy.entries
        ]
        assert msgspec.structs.replace(again, info=copy.info) == copy
        with store.open_session(info.id) as session:
            assert session.views.redo() is not None
            assert session.views.undo() is not None
            assert session.views.undo() is not None
            assert session.views.current_id == 0


@given(logs())
@settings(suppress_health_check=list(HealthCheck), max_examples=50)
def test_any_log_comes_back(log: list[Any]) -> None:
    with Store.open(None) as store:
        session = store.create(directory="/", model="m")
        session.log.append(log)
        copy = store.copy_of(session.info.id)
    assert read(to_json(copy)) == copy


@pytest.mark.parametrize("file", sorted(DATA.glob("*.jsonl")), ids=lambda file: file.name)
def test_real_transcripts_come_back_and_stay_readable_for_others(file: Path) -> None:
    whole = [json.loads(line) for line in file.read_bytes().splitlines()]
    for talk in [row["messages"] for row in whole] if "messages" in whole[0] else [whole]:
        copy = read(json.dumps(talk).encode())
        assert read(to_json(copy)) == copy
        exported = messages_from_list(read_transcript(to_json(copy), "x").messages)
        assert exported == [entry.message for entry in copy.entries] == list(with_tool_names(messages_from_list(talk)))
        assert all(message.name for message in exported if message.role == "tool")


def test_an_imported_transcript_keeps_what_is_broken_and_long() -> None:
    rows = [
        {"role": "tool", "tool_call_id": "nobody", "content": "orphan"},
        {"role": "_note", "content": "between"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": {}}}]},
        {"role": "user", "content": "x" * 2_000_000},
    ]
    raw = b"\n".join(json.dumps(row).encode() for row in rows)
    copy = read(raw, name="n")
    assert [entry.message.role for entry in copy.entries] == ["tool", "assistant", "user"]
    assert (copy.info.directory, copy.info.name, len(copy.entries[2].message.text)) == ("/here", "n", 2_000_000)
    assert read(json.dumps({"messages": rows}).encode()).entries[0].message == copy.entries[0].message


@pytest.mark.parametrize("convert", [to_anthropic, to_responses])
def test_a_conversation_of_another_shape_is_the_same_session(convert: Callable[[Rows], dict[str, Any]]) -> None:
    rows = next(rows for rows in conversations() if any(row.get("tool_calls") for row in rows))
    whole = convert(rows)
    copy = read(json.dumps(whole).encode())
    said = [one for one in messages_from_list(rows) if one.text or one.tool_calls or one.role == "tool"]
    assert [(entry.message.role, entry.message.text) for entry in copy.entries] == [
        (one.role, one.text or (NO_OUTPUT if one.role == "tool" else "")) for one in said
    ]
    assert [call.id for entry in copy.entries for call in entry.message.tool_calls] == [
        call.id for message in said for call in message.tool_calls
    ]
    held = whole.get("messages") or whole["input"]
    lines = b"\n".join(json.dumps(row).encode() for row in held)
    assert len(read(lines).entries) == len(said) - sum(message.role == "system" for message in said)


def test_pictures_and_files_of_other_shapes_are_those_of_chat_messages() -> None:
    base64 = {"type": "base64", "media_type": "image/png", "data": "Zm9v"}
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "Zm9v"}
    blocks = [
        {"type": "text", "text": "Look.", "cache_control": {"type": "ephemeral"}},
        {"type": "image", "source": base64},
        {"type": "document", "title": "a.pdf", "source": pdf},
        {"type": "image", "source": {"type": "file", "file_id": "f1"}},
    ]
    (entry,) = read(json.dumps([{"role": "user", "content": blocks}]).encode()).entries
    assert message_to_dict(entry.message)["content"] == [
        {"type": "text", "text": "Look."},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,Zm9v"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,Zm9v"}},
        {"type": "text", "text": "[image, not shown]"},
    ]
    items = [{"type": "input_text", "text": "Look."}, {"type": "input_image", "image_url": "https://x/y.png"}]
    (entry,) = read(json.dumps({"input": [{"role": "user", "content": items}]}).encode()).entries
    assert message_to_dict(entry.message)["content"][1] == {
        "type": "image_url",
        "image_url": {"url": "https://x/y.png"},
    }


GOOD = {"role": "user", "content": "x"}


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "talk.json: is empty"),
        (b"garbage", "talk.json: is not JSON"),
        (b'{"no": 1}', "talk.json: holds no messages; valid: a JSON array"),
        (b"[]", "talk.json: holds no messages"),
        (json.dumps([GOOD, {"role": "robot"}]).encode(), "talk.json: message 2: role 'robot' is not known; valid: sys"),
        (json.dumps([GOOD, 7]).encode(), "talk.json: message 2: expected an object"),
        (b"\n\n" + json.dumps(GOOD).encode() + b'\n\n{"role": "robot"}\n', "talk.json, line 5: message 2: role"),
        (json.dumps({"system": "x", "messages": [{"role": "robot"}]}).encode(), "talk.json: message 1: role 'robot'"),
        (json.dumps({"input": [{"type": "robot"}]}).encode(), "talk.json: item 1: type 'robot' is not known"),
        (json.dumps({"input": []}).encode(), "talk.json: input: the list is empty"),
        (json.dumps(GOOD).encode() + b'\n{"role": "user"', "talk.json, line 2: is not JSON"),
        (json.dumps({"messages": [GOOD]}).encode() * 2, "talk.json: is not JSON"),
    ],
)
def test_what_cannot_be_read_is_one_line(raw: bytes, said: str) -> None:
    with pytest.raises(InvalidMessages) as caught:
        read(raw)
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


def changed(*path: Any, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(whole: dict[str, Any]) -> None:
        *way, last = path
        for step in way:
            whole = whole[step]
        whole[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (changed("version", value=2), "written by a newer nca (format version 2"),
        (changed("version", value="1"), "version is '1'; valid: 1"),
        (changed("version", value=0), "version is 0"),
        (changed("session", "messages", value="x"), "$.session.messages"),
        (changed("views", 1, "tail", value="x"), "$.views[1].tail"),
        (changed("views", 1, "items", 0, "type", value="x"), "$.views[1].items[0]"),
        (changed("head_view", value=7), "The view in force, 7, is missing"),
        (changed("messages", 1, "_seq", value=7), "message 2: _seq or _at is wrong"),
        (changed("messages", 1, "_at", value="x"), "message 2: _seq or _at is wrong"),
        (changed("messages", 1, value=None), "message 2: expected an object"),
        (changed("messages", 3, "role", value="robot"), "message 4: role 'robot'"),
        (changed("messages", 0, "_message", "role", value="robot"), "message 1: _message: Invalid enum value"),
        (lambda whole: whole["messages"].clear(), "covers up to message 6"),
        (lambda whole: whole.pop("views"), "missing required field `views`"),
    ],
)  # fmt: skip
def test_a_file_that_was_changed_is_refused_with_its_place(change: Callable[[dict[str, Any]], None], said: str) -> None:
    whole = json.loads(to_json(full()))
    change(whole)
    with pytest.raises(InvalidMessages) as caught:
        read(json.dumps(whole).encode())
    assert said in str(caught.value)
    assert str(caught.value).startswith("talk.json: ")


def timeless() -> bytes:
    """The same bytes in every run."""
    copy = full("text")
    raw = to_json(msgspec.structs.replace(copy, info=msgspec.structs.replace(copy.info, id="00000000")))
    return re.sub(rb"\d{10}\.\d+", b"1.5", raw)


EXPORTED = timeless()


@given(st.data())
@settings(max_examples=150, suppress_health_check=list(HealthCheck))
def test_a_damaged_file_is_an_error_or_a_session_never_anything_else(data: st.DataObject) -> None:
    raw = bytearray(EXPORTED)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(raw) - 1))
        raw[place : place + data.draw(st.integers(0, 9))] = data.draw(
            st.sampled_from([b"", b"9" * 25, b"-1", b"null", b"[", b'"', b"\xff", b'"\\ud800"', b"1e400", b"0.5"])
        )
    try:
        copy = read(bytes(raw))
    except InvalidMessages:
        return
    with Store.open(None) as store:
        store.add(copy)


def test_a_field_whose_name_is_half_a_pair_is_refused_in_one_line() -> None:
    with pytest.raises(InvalidMessages, match="damaged"):
        read(EXPORTED.replace(b'"session":', b'"\\ud800":0,"session":'))


def test_keys_are_taken_out_of_every_part(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-" + "a1B2" * 6
    copy = redacted(full(f"a {key} b known-key"), Redactor({"MY_KEY": "known-key"}))
    raw = to_json(copy).decode()
    assert key not in raw
    assert "known-key" not in raw
    assert raw.count("[redacted]") == raw.count("[redacted MY_KEY]") > 10
    assert read(raw.encode()) == copy
    monkeypatch.setenv("OPENAI_API_KEY", "known-key-of-the-environment")
    assert "known-key" not in to_json(redacted(full("a known-key-of-the-environment"))).decode()


def test_a_log_without_anything_else_is_a_session() -> None:
    copy = new_copy([Entry(1, message, 0.0) for message in messages_from_list([GOOD])], directory=HOSTILE)
    assert read(to_json(copy)).entries == copy.entries
