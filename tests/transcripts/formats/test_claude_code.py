"""Claude Code's files: answers in several lines, branches, compactions, and the faults that real files have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nca.context.history import History
from nca.context.request import repair, resolve
from nca.context.validate import validate_request
from nca.messages import SIGNED_THOUGHTS, MediaPart, Usage
from nca.sessions.transfer import SessionCopy
from nca.transcripts.conversation_file import read_conversation
from nca.transcripts.formats.assemble import Assembled, assemble
from nca.transcripts.formats.claude_code import FORMAT
from nca.transcripts.formats.registry import recognise
from nca.transcripts.formats.source import Source
from nca.wire import message_to_dict

Row = dict[str, Any]


def row(kind: str, id: str, parent: str | None, **more: Any) -> Row:
    whole = {"parentUuid": parent, "isSidechain": False, "cwd": "/work", "sessionId": "s-1", "version": "2.1.0"}
    return whole | {"type": kind, "uuid": id, "timestamp": "2026-07-01T10:00:00.000Z"} | more


def user(id: str, parent: str | None, content: Any, **more: Any) -> Row:
    return row("user", id, parent, message={"role": "user", "content": content}, **more)


def answer(id: str, parent: str | None, *blocks: Any, message: str = "", output: int = 5, **more: Any) -> Row:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 100, "output_tokens": output}
    whole = {"id": message or f"msg_{id}", "role": "assistant", "model": "claude-opus-4-5", "usage": usage}
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    return row("assistant", id, parent, requestId=f"req_{message or id}", message=whole | {"content": content}, **more)


def call(id: str, name: str = "Read", **arguments: Any) -> Row:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def result(id: str, parent: str, answered: str, content: Any = "ok", **more: Any) -> Row:
    block = {"type": "tool_result", "tool_use_id": answered, "content": content, **more}
    beside = f"Error: {content}" if more.get("is_error") else {"stdout": "ok"}
    return user(id, parent, [block], toolUseResult=beside)


def boundary(id: str, after: str, **meta: Any) -> Row:
    whole = {"trigger": "auto", "preTokens": 150_000, **meta}
    return row(
        "system", id, None, subtype="compact_boundary", logicalParentUuid=after, compactMetadata=whole, content="x"
    )


def summary(id: str, parent: str, text: str = "They talked.") -> Row:
    return user(id, parent, text, isCompactSummary=True, isVisibleInTranscriptOnly=True)


def raw(*rows: Row) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in rows)


def read(*rows: Row) -> Assembled:
    return assemble(FORMAT.read(Source("file", raw=raw(*rows))), "file")


def shown(copy: SessionCopy) -> list[str]:
    history = History(copy.entries, copy.view(copy.head_view))
    messages = resolve(history)
    for provider in ("openai", "anthropic"):
        assert not validate_request([message_to_dict(one) for one in repair(messages, provider)], provider)
    return [message.text for message in messages]


def test_the_lines_of_one_answer_are_one_message_with_one_usage() -> None:
    found = read(
        user("u1", None, "Read both."),
        answer("a1", "u1", {"type": "thinking", "thinking": "hm", "signature": "sig"}, message="m1", output=1),
        answer("a2", "a1", "I will.", message="m1", output=3),
        answer("a3", "a2", call("t1", path="a"), message="m1", output=3),
        result("r1", "a3", "t1"),
        answer("a4", "a3", call("t2", path="b"), message="m1", output=40),
        result("r2", "a4", "t2", is_error=True),
        answer("a5", "r2", "Done."),
    )
    log = [entry.message for entry in found.copy.entries]
    assert [message.role for message in log] == ["user", "assistant", "tool", "tool", "assistant"]
    assert [one.id for one in log[1].tool_calls] == ["t1", "t2"]
    assert log[1].tool_calls[0].arguments == '{"path":"a"}'
    assert log[1].extra[SIGNED_THOUGHTS] == [{"type": "thinking", "thinking": "hm", "signature": "sig"}]
    assert log[1].made_by == "claude-opus-4-5"
    assert [(message.name, message.is_error) for message in log[2:4]] == [("Read", False), ("Read", True)]
    assert [one.usage for one in found.copy.usage] == [Usage(110, 40, 100, 0), Usage(110, 5, 100, 0)]
    # The result of a call in parallel is no parent of anything, and yet it is live.
    assert shown(found.copy) == ["Read both.", "I will.", "ok", "ok", "Done."]
    assert (found.about.session, found.copy.info.directory, found.copy.info.model) == (
        "s-1",
        "/work",
        "claude-opus-4-5",
    )


def test_a_branch_that_was_left_and_a_subagent_are_aside() -> None:
    found = read(
        user("u1", None, "Start"),
        answer("a1", "u1", "Ready"),
        user("b1", "a1", "First attempt"),
        answer("b2", "b1", "First answer"),
        user("x1", None, "Subtask", isSidechain=True),
        answer("x2", "x1", "Done", isSidechain=True),
        user("c1", "a1", "Second attempt"),
        answer("c2", "c1", "Second answer"),
        {"type": "summary", "summary": "A title", "leafUuid": "c2"},
        {"type": "summary", "summary": "Of another file", "leafUuid": "zz"},
        {"type": "file-history-snapshot", "messageId": "b1", "snapshot": {}},
    )
    assert len(found.copy.entries) == 8
    assert shown(found.copy) == ["Start", "Ready", "Second attempt", "Second answer"]
    assert found.copy.info.name == "A title"
    assert not found.unreadable
    assert len(found.copy.usage) == 4


def test_a_compaction_keeps_what_it_preserved_and_follows_the_branch_before_it() -> None:
    rows = [
        user("u1", None, "Start"),
        answer("a1", "u1", "Ready"),
        user("b1", "a1", "First attempt"),
        user("c1", "a1", "Second attempt"),
        answer("c2", "c1", "Second answer"),
        user("c3", "c2", "Go on"),
        boundary("cb", "c4", preservedSegment={"headUuid": "c2", "anchorUuid": "cs", "tailUuid": "c4"}),
        summary("cs", "cb"),
        answer("c4", "cs", "Went on", timestamp="2026-07-01T09:59:00Z"),
        user("p1", "c4", "After it"),
    ]
    rows[6]["compactMetadata"]["preservedMessages"] = {"anchorUuid": "cs", "uuids": ["c2", "c3", "c4"]}
    for found in (read(*rows), read(*map(as_snake, rows))):
        texts = shown(found.copy)
        assert "They talked." in texts[0]
        assert texts[1:] == ["Second answer", "Go on", "Went on", "After it"]
        [record] = [one for one in found.copy.compactions if one.trigger != "beside"]
        assert (record.trigger, record.tokens_before) == ("auto", 150_000)
        [made] = found.copy.summaries
        assert made.ranges == ((1, 2), (4, 4))


def as_snake(one: Row) -> Row:
    if "compactMetadata" not in one:
        return one
    meta = one["compactMetadata"]
    run, kept = meta["preservedSegment"], meta["preservedMessages"]
    return {key: value for key, value in one.items() if key != "compactMetadata"} | {
        "compact_metadata": {
            "trigger": meta["trigger"],
            "pre_tokens": meta["preTokens"],
            "preserved_segment": {"head_uuid": run["headUuid"], "tail_uuid": run["tailUuid"]},
            "preserved_messages": kept,
        }
    }


def test_a_preserved_segment_alone_is_walked() -> None:
    found = read(
        user("u1", None, "a"),
        answer("a1", "u1", "b"),
        user("u2", "a1", "c"),
        boundary("cb", "u2", preservedSegment={"headUuid": "a1", "tailUuid": "u2"}),
        summary("cs", "cb"),
        user("p1", "cs", "d"),
    )
    assert shown(found.copy)[1:] == ["b", "c", "d"]


def test_two_compactions_of_which_the_last_counts() -> None:
    rows = [
        user("u1", None, "a"),
        boundary("b1", "u1"),
        summary("s1", "b1", "First summary"),
        user("u2", "s1", "b"),
        boundary("b2", "u2"),
        summary("s2", "b2", "Second summary"),
        answer("a3", "s2", "c"),
    ]
    found = read(*rows)
    texts = shown(found.copy)
    assert len(texts) == 2
    assert "Second summary" in texts[0]
    assert [one.ranges for one in found.copy.summaries] == [((1, 1),), ((1, 2),)]
    # Rows that were written again, and an answer whose parent is before both.
    rows[-1]["parentUuid"] = "u1"
    assert shown(read(*rows, *rows[:4]).copy) == texts


def test_going_back_before_a_compaction_is_a_branch_without_it() -> None:
    found = read(
        user("u1", None, "a"),
        answer("a1", "u1", "b"),
        boundary("b1", "a1"),
        summary("s1", "b1"),
        user("u2", "s1", "c"),
        user("u3", "a1", "d"),
    )
    assert shown(found.copy) == ["a", "b", "d"]


def test_a_summary_without_a_boundary_and_a_boundary_without_a_summary() -> None:
    assert "They talked." in shown(read(user("u1", None, "a"), summary("s", "u1"), user("u2", "s", "b")).copy)[0]
    found = read(user("u1", None, "a"), boundary("b", "u1"), user("u2", "b", "c"))
    assert found.unreadable_summaries == 1
    assert "encrypted or missing" in shown(found.copy)[0]


@pytest.mark.parametrize("circle", [True, False])
def test_circles_missing_parents_and_doubled_records_hide_nothing(circle: bool) -> None:
    found = read(
        user("u1", "u2" if circle else "never-written", "a"),
        answer("a1", "u1", "b"),
        user("u2", "a1", "c"),
        user("u2", None, "c again"),
        answer("a2", "missing", "d"),
        user("u3", "a2", "e"),
    )
    assert shown(found.copy) == ["a", "b", "c", "d", "e"]
    assert any("name a parent that is missing" in one.reason for one in found.unreadable)


def test_a_file_whose_records_name_no_parents_is_read_in_its_order() -> None:
    found = read(user("u1", None, "a"), answer("a1", None, "b"), user("u2", None, "c"))
    assert shown(found.copy) == ["a", "b", "c"]


def test_what_was_typed_meanwhile_and_what_the_program_added() -> None:
    queued = {"type": "queued_command", "prompt": "and the tests", "commandMode": "prompt"}
    note = {"type": "queued_command", "prompt": "<task-notification>", "commandMode": "task-notification"}
    found = read(
        user("u0", None, "Caveat: made by the program", isMeta=True),
        user("u1", "u0", "Fix it."),
        answer("a1", "u1", call("t1")),
        result("r1", "a1", "t1", [{"type": "text", "text": "x"}, picture()]),
        row("attachment", "q1", "r1", attachment=queued),
        row("attachment", "q2", "q1", attachment=note),
        row("attachment", "q3", "q2", attachment={"type": "todo_reminder", "content": []}),
        {"type": "queue-operation", "operation": "remove", "content": "and the tests", "sessionId": "s-1"},
        row("assistant", "a2", "q3", isApiErrorMessage=True, message={"role": "assistant", "content": "API Error"}),
        answer("a3", "a2", "Fixed."),
    )
    log = [entry.message for entry in found.copy.entries]
    said = [message.text for message in log if message.role == "user" and not message.is_synthetic]
    assert said == ["Fix it.", "and the tests"]
    assert found.copy.info.title == "Fix it."
    assert "API Error" not in shown(found.copy)
    content = log[3].content
    assert isinstance(content, tuple)
    assert content[1] == MediaPart("image", {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}})


def test_rows_of_the_program_in_the_persons_role_are_not_the_persons_and_a_refused_call_is_no_error() -> None:
    refused = "The user doesn't want to proceed with this tool use. The tool use was rejected."
    texts = [
        "<command-name>/exit</command-name>\n<command-args></command-args>",
        "<command-message>review is running</command-message>\n<command-name>/review</command-name>",
        "<command-args>the parser</command-args>",
        "<local-command-stdout>Bye!</local-command-stdout>",
        "<local-command-caveat>Caveat: DO NOT respond to these messages.</local-command-caveat>",
        "[Request interrupted by user for tool use]",
        "Operation stopped by hook: Another session is active.",
        "Stop hook feedback:\n- tests fail",
        "Caveat: it must also run on Windows.",
    ]
    rows = [user(f"u{n}", f"u{n - 1}" if n else None, text) for n, text in enumerate(texts)]
    called = answer("a1", "u8", call("t1"), call("t2"))
    results = [result("r1", "a1", "t1", refused, is_error=True), result("r2", "r1", "t2", "no file", is_error=True)]
    log = [entry.message for entry in read(*rows, called, *results).copy.entries]
    assert [message.is_synthetic for message in log[:9]] == [*[True] * 8, False]
    assert [message.is_error for message in log[10:]] == [False, True]


def test_words_behind_the_output_of_a_local_command_are_the_persons() -> None:
    caveat = "<local-command-caveat>Caveat: DO NOT respond to these messages.</local-command-caveat>"
    output = "<local-command-stdout>Of </local-command-stdout>: Never push.</local-command-stdout>"
    log = [entry.message for entry in read(user("u1", None, f"{caveat}\n{output}\n\nFix it.")).copy.entries]
    assert [message.text for message in log if not message.is_synthetic] == ["Fix it."]
    assert all(message.is_synthetic for message in log[:-1])
    assert log[-1].source == "typed"


OPENED = "<ide_opened_file>The user opened a.py.</ide_opened_file>"


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "text", "text": OPENED}, {"type": "text", "text": "Fix it."}],
        [
            {"type": "text", "text": "<system-reminder>\nBe brief.\n</system-reminder>"},
            {"type": "text", "text": "Fix it."},
        ],
        f"{OPENED}\n<system-reminder>Be brief.</system-reminder>\nFix it.",
    ],
)
def test_a_note_of_the_program_before_the_persons_words_leaves_them_theirs(content: Any) -> None:
    found = read(user("u1", None, content), answer("a1", "u1", "Fixed."))
    log = [entry.message for entry in found.copy.entries]
    assert [message.text for message in log if message.role == "user" and not message.is_synthetic] == ["Fix it."]
    assert "".join(message.text for message in log if message.is_synthetic).startswith("<")
    assert "Fix it." in "\n".join(shown(found.copy))
    assert [one.title for one in FORMAT.sessions(Source("file", raw=raw(user("u1", None, content))))] == ["Fix it."]


@pytest.mark.parametrize("thought", ["The tests pass.", ""])
def test_an_answer_that_was_stopped_in_its_thoughts_said_nothing(thought: str) -> None:
    block = {"type": "thinking", "thinking": thought, "signature": "c2ln"}
    found = read(user("u1", None, "Test it."), answer("a1", "u1", block), user("u2", "a1", "Well?"))
    stopped = found.copy.entries[1].message
    assert (stopped.content, stopped.reasoning, stopped.extra) == (None, thought, {})
    assert list(filter(None, shown(found.copy))) == ["Test it.", "Well?"]


def picture() -> Row:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}


def test_a_subagents_file_alone_is_a_conversation() -> None:
    found = read(user("x1", None, "Subtask", isSidechain=True), answer("x2", "x1", "Done", isSidechain=True))
    assert shown(found.copy) == ["Subtask", "Done"]


def test_bad_lines_are_noted_and_a_cut_line_is_none() -> None:
    content = raw(user("u1", None, "a")) + b"{broken\n[1]\n" + raw(row("user", "u2", "u1", message="error"))
    source = Source("talk", raw=content + b'{"type":"user","uuid":"u3"')
    found = assemble(FORMAT.read(source), "talk")
    assert [one.place for one in found.unreadable] == ["line 2", "line 3", "line 4"]
    read_anyhow = read_conversation(source)
    assert read_anyhow.agent == "Claude Code"
    assert read_anyhow.notes[0].startswith("3 parts could not be read: line 2 is not JSON")


def test_objects_on_one_line_are_all_read() -> None:
    lines = raw(user("u1", None, "A"), answer("a1", "u1", "B"), user("u2", "a1", "C")).split(b"\n")
    found = assemble(FORMAT.read(Source("file", raw=lines[0] + b"\n" + lines[1] + lines[2] + b"\n")), "file")
    assert [entry.message.text for entry in found.copy.entries] == ["A", "B", "C"]
    assert not found.unreadable
    half = assemble(FORMAT.read(Source("file", raw=lines[0] + b"\n" + lines[1] + lines[2][:9] + b"\n")), "file")
    assert [part.place for part in half.unreadable] == ["line 2"]


def test_it_is_known_by_its_content() -> None:
    assert recognise(Source("x", raw=raw({"type": "summary", "summary": "t"}, user("u1", None, "a")))) is FORMAT
    long = raw(user("u1", None, "a" * 100_000))
    assert recognise(Source("x", raw=long)) is FORMAT
    qwen = user("u1", None, "") | {"message": {"role": "user", "parts": [{"text": "hi"}]}}
    assert not FORMAT.knows(Source("x", raw=raw(qwen)))
    for other in (b"", b"{}", b"[]", b"\xff\xfe", b'{"role":"user","content":"a"}\n' * 3):
        assert not FORMAT.knows(Source("x", raw=other))


def test_the_store_lists_sessions_but_not_those_of_subagents(tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "projects" / "-work"
    (folder / "s-1" / "subagents").mkdir(parents=True)
    (folder / "s-1.jsonl").write_bytes(raw(user("u1", None, "<command-name>/x"), user("u2", "u1", "Fix the  bug")))
    (folder / "s-2.jsonl").write_bytes(raw({"type": "summary", "summary": "t", "leafUuid": "x"}))
    (folder / "agent-1.jsonl").write_bytes(raw(user("u1", None, "x", isSidechain=True)))
    (folder / "s-1" / "subagents" / "agent-2.jsonl").write_bytes(raw(user("u1", None, "x", isSidechain=True)))
    found = [one for path in FORMAT.files({}, tmp_path) for one in FORMAT.sessions(Source.of_file(path))]
    assert [(one.path.name, one.title, one.directory) for one in found] == [("s-1.jsonl", "Fix the bug", "/work")]
    assert found[0].at > 0
    assert list(FORMAT.files({"CLAUDE_CONFIG_DIR": str(tmp_path / ".claude")}, Path("/nowhere")))


@pytest.mark.parametrize("key", ["custom-title", "summary", "ai-title"])
def test_the_title_that_was_given_last_counts(key: str) -> None:
    field = {"custom-title": "customTitle", "summary": "summary", "ai-title": "aiTitle"}[key]
    titles = [{"type": key, field: title, "leafUuid": "u1"} for title in ("First", "Second", "Third")]
    found = read(titles[0], user("u1", None, "Start"), titles[1], answer("a1", "u1", "Ready"), titles[2])
    assert found.copy.info.name == "Third"


def test_a_summary_without_a_mark_is_a_compaction_of_its_own() -> None:
    first = [user("u1", None, "Start"), answer("a1", "u1", "Ready"), boundary("b1", "a1"), summary("s1", "b1", "One.")]
    later = [user("u2", "s1", "Go on"), answer("a2", "u2", "Done"), summary("s2", "a2", "Two.")]
    found = read(*first, *later).copy
    assert [one.prose for one in found.summaries] == ["One.", "Two."]
    assert len(found.compactions) == 2
