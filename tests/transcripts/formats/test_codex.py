"""Codex's rollouts: items put together, turns taken back, compactions readable and encrypted, compressed files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from nca.context.history import History
from nca.context.request import repair, resolve
from nca.context.validate import validate_request
from nca.context.view import is_in
from nca.errors import InvalidMessages, install_command
from nca.messages import MediaPart, Usage
from nca.sessions.transfer import SessionCopy
from nca.transcripts.formats.assemble import Assembled, assemble
from nca.transcripts.formats.codex import FORMAT, UNKNOWN_PARENT
from nca.transcripts.formats.registry import recognise, stored_sessions
from nca.transcripts.formats.source import Source
from nca.wire import message_to_dict

Row = dict[str, Any]
META = {"id": "c-1", "cwd": "/work", "originator": "codex_cli_rs", "cli_version": "0.60.0", "source": "cli"}


def row(kind: str, **payload: Any) -> Row:
    return {"timestamp": "2026-07-01T10:00:00.000Z", "type": kind, "payload": payload}


def meta(**more: Any) -> Row:
    return row("session_meta", **META | more)


def item(kind: str, **more: Any) -> Row:
    return row("response_item", type=kind, **more)


def message(text: str, role: str = "user") -> Row:
    part = {"type": "output_text" if role == "assistant" else "input_text", "text": text}
    return item("message", role=role, content=[part])


def call(id: str, name: str = "exec_command") -> Row:
    return item("function_call", name=name, arguments='{"cmd":"ls"}', call_id=id)


def output(id: str, text: Any = "ok") -> Row:
    return item("function_call_output", call_id=id, output=text)


def begins() -> Row:
    return row("event_msg", type="task_started", turn_id="t")


def back(turns: int) -> Row:
    return row("event_msg", type="thread_rolled_back", num_turns=turns)


def tokens(read: int, written: int) -> Row:
    last = {"input_tokens": read, "cached_input_tokens": 3, "output_tokens": written, "reasoning_output_tokens": 1}
    return row("event_msg", type="token_count", info={"last_token_usage": last, "total_token_usage": {}})


def raw(*rows: Row) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in rows)


def read(*rows: Row) -> Assembled:
    return assemble(FORMAT.read(Source("file", raw=raw(*rows))), "file")


def shown(copy: SessionCopy) -> list[str]:
    messages = resolve(History(copy.entries, copy.view(copy.head_view)))
    for provider in ("openai", "anthropic"):
        assert not validate_request([message_to_dict(one) for one in repair(messages, provider)], provider)
    return [one.text for one in messages]


def test_items_of_one_answer_are_one_message_and_events_are_not_repeated() -> None:
    found = read(
        meta(),
        row("turn_context", cwd="/work", model="gpt-5-codex"),
        message("<environment_context>here</environment_context>"),
        begins(),
        row("event_msg", type="user_message", message="List them."),
        message("List them."),
        item("reasoning", summary=[{"type": "summary_text", "text": "I look."}], encrypted_content="zzz"),
        message("Looking.", "assistant"),
        call("c1"),
        call("c2"),
        output("c1"),
        output("c2", '{"output":"no such file","metadata":{"exit_code":2,"duration_seconds":0.1}}'),
        tokens(100, 20),
        tokens(100, 20),
        item("custom_tool_call", name="apply_patch", input="*** Begin Patch", call_id="c3"),
        item("custom_tool_call_output", call_id="c3", output=[{"type": "output_text", "text": "Done!"}]),
        row("event_msg", type="agent_message", message="Listed."),
        message("Listed.", "assistant"),
        tokens(200, 9),
        row("future_record", safe="ignored"),
    )
    log = [entry.message for entry in found.copy.entries]
    roles = ["user", "user", "assistant", "tool", "tool", "assistant", "tool", "assistant"]
    assert [one.role for one in log] == roles
    assert log[0].is_synthetic
    assert (log[2].text, log[2].reasoning) == ("Looking.", "I look.")
    assert [one.id for one in log[2].tool_calls] == ["c1", "c2"]
    assert (log[4].text, log[4].is_error, log[4].name) == ("no such file", True, "exec_command")
    assert json.loads(log[5].tool_calls[0].arguments) == {"input": "*** Begin Patch"}
    assert [one.usage for one in found.copy.usage] == [
        Usage(100, 20, 3, reasoning_tokens=1),
        Usage(200, 9, 3, reasoning_tokens=1),
    ]
    assert (found.copy.info.model, found.copy.info.directory, found.about.session) == ("gpt-5-codex", "/work", "c-1")
    assert not found.unreadable
    # What is about Codex's own sandbox is aside.
    assert len(shown(found.copy)) == 7


def test_turns_that_were_taken_back_are_aside() -> None:
    turns = [[begins(), message(text), message(text.upper(), "assistant")] for text in "abcd"]
    found = read(meta(), *turns[0], *turns[1], *turns[2], back(2), *turns[3])
    assert shown(found.copy) == ["a", "A", "d", "D"]
    unmarked = [one for turn in turns for one in turn[1:]]
    assert shown(read(meta(), *unmarked, back(1)).copy) == ["a", "A", "b", "B", "c", "C"]
    assert shown(read(meta(), *unmarked, back(3), back(9), message("e")).copy) == ["e"]


def test_a_compaction_is_taken_back_with_its_turn() -> None:
    found = read(
        meta(), begins(), message("a"), begins(), message("b"), row("compacted", message="They talked."), back(1)
    )
    assert shown(found.copy) == ["a"]


def test_an_older_compaction_keeps_what_the_person_said() -> None:
    found = read(meta(), message("a"), message("b", "assistant"), row("compacted", message="S."), message("c"))
    texts = shown(found.copy)
    assert texts[0] == "a"
    assert "S." in texts[1]
    assert texts[2:] == ["c"]


def test_a_replacement_is_the_whole_base() -> None:
    history = [message("a")["payload"], message("Handoff: b was done.")["payload"]]
    found = read(
        meta(),
        message("You are Codex.", "developer"),
        message("a"),
        message("b", "assistant"),
        message("c"),
        row("compacted", message="", replacement_history=history),
        message("d"),
    )
    texts = shown(found.copy)
    assert found.copy.entries[0].message.role == "system"
    assert texts[0] == "a"
    assert "Handoff: b was done." in texts[1]
    assert texts[2:] == ["d"]
    assert found.unreadable_summaries == 0


def test_an_encrypted_compaction_is_said_to_be_one() -> None:
    history = [message("a")["payload"], {"type": "compaction", "encrypted_content": "gAAAA"}]
    found = read(meta(), message("a"), message("b"), row("compacted", message="", replacement_history=history))
    assert found.unreadable_summaries == 1
    assert "encrypted" in shown(found.copy)[1]
    assert "gAAAA" not in str(found.copy)


def test_an_old_rollout_without_envelopes_and_one_with_events_alone() -> None:
    old = [{"id": "c-0", "timestamp": "2025-05-01T00:00:00Z", "instructions": None}]
    items = [message("a")["payload"], {"record_type": "state"}, message("b", "assistant")["payload"]]
    assert recognise(Source("x", raw=raw(*old, *items))) is FORMAT
    assert shown(read(*old, *items).copy) == ["a", "b"]
    events = [row("event_msg", type="user_message", message="a"), row("event_msg", type="agent_message", message="b")]
    assert shown(read(meta(), *events).copy) == ["a", "b"]


def test_pictures_and_a_fork() -> None:
    picture = {"type": "input_image", "image_url": "data:image/png;base64,AA=="}
    found = read(
        meta(forked_from_id="c-0"), meta(id="c-0", cwd="/other"), item("message", role="user", content=[picture])
    )
    content = found.copy.entries[0].message.content
    assert content == (MediaPart("image", {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}),)
    assert (found.about.session, found.about.parent, found.about.directory) == ("c-1", "c-0", "/work")


def test_the_store_has_archived_sessions_and_names_those_of_subagents(tmp_path: Path) -> None:
    day = tmp_path / ".codex" / "sessions" / "2026" / "07" / "01"
    day.mkdir(parents=True)
    (tmp_path / ".codex" / "archived_sessions").mkdir()
    context = message("# AGENTS.md instructions for /work\n\nBe brief.")
    (day / "rollout-1.jsonl").write_bytes(raw(meta(), context, message("Fix  it")))
    (day / "rollout-2.jsonl").write_bytes(raw(meta(source={"subagent": "review"}), message("x")))
    (day / "rollout-4.jsonl").write_bytes(raw(meta(source="vscode", thread_source="subagent"), message("x")))
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": "c-1", "depth": 1, "agent_role": "worker"}}}
    (day / "rollout-5.jsonl").write_bytes(raw(meta(id="c-5", source=spawned), message("Look")))
    (tmp_path / ".codex" / "archived_sessions" / "rollout-3.jsonl").write_bytes(raw(meta(), message("Old")))
    found = [one for path in FORMAT.files({}, tmp_path) for one in FORMAT.sessions(Source.of_file(path))]
    assert sorted((one.title, one.directory, one.parent) for one in found) == [
        ("Fix it", "/work", ""),
        ("Look", "/work", "c-1"),
        ("Old", "/work", ""),
        ("x", "/work", UNKNOWN_PARENT),
        ("x", "/work", UNKNOWN_PARENT),
    ]
    own = stored_sessions({}, tmp_path, agents=["codex"]).sessions
    assert sorted(one.title for one in own) == ["Fix it", "Old"], "there is nothing to go on with of a subagent"


@pytest.mark.skipif(find_spec("zstandard") is None, reason="zstandard is optional")
def test_a_compressed_rollout_is_read_and_a_damaged_one_is_one_line(tmp_path: Path) -> None:
    zstandard = import_module("zstandard")
    path = tmp_path / "rollout-1.jsonl.zst"
    packed = zstandard.ZstdCompressor().compress(raw(meta(), *(message(f"a {one}") for one in range(5_000))))
    path.write_bytes(packed)
    assert recognise(Source.of_file(path)) is FORMAT
    assert len(assemble(FORMAT.read(Source.of_file(path)), "x").copy.entries) == 5_000
    path.write_bytes(packed[:4] + b"\xff" * 50)
    with pytest.raises(InvalidMessages, match=r"^\S+zst: cannot be read \(damaged"):
        recognise(Source.of_file(path))


@pytest.mark.skipif(find_spec("zstandard") is not None, reason="zstandard is installed")
def test_a_compressed_rollout_says_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "rollout-1.jsonl.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd....")
    with pytest.raises(InvalidMessages, match=re.escape(install_command("zstandard"))):
        recognise(Source.of_file(path))


def typed(text: str) -> Row:
    return row("event_msg", type="user_message", message=text)


TURNS: dict[str, Callable[[str], list[Row]]] = {
    "answered": lambda n: [begins(), message(f"q{n}"), message(f"a{n}", "assistant"), tokens(10, 2)],
    "typed": lambda n: [begins(), message(f"q{n}"), typed(f"q{n}"), message(f"a{n}", "assistant")],
    "typed before": lambda n: [begins(), typed(f"q{n}"), message(f"q{n}"), message(f"a{n}", "assistant")],
    "called": lambda n: [begins(), message(f"q{n}"), call(n), output(n, f"o{n}"), message(f"a{n}", "assistant")],
    "cut off": lambda n: [begins(), message(f"q{n}"), call(n)],
    "not answered": lambda n: [begins(), message(f"q{n}")],
    "asked on": lambda n: [begins(), message(f"q{n}"), message(f"a{n}", "assistant"), message(f"and {n}")],
}
"""Turns by how they end or begin: nothing of one may be in the next."""
GONE_ON = [begins(), message("By itself.", "assistant")]
"""A turn that begins with an answer."""


def told(*rows: Row) -> list[Any]:
    """What is shown of it: who said it, in which words, with which usage."""
    copy = read(meta(), *rows).copy
    aside, used = copy.view(copy.head_view).aside, {one.seq + 1: one.usage for one in copy.usage if one.seq}
    return [(one.message, used.get(one.seq)) for one in copy.entries if not is_in(one.seq, aside)]


@pytest.mark.parametrize("first", TURNS)
def test_turns_are_read_one_by_one_and_taken_back_one_by_one(first: str) -> None:
    one = TURNS[first]("1")
    assert told(*one, *GONE_ON) == [*told(*one), *told(*GONE_ON)]
    for second, third in product(TURNS.values(), repeat=2):
        two, three = second("2"), third("3")
        assert told(*one, *two) == [*told(*one), *told(*two)]
        assert told(*one, *two, back(1), *three) == [*told(*one), *told(*three)]
        assert told(*one, *two, back(1), *GONE_ON[1:]) == [*told(*one), *told(*GONE_ON)]
        assert told(*one, *two, *three, back(2)) == told(*one)
        assert told(*one, *two, *three, back(1), back(1)) == told(*one)
