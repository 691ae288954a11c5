"""What each format says of itself: compactions, branches, models, usage, pictures, thoughts and errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nca.context.file_reads import file_use
from nca.errors import InvalidMessages
from nca.messages import MediaPart, TextPart, Usage
from nca.transcripts.conversation_file import read_conversation
from nca.transcripts.formats.event_logs import KIMI_CODE
from nca.transcripts.formats.records import About, Compacted, Live, Record, Said, Unreadable
from nca.transcripts.formats.registry import recognise
from nca.transcripts.formats.source import Source
from tests.transcripts.formats.samples import ASKED, LAST, SAMPLES, write_json, write_lines

QWEN = {"type": "system", "subtype": "custom_title", "parentUuid": "u9", "sessionId": "s1"}
CONTEXT = "<session_context>\nThis is the Gemini CLI.\n</session_context>"


def records(path: Path, key: str = "") -> list[Record]:
    source = Source.of_file(path)
    found = recognise(source)
    assert found is not None
    return list(found.read(source, key))


def sample(name: str, folder: Path) -> list[Record]:
    return records(SAMPLES[name][1](folder))


def said(found: list[Record]) -> list[Said]:
    return [one for one in found if isinstance(one, Said)]


def compactions(found: list[Record]) -> list[Compacted]:
    return [one for one in found if isinstance(one, Compacted)]


def live(found: list[Record]) -> frozenset[str]:
    [ids] = [one.ids for one in found if isinstance(one, Live)]
    return ids


def about(found: list[Record], field: str) -> str:
    values = [str(getattr(one, field)) for one in found if isinstance(one, About)]
    return next(filter(None, reversed(values)), "")


@pytest.mark.parametrize(
    ("name", "kept", "before"),
    [
        ("pi", ("e5",), 1234),
        ("copilot", ("e3", "e14"), 1234),
        ("gemini", ("m3", "m4"), 0),
        ("qwen", ("u2", "u3"), 1234),
        ("opencode", ("msg_3",), 103),
        ("opencode-files", ("msg_3",), 103),
        ("opencode-export", ("msg_3",), 103),
        ("openhands", ("id000000",), 0),
        ("crush", (), 0),
        ("kimi-code", ("line 3",), 1234),
        ("goose", (), 0),
    ],
)
def test_a_compaction_says_what_it_kept(name: str, kept: tuple[str, ...], before: int, tmp_path: Path) -> None:
    [found] = compactions(sample(name, tmp_path))
    assert "They look for a fault." in found.summary
    assert (found.kept, found.tokens_before) == (kept, before)


@pytest.mark.parametrize(
    "name", ["pi", "gemini", "qwen", "opencode", "opencode-files", "llm-threads", "chatgpt", "kimi-code"]
)
def test_what_was_left_is_not_live(name: str, tmp_path: Path) -> None:
    found = sample(name, tmp_path)
    [left] = [one for one in said(found) if one.message.text == "A way that was left."]
    assert left.id not in live(found)
    assert all(one.id in live(found) for one in said(found) if one.message.text in (ASKED, LAST))


@pytest.mark.parametrize(
    ("name", "usage", "model"),
    [
        ("pi", Usage(103, 5, 90, 3, 0, 0.02), "opus"),
        ("copilot", Usage(100, 5, 90, 3), "opus"),
        ("gemini", Usage(100, 12, 90, 0, 7), "gemini-3-pro"),
        ("qwen", Usage(100, 12, 90, 0, 7), "qwen3-coder"),
        ("opencode", Usage(103, 12, 90, 3, 7, 0.02), "opus"),
        ("llm", Usage(100, 5, 90), "gpt-5"),
        ("llm-threads", Usage(100, 5), "gpt-5"),
        ("openhands", Usage(100, 5, 2, cost=0.01), "opus"),
        ("mini-swe-agent", Usage(100, 5, 90, cost=0.02), "opus"),
        ("gptme", Usage(103, 5, 90, 3, 0, 0.02), "opus"),
        ("goose", Usage(103, 5, 90, 3, cost=0.02), "opus"),
        ("kimi-code", Usage(103, 5, 90, 3), "kimi-k2"),
        ("crush", None, "opus"),
        ("cline", None, "opus"),
    ],
)
def test_usage_and_model_stand_at_the_answer(name: str, usage: Usage | None, model: str, tmp_path: Path) -> None:
    first = next(one for one in said(sample(name, tmp_path)) if one.message.role == "assistant")
    assert (first.usage, first.model) == (usage, model)
    assert first.at == 1_767_607_200.0 or name.startswith("llm")


@pytest.mark.parametrize(
    "name",
    [
        *("pi", "gemini", "qwen", "opencode", "llm", "llm-threads", "openhands", "mini-swe-agent", "chatgpt"),
        *("copilot", "crush", "goose", "cline", "kimi", "kimi-code", "vibe"),
    ],
)
def test_thoughts_are_reasoning(name: str, tmp_path: Path) -> None:
    thoughts = [one.message.reasoning for one in said(sample(name, tmp_path)) if one.message.reasoning]
    assert any("first." in one or "So." in one for one in thoughts)


@pytest.mark.parametrize(
    "name", ["pi", "copilot", "gemini", "qwen", "opencode", "llm", "llm-threads", "crush", "goose", "kimi", "kimi-code"]
)
def test_pictures_are_pictures(name: str, tmp_path: Path) -> None:
    asked = next(one.message for one in said(sample(name, tmp_path)) if ASKED in one.message.text)
    [picture] = [part for part in asked.content or () if isinstance(part, MediaPart)]
    assert picture.kind == "image"
    assert picture.payload["image_url"]["url"].startswith("data:image/png;base64,")


@pytest.mark.parametrize(
    ("name", "directory", "title"),
    [
        ("pi", "/repo", "Parser"),
        ("copilot", "/repo", "Parser"),
        ("gemini", "", "Parser"),
        ("qwen", "/repo", "Parser"),
        ("opencode", "/repo", "Parser"),
        ("opencode-files", "/repo", "Parser"),
        ("opencode-export", "/repo", "Parser"),
        ("llm", "", "Parser"),
        ("openhands", "/repo", ""),
        ("chatgpt", "", "Parser"),
        ("crush", "", "Parser"),
        ("goose", "/repo", "Parser"),
        ("cline", "/repo", "Parser"),
        ("gptme", "", "2026-01-05-parser"),
        ("kimi", "/repo", ""),
        ("kimi-code", "/repo", "Parser"),
        ("vibe", "/repo", "Parser"),
    ],
)
def test_the_session_is_known_without_reading_it(name: str, directory: str, title: str, tmp_path: Path) -> None:
    path = SAMPLES[name][1](tmp_path)
    source = Source.of_file(path)
    found = recognise(source)
    assert found is not None
    [stored] = found.sessions(source)
    assert (stored.agent, stored.path, stored.directory) == (found.name, path, directory)
    assert stored.title in ("", title)
    assert stored.at > 0
    whole = records(path, stored.key)
    assert (about(whole, "directory"), about(whole, "title")) == (directory, title)


@pytest.mark.parametrize("name", ["pi", "copilot"])
def test_a_command_of_the_person_says_how_it_ended(name: str, tmp_path: Path) -> None:
    texts = [one.message.text for one in said(sample(name, tmp_path))]
    assert "$ git diff\n+x\nexit code 3" in texts


def test_the_first_version_of_pi_counts_its_entries(tmp_path: Path) -> None:
    def entry(text: str) -> dict[str, Any]:
        return {"type": "message", "message": {"role": "user", "content": text}}

    path = write_lines(
        tmp_path / "old.jsonl",
        {"type": "session", "id": "s", "cwd": "/repo"},
        *map(entry, "abc"),
        {"type": "compaction", "summary": "S", "firstKeptEntryIndex": 3, "tokensBefore": 9},
        entry("d"),
    )
    found = records(path)
    ids = {one.message.text: one.id for one in said(found)}
    [compaction] = compactions(found)
    assert compaction.kept == (ids["c"],)
    assert not any(isinstance(one, Live) for one in found)


def test_pi_goes_on_where_a_parent_is_missing(tmp_path: Path) -> None:
    def entry(name: str, parent: str | None) -> dict[str, Any]:
        message = {"role": "user", "content": name}
        return {"type": "message", "id": name, "parentId": parent, "message": message}

    header = {"type": "session", "version": 3, "id": "s", "cwd": "/"}
    path = write_lines(
        tmp_path / "a.jsonl", header, entry("a", None), entry("b", "lost"), entry("c", "b"), entry("d", "d")
    )
    assert live(records(path)) == {"a", "b", "c", "d"}


def test_a_command_to_gemini_itself_is_aside(tmp_path: Path) -> None:
    found = said(sample("gemini", tmp_path))
    assert [one.message.text for one in found if one.is_aside] == ["/model pro"]


@pytest.mark.parametrize(
    ("content", "sources"),
    [
        (f"{CONTEXT}", {CONTEXT: "nca"}),
        (f"{CONTEXT}\n\nFix it.", {CONTEXT: "nca", "Fix it.": "foreign"}),
        ([{"text": CONTEXT}, {"text": "Fix it."}], {CONTEXT: "nca", "Fix it.": "foreign"}),
        ("<session_context> is cut", {"<session_context> is cut": "nca"}),
        ("What is <session_context>?", {"What is <session_context>?": ""}),
    ],
)
def test_the_context_that_gemini_adds_is_not_the_persons(content: Any, sources: dict[str, str], tmp_path: Path) -> None:
    row = {"id": "1", "type": "user", "content": content, "timestamp": "2026-01-05T10:00:00Z"}
    path = write_lines(tmp_path / "session-1.jsonl", {"sessionId": "s", "projectHash": "h"}, row)
    [message] = [entry.message for entry in read_conversation(Source.of_file(path)).copy.entries]
    parts = message.content if isinstance(message.content, tuple) else [TextPart(message.text, source=message.source)]
    assert {part.text.strip(): part.source for part in parts if isinstance(part, TextPart)} == sources


def test_a_line_that_gemini_adds_while_it_is_read_is_read(tmp_path: Path) -> None:
    """Gemini's files are read twice: a message is what its last line says."""
    path = tmp_path / "session-1.jsonl"
    lines = [
        {"sessionId": "s", "projectHash": "h", "startTime": "2031-01-01T00:00:00Z"},
        {"id": "a", "type": "user", "content": "Hi."},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    class Growing(Source):
        def rows(self) -> Iterator[Any]:
            yield from super().rows()
            if not path.read_text().endswith('Ho."}\n'):
                with path.open("a") as file:
                    file.write(json.dumps({"id": "b", "type": "gemini", "content": "Ho."}) + "\n")

    found = read_conversation(Growing.of_file(path))
    assert [entry.message.text for entry in found.copy.entries] == ["Hi.", "Ho."]


def test_an_older_session_of_gemini_is_one_object(tmp_path: Path) -> None:
    messages = [
        {"id": "1", "type": "user", "content": "Hi", "timestamp": "2026-01-05T10:00:00Z"},
        {"id": "2", "type": "gemini", "content": "Hello", "timestamp": "2026-01-05T10:00:01Z"},
    ]
    path = tmp_path / "session-1.json"
    path.write_text(json.dumps({"sessionId": "s", "projectHash": "p", "messages": messages}, indent=2))
    assert [one.message.text for one in said(records(path))] == ["Hi", "Hello"]


def test_what_aider_shows_was_not_sent(tmp_path: Path) -> None:
    found = said(sample("aider", tmp_path))
    sent = [(one.message.role, one.message.text) for one in found if not one.is_aside]
    assert sent == [
        ("user", f"{ASKED}\nIt is new."),
        ("assistant", "I look.\n\n#### Where\nIn `parse`."),
        ("tool", "Applied edit to parser.py"),
        ("user", "Go on."),
        ("assistant", LAST),
    ]
    answer = next(one for one in found if one.message.role == "assistant")
    assert answer.usage == Usage(2300, 123, 90, 0, cost=0.02)
    assert answer.model == "opus"


@pytest.mark.parametrize("between", ["", "\n", "> Allow edits to src/a b.py? y  \n"])
def test_edits_that_aider_applied_are_changes_of_files(between: str, tmp_path: Path) -> None:
    path = tmp_path / ".aider.chat.history.md"
    edit = "src/a b.py\n```\n<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\n```\n"
    path.write_text(
        f"\n# aider chat started at 2026-01-05 10:00:00\n\n#### Rename it.  \n\n{edit}\n"
        f"> Tokens: 10 sent, 5 received.  \n{between}"
        "> Applied edit to src/a b.py  \n> Applied edit to app\\root.tsx  \n> Commit 1a2b3c4 refactor: Rename  \n\n"
        f"#### And there.  \n\n{edit}\n> The LLM did not conform to the edit format.  \n"
    )
    applied, refused = (one for one in said(records(path)) if one.message.role == "assistant")
    uses = [file_use(call) for call in applied.message.tool_calls]
    assert [(use.path, use.is_write) for use in uses if use] == [("src/a b.py", True), ("app/root.tsx", True)]
    assert applied.usage == Usage(10, 5)
    assert not refused.message.tool_calls


def test_a_history_of_aider_holds_several_chats(tmp_path: Path) -> None:
    path = SAMPLES["aider"][1](tmp_path)
    second = "\n# aider chat started at 2026-01-05 10:00:00\n\n#### Again  \n\nYes.\n\n"
    third = "\n# aider chat started at 2026-01-06 08:00:00\n\n#### /add a.py  \n\n> Added a.py  \n\n#### Hi  \n\nHo.\n"
    unused = "\n# aider chat started at 2026-01-07 09:00:00\n\n> Aider v0.86.1  \n"
    path.write_text(path.read_text() + second + third + unused)
    source = Source.of_file(path)
    found = recognise(source)
    assert found is not None
    stored = list(found.sessions(source))
    assert [one.title for one in stored[1:]] == ["Again", "Hi"], "what the person sent first"
    keys = [one.key for one in stored]
    assert keys == ["2026-01-05 10:00:00", "2026-01-05 10:00:00 (2)", "2026-01-06 08:00:00"]
    texts = [[one.message.text for one in said(records(path, key))] for key in keys]
    chats = [["Again", "Yes."], ["/add a.py", "Added a.py", "Hi", "Ho."]]
    assert texts[1:] == chats
    assert [one.message.text for one in said(records(path))] == chats[1], "the last in which something was said"


def test_calls_of_one_answer_of_openhands_are_one_message(tmp_path: Path) -> None:
    found = said(sample("openhands", tmp_path))
    [answer] = [one.message for one in found if one.message.tool_calls]
    assert [call.id for call in answer.tool_calls] == ["t1", "t2"]
    assert [one.usage for one in found if one.message.text == LAST] == [Usage(60, 0, cost=0.0)]


def test_events_of_openhands_may_be_lines(tmp_path: Path) -> None:
    event = {"id": "1", "source": "user", "timestamp": "2026-01-05T10:00:00", "kind": "MessageEvent"}
    event["llm_message"] = {"role": "user", "content": [{"type": "text", "text": "Hi"}]}  # type: ignore[assignment]
    assert [one.message.text for one in said(records(write_lines(tmp_path / "e.jsonl", event)))] == ["Hi"]


def test_a_trajectory_without_a_history_is_read_from_its_steps(tmp_path: Path) -> None:
    steps = [
        {"query": [{"role": "user", "content": "Fix it."}], "response": "I look.", "observation": "a.py"},
        {"response": "Done.", "observation": ""},
    ]
    found = said(records(write_json(tmp_path / "a.traj", {"trajectory": steps, "info": {}})))
    texts = [(one.message.role, one.message.text) for one in found]
    assert texts == [("user", "Fix it."), ("assistant", "I look."), ("user", "a.py"), ("assistant", "Done.")]


def test_a_data_set_has_a_conversation_a_line(tmp_path: Path) -> None:
    rows = [{"id": name, "conversations": [{"from": "human", "value": name}]} for name in ("a", "b")]
    path = write_lines(tmp_path / "d.jsonl", *rows)
    assert [one.message.text for one in said(records(path, "b"))] == ["b"]
    with pytest.raises(InvalidMessages, match="holds no conversation c"):
        records(path, "c")


def test_the_text_of_a_thread_is_put_together_from_its_fragments(tmp_path: Path) -> None:
    asked = next(one.message for one in said(sample("llm-threads", tmp_path)) if one.message.role == "user")
    assert asked.text == ASKED


def test_the_system_prompt_of_llm_is_there_once(tmp_path: Path) -> None:
    messages = [one.message for one in said(sample("llm", tmp_path))]
    assert [message.role for message in messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert [part.text for part in messages[1].attachments] == ["def parse(): ..."]


def test_what_cline_leaves_out_is_a_cut(tmp_path: Path) -> None:
    [cut] = compactions(sample("cline", tmp_path))
    assert (cut.summary, cut.kept, cut.place) == ("", ("message 1", "message 2"), "message 4")


def test_a_summary_of_roo_code_stands_for_what_it_marks(tmp_path: Path) -> None:
    rows = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b", "condenseParent": "x"},
        {"role": "assistant", "content": "They talk.", "isSummary": True, "condenseId": "x"},
        {"role": "user", "content": "c"},
    ]
    [found] = compactions(records(write_json(tmp_path / "tasks" / "1" / "api_conversation_history.json", rows)))
    assert (found.summary, found.kept) == ("They talk.", ("message 1",))


def test_what_goose_never_sent_is_not_live(tmp_path: Path) -> None:
    found = sample("goose", tmp_path)
    assert [one.message.text for one in said(found) if one.id not in live(found)] == ["/compact"]


def test_what_tells_the_model_of_goose_of_a_summary_is_aside(tmp_path: Path) -> None:
    [told] = [one for one in said(sample("goose", tmp_path)) if one.is_aside]
    assert told.message.text.startswith("Your context was compacted")


def test_a_line_that_is_no_json_is_counted_with_its_place(tmp_path: Path) -> None:
    path = SAMPLES["pi"][1](tmp_path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:3], "{broken", *lines[3:], '{"type": "mess']))
    found = [one for one in records(path) if isinstance(one, Unreadable)]
    assert [one.place for one in found] == ["line 4"]  # the last line is not complete yet


