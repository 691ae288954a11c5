"""What is written for another agent is read back by nca's reader of that agent's sessions."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nca.context.rules.cut_points import blocks
from nca.context.rules.messages import NO_OUTPUT
from nca.context.view import Marker, Stub, Summary, Verbatim, View
from nca.errors import UsageError
from nca.humanize import counted
from nca.messages import AttachmentPart, MediaPart, Message, TextPart, ToolCall, Usage, user_message
from nca.sessions.transfer import SessionCopy
from nca.sessions.usage import UsageRow
from nca.transcripts.conversation_file import ConversationFile, read_conversation
from nca.transcripts.formats.registry import format_named
from nca.transcripts.formats.source import Source
from nca.transcripts.outgoing.conversation import AGENTS, Written, agent_named, outgoing, write_for
from nca.wire import content_text
from nca.words import words
from tests.context.logs import logs
from tests.transcripts.outgoing.sessions import SUMMARIZED, SUMMARY, TALK, compacted, real_talks, session

PNG = "data:image/png;base64,iVBORw0KGgo="


def written(name: str, copy: SessionCopy, home: Path) -> Written:
    return write_for(name, copy, {}, home)


def read(done: Written) -> ConversationFile:
    return read_conversation(Source.of_file(done.file))


def facts(messages: Iterable[Message]) -> list[Any]:
    """What another agent must get: who said what, the calls, and which result answers which."""
    return [
        (
            message.role,
            content_text(message.content).strip() or NO_OUTPUT * (message.role == "tool"),
            [(call.id, call.name, json.loads(call.arguments)) for call in message.tool_calls],
            message.tool_call_id,
        )
        for message in messages
    ]


def log_of(found: ConversationFile) -> list[Message]:
    return [entry.message for entry in found.copy.entries]


@pytest.mark.parametrize("at", [1e20, -1e20, 1e300])
@pytest.mark.parametrize("name", AGENTS)
def test_a_time_that_cannot_be_is_one_that_the_agent_can_read(name: str, at: float, tmp_path: Path) -> None:
    copy = session()
    info = msgspec.structs.replace(copy.info, created_at=at)
    entries = tuple(msgspec.structs.replace(entry, at=at) for entry in copy.entries)
    impossible = msgspec.structs.replace(copy, info=info, entries=entries)
    assert facts(log_of(read(written(name, impossible, tmp_path)))) == facts(TALK)


@pytest.mark.parametrize("name", AGENTS)
def test_the_file_is_where_the_agent_looks_and_is_read_back(name: str, tmp_path: Path) -> None:
    done = written(name, session(), tmp_path)
    agent = format_named(name)
    assert agent is not None
    assert list(agent.files({}, tmp_path)) == [done.file]
    (stored,) = agent.sessions(Source.of_file(done.file))
    assert stored.directory == "/work"
    found = read(done)
    assert found.agent == agent.title == done.agent
    assert facts(log_of(found)) == facts(TALK)
    failures = [message.tool_call_id for message in log_of(found) if message.is_error]
    assert failures == ([] if name == "codex" else ["call_2"])
    assert done.messages == len(TALK)
    assert done.left_out == ({"failure mark": 1, "name": 1} if name == "codex" else {})
    assert found.copy.info.name == ("" if name == "codex" else "the parser")
    assert done.command.startswith("cd /work && ")
    assert done.file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("name", AGENTS)
def test_a_compaction_stands_where_it_was(name: str, tmp_path: Path) -> None:
    found = read(written(name, compacted(), tmp_path))
    assert facts(log_of(found)) == facts(TALK)
    summary, *rest = found.copy.view(found.copy.head_view).items
    assert isinstance(summary, Summary)
    assert summary.ranges == ((1, SUMMARIZED),)
    assert SUMMARY in summary.text
    assert rest == []


def test_claude_code_finds_nothing_before_a_compaction_by_the_parents_of_its_rows(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in written("claude", compacted(), tmp_path).file.read_text().splitlines()]
    by_id = {row["uuid"]: row for row in rows if "uuid" in row}
    newest = [row for row in rows if "uuid" in row][-1]
    chain = [newest]
    while chain[-1]["parentUuid"] is not None:
        chain.append(by_id[chain[-1]["parentUuid"]])
    assert chain[-1]["subtype"] == "compact_boundary"
    assert chain[-2]["isCompactSummary"]
    assert len(chain) == 2 + len(TALK) - SUMMARIZED
    assert by_id[chain[-1]["logicalParentUuid"]]["message"]["content"][0]["text"] == TALK[SUMMARIZED - 1].content


@pytest.mark.parametrize("name", AGENTS)
def test_real_conversations_come_back_whole(name: str, tmp_path: Path) -> None:
    for number, talk in enumerate(real_talks()):
        assert facts(log_of(read(written(name, session(talk), tmp_path / str(number))))) == facts(talk)


@pytest.mark.parametrize("name", AGENTS)
@given(log=logs(), data=st.data())
@settings(suppress_health_check=list(HealthCheck), max_examples=30, deadline=None)
def test_any_session_comes_back(name: str, log: list[Message], data: st.DataObject) -> None:
    ends = [0, *(last + 1 for _, last in blocks(log)[:-1])]
    upto = data.draw(st.sampled_from(ends))
    copy = compacted(log, upto=upto) if upto else session(log)
    out = outgoing(copy)
    sent = [one.message for one in out.sent]
    with tempfile.TemporaryDirectory() as folder:
        found = log_of(read(written(name, copy, Path(folder))))
    assert facts(found) == facts(sent)
    calls = [call.id for message in found for call in message.tool_calls]
    assert calls == [message.tool_call_id for message in found if message.role == "tool"]
    assert len(set(calls)) == len(calls)


@pytest.mark.parametrize("name", AGENTS)
def test_pictures_and_files_go_along(name: str, tmp_path: Path) -> None:
    picture = MediaPart("image", {"type": "image_url", "image_url": {"url": PNG}})
    talk = [
        Message(
            "user",
            (TextPart("What is this?"), AttachmentPart("a.txt", "one line", 8), TextPart("paste", source="pasted")),
        ),
        Message("assistant", None, (ToolCall("c1", "screenshot", "{}"),)),
        Message("tool", (TextPart("taken"), picture), tool_call_id="c1", name="screenshot"),
        Message("user", (TextPart("And this?"), picture)),
        Message("assistant", "A dot."),
    ]
    found = log_of(read(written(name, session(talk), tmp_path)))
    text = content_text(found[0].content)
    assert all(part in text for part in ("What is this?", "one line", "paste"))
    for place in (2, 3):
        parts = found[place].content
        assert isinstance(parts, tuple)
        assert picture in parts
    assert "A dot." in found[-1].text


def test_what_is_hidden_shortened_or_aside_is_named(tmp_path: Path) -> None:
    talk = [Message("system", "You are a test."), *TALK]
    items = (
        Verbatim(1, 2),
        Summary("s1", ((3, 5),), "summed up\n\n[recall expand=3-5 shows the messages that this stands for.]"),
        Verbatim(6, 8),
        Stub(9, "[cleared: recall expand=9]", "prune"),
    )
    copy = session(talk, view=View(items, 10))
    out = outgoing(copy)
    assert [one.message for one in out.earlier] == list(TALK[:4])
    assert out.summary.startswith("user: Why does it fail? Look.\n\nsummed up\n\n`nca sessions show ")
    assert out.later[3].message.text == "[cleared]"
    done = written("claude", copy, tmp_path)
    assert done.left_out == {"system prompt": 1}
    assert done.cut == 1


def test_what_is_not_written_is_counted_in_english() -> None:
    out = outgoing(session())
    named = set(out.left_out).union(*(agent_named(name).left_out(out) for name in AGENTS))
    assert sorted(counted(2, noun) for noun in named) == [
        "2 command-like messages",
        "2 failure marks",
        "2 names",
        "2 pins",
        "2 set-aside messages",
        "2 system prompts",
        "2 thoughts",
    ]


def test_a_cleared_context_says_so() -> None:
    out = outgoing(session(view=View((Marker("t1", ((1, 5),), ""),), 6)))
    assert out.summary.startswith("The earlier conversation was left out.")


def test_times_grow_and_ids_are_new() -> None:
    copy = session([Message("user", str(number)) for number in range(50)])
    copy = msgspec.structs.replace(
        copy, entries=tuple(msgspec.structs.replace(entry, at=0.0) for entry in copy.entries)
    )
    first, second = outgoing(copy), outgoing(copy)
    times = [one.at for one in first.later]
    assert times == sorted(set(times))
    assert first.id != second.id


def test_an_existing_file_stays(tmp_path: Path) -> None:
    file = tmp_path / "talk.jsonl"
    file.write_text("mine")
    with pytest.raises(UsageError, match=r"talk\.jsonl already exists; nothing was written"):
        write_for("claude", session(), {}, tmp_path, str(file))
    assert file.read_text() == "mine"


@pytest.mark.parametrize("name", AGENTS)
def test_a_session_whose_every_turn_was_taken_back_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no conversation to write"):
        written(name, session(view=View((), len(TALK) + 1, aside=((1, len(TALK)),))), tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_agent_that_is_not_known_is_refused() -> None:
    with pytest.raises(UsageError, match="--as: 'emacs' is not valid; valid: claude"):
        agent_named("emacs")


def test_gemini_finds_the_session_in_the_folder_of_its_project(tmp_path: Path) -> None:
    temporary = tmp_path / ".gemini" / "tmp"
    (temporary / "work").mkdir(parents=True)
    first = written("gemini", session(), tmp_path)
    assert first.file.parent == temporary / "work-1" / "chats"
    marker = temporary / "work-1" / ".project_root"
    assert marker.read_text() == "/work"
    marker.write_text("/work\n")
    assert written("gemini", session(), tmp_path).file.parent == first.file.parent
    assert marker.read_text() == "/work\n"
    (tmp_path / ".gemini" / "projects.json").write_text('{"projects": {"/other": "other", "/elsewhere": "third"}}')
    assert written("gemini", session(directory=Path("/other")), tmp_path).file.parent.parent.name == "other"
    assert written("gemini", session(directory=Path("/third")), tmp_path).file.parent.parent.name == "third-1"


def test_a_message_that_gemini_takes_for_a_command_is_named(tmp_path: Path) -> None:
    done = written("gemini", session([Message("user", "/etc/hosts is wrong"), Message("assistant", "Why?")]), tmp_path)
    assert done.left_out == {"command-like message": 1}


def test_a_long_folder_name_ends_with_the_hash_that_claude_code_gives_it(tmp_path: Path) -> None:
    directory = Path("/" + "ä long folder/" * 20)
    done = written("claude", session(directory=directory), tmp_path)
    assert done.file.parent.name == ("--" + "-long-folder--" * 20)[:200] + "-niv30s"


def test_each_answer_has_its_own_model_and_usage() -> None:
    copy = session([one for n in range(3) for one in (user_message(words(f"Why {n}?")), Message("assistant", f"{n}."))])
    reports = [UsageRow(seq, f"model-{seq}", Usage(700 + seq, 20, 10), 0, 0.0) for seq in (1, 3)]
    out = outgoing(msgspec.structs.replace(copy, usage=tuple(reports)))
    answers = [one for one in out.sent if one.message.role == "assistant"]
    assert [one.model for one in answers] == ["model-1", "model-3", copy.info.model]
    assert [one.usage and one.usage.prompt_tokens for one in answers] == [701, 703, None]
