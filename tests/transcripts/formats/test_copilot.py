"""Sessions that Copilot CLI 1.0.102 had with a scripted model: nca shows what the model was sent at the end."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from nca.context.history import History
from nca.context.request import repair, resolve
from nca.messages import Message
from nca.transcripts.conversation_file import ConversationFile, read_conversation
from nca.transcripts.formats.source import Source

RECORDED = Path(__file__).parents[2] / "data" / "copilot"
ADDED = re.compile(r"<current_datetime>.*?</current_datetime>\n\n|\n*<tagged_files>.*?</tagged_files>", re.DOTALL)


def read(name: str) -> ConversationFile:
    return read_conversation(Source.of_file(RECORDED / name / "events.jsonl"))


def shown(name: str) -> list[Message]:
    """What the model sees of it, but the last answer, which was not sent."""
    copy = read(name).copy
    return repair(resolve(History(copy.entries, copy.shown_by(copy.views[-1]))))[:-1]


def sent(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((RECORDED / name / "request.json").read_text())
    return found


@pytest.mark.parametrize("name", ["rewound", "compacted"])
def test_all_calls_and_results_are_those_that_the_model_was_sent(name: str) -> None:
    rows = sent(name)
    calls = [
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
        for row in rows
        for call in row.get("tool_calls", ())
    ]
    messages = shown(name)
    assert [(c.id, c.name, json.loads(c.arguments)) for m in messages for c in m.tool_calls] == calls
    results = {row["tool_call_id"]: row["content"] for row in rows if row["role"] == "tool"}
    assert {m.tool_call_id: m.text for m in messages if m.role == "tool"} == results
    answers = [row["content"] for row in rows if row["role"] == "assistant" and row["content"]]
    assert [m.text for m in messages if m.role == "assistant" and m.text] == answers


def test_a_rewound_session_holds_what_the_person_said_and_ran() -> None:
    found = read("rewound")
    assert found.notes == ()
    assert (found.copy.info.name, found.copy.info.directory) == ("Notes: a talk", "/work")
    asked = [row["content"] for row in sent("rewound") if row["role"] == "user"]
    texts = [row if isinstance(row, str) else row[0]["text"] for row in asked]
    ran = "$ echo from the person; exit 3\nfrom the person\nexit code 3"
    expected = [ran if "<user_shell_command_output>" in text else ADDED.sub("", text) for text in texts]
    assert [m.text for m in shown("rewound") if m.role == "user"] == expected
    failed = [m.tool_call_id for m in shown("rewound") if m.is_error]
    assert failed == ["call_2_1", "call_5_0", "call_5_2"]


def test_a_compaction_keeps_the_words_and_what_was_said_while_it_ran() -> None:
    copy = read("compacted").copy
    tokens = [(one.tokens_before, one.tokens_after) for one in copy.compactions if "summarize" in one.stages]
    assert tokens == [(22337, 15973), (22059, 16050)]
    summary = sent("compacted")[0]["content"]
    words = re.findall(r"<user_message>\n(.*?)\n</user_message>", summary, re.DOTALL)
    assert words
    assert [m.text for m in shown("compacted") if m.role == "user" and m.source == "typed"] == words
    assert "They look at notes.txt" in shown("compacted")[1].text


def test_what_was_cleared_comes_back_with_no_later_compaction(tmp_path: Path) -> None:
    events: list[tuple[str, dict[str, Any]]] = [
        ("session.start", {"sessionId": "s1"}),
        *(("user.message", {"content": "Before."}), ("assistant.message", {"content": "One."})),
        ("session.context_cleared", {}),
        *(("user.message", {"content": "Behind."}), ("assistant.message", {"content": "Two."})),
        *(("session.compaction_start", {}), ("session.compaction_complete", {"summaryContent": "All of it."})),
        *(("user.message", {"content": "Last."}), ("assistant.message", {"content": "Three."})),
    ]
    rows = [{"type": kind, "data": data, "id": f"e{number}"} for number, (kind, data) in enumerate(events)]
    path = tmp_path / "events.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    copy = read_conversation(Source.of_file(path)).copy
    seen = repair(resolve(History(copy.entries, copy.shown_by(copy.views[-1]))))
    assert [message.text for message in seen if message.role == "user" and message.source == "typed"] == [
        *("Behind.", "Last.")
    ]