def test_nothing_of_a_plain_transcript_is_taken_for_an_agent(tmp_path: Path) -> None:
    call = {"id": "t", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    openai = [
        {"role": "user", "content": '"mapping" "conversations" "from"'},
        {"role": "assistant", "tool_calls": [call]},
    ]
    anthropic = {"system": "S", "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]}
    responses = {"input": [{"type": "message", "role": "user", "content": "Hi"}]}
    for number, value in enumerate((openai, {"messages": openai}, anthropic, responses)):
        assert recognise(Source.of_file(write_json(tmp_path / f"{number}.json", value))) is None
    assert recognise(Source.of_file(write_lines(tmp_path / "lines.jsonl", *openai))) is None


def test_what_a_compaction_of_kimi_code_keeps_is_what_the_person_said(tmp_path: Path) -> None:
    path = SAMPLES["kimi-code"][1](tmp_path)
    lines = path.read_text(encoding="utf-8").splitlines()
    again = next(line for line in lines if "context.apply_compaction" in line)
    path.write_text("\n".join([*lines, again, again]), encoding="utf-8")
    found = records(path)
    prompts = {one.id for one in said(found) if one.message.role == "user"}
    kept = [one.kept for one in compactions(found)]
    assert len(kept) == 3
    assert kept[1] == kept[2]
    assert set(kept[1]) <= prompts


def test_a_subagent_of_kimi_code_belongs_to_its_session(tmp_path: Path) -> None:
    main = SAMPLES["kimi-code"][1](tmp_path / ".kimi-code" / "sessions" / "wd_repo")
    own = main.parents[1] / "a7" / "wire.jsonl"
    own.parent.mkdir()
    own.write_bytes(main.read_bytes())
    assert list(KIMI_CODE.files({}, tmp_path)) == [main]
    assert list(KIMI_CODE.subagents({}, tmp_path)) == [own]
    [stored] = KIMI_CODE.sessions(Source.of_file(own))
    assert (stored.parent, stored.directory, stored.title) == ("s1", "/repo", "")
    assert about(records(own), "session") == "s1/a7"


@pytest.mark.parametrize(
    ("name", "renamed"),
    [
        ("gemini", lambda title: {"$set": {"summary": title}}),
        ("qwen", lambda title: {**QWEN, "uuid": title, "systemPayload": {"customTitle": title}}),
        ("pi", lambda title: {"type": "session_info", "name": title}),
    ],
)
def test_a_session_that_was_named_again_has_its_last_name(
    name: str, renamed: Callable[[str], dict[str, Any]], tmp_path: Path
) -> None:
    path = SAMPLES[name][1](tmp_path)
    more = "".join(f"{json.dumps(renamed(title))}\n" for title in ("Lexer", "Printer"))
    path.write_text(path.read_text() + more)
    source = Source.of_file(path)
    found = recognise(source)
    assert found is not None
    [stored] = found.sessions(source)
    assert stored.title in ("", "Printer")
    assert about(records(path), "title") == "Printer"


def test_a_summary_of_gemini_goes_with_all_that_it_stands_for(tmp_path: Path) -> None:
    def message(id: str, text: str) -> dict[str, Any]:
        return {"id": id, "type": "user", "content": text, "timestamp": "2026-01-05T10:00:00Z"}

    header = {"sessionId": "s1", "projectHash": "abc"}
    begun = (header, message("m1", "One"), message("m2", "Two"))
    summary = {"$set": {"messages": [message("m3", "<state_snapshot>Both.</state_snapshot>"), message("m4", "Two")]}}
    for to, left in (("m3", {"m5"}), ("nowhere", {"m5"}), ("m4", {"m1", "m3", "m5"})):
        path = write_lines(tmp_path / "a.jsonl", *begun, summary, {"$rewindTo": to}, message("m5", "Anew"))
        assert live(records(path)) == left
