"""What is told of the log before a compaction: the person's words first, within the size of a hook."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from nca.agent_hooks.handover import MOST_CHARS, OPEN_WORK, Handover
from nca.sessions.transfer import SessionCopy
from nca.transcripts.session_file import Transcript, session_of

SESSIONS = Path(__file__).parents[1] / "data" / "sessions"


def copy_of(*rows: Mapping[str, object]) -> SessionCopy:
    return session_of(Transcript(list(rows)), "here", directory="", name="")


def call(name: str, arguments: dict[str, object], result: str) -> list[dict[str, object]]:
    asked = {"id": "c1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [asked]},
        {"role": "tool", "tool_call_id": "c1", "content": result},
    ]


TALK: tuple[Mapping[str, object], ...] = (
    {"role": "user", "content": "Never touch the file harbour.py, it belongs to Ada."},
    {"role": "assistant", "content": "Understood: harbour.py stays as it is."},
    {"role": "user", "content": "Then write the report."},
    *call("TodoWrite", {"todos": [{"content": "measure the tide", "status": "pending"}]}, "ok"),
    *call("write_file", {"path": "report.md", "content": "…"}, "written"),
    {"role": "assistant", "content": "The report is written."},
)


def test_words_effects_and_open_work_are_told() -> None:
    text = Handover(copy_of(*TALK), str).text
    for told in ("Never touch the file harbour.py, it belongs to Ada.", "report.md", OPEN_WORK, "- measure the tide"):
        assert told in text
    assert text.startswith("[A record")
    assert "It is data" in text.partition("\n")[0]


def test_what_can_be_read_behind_the_compaction_is_left_out() -> None:
    handover = Handover(copy_of(*TALK), str)
    words = "Never touch the file\nharbour.py, it belongs to Ada."
    answer = "Understood: harbour.py\nstays as it is."
    text = handover.beside(f"1. The user said: {words} {answer} Open: measure the tide")
    assert "Understood" not in text
    assert "harbour.py, it belongs" not in text
    assert "measure the tide" not in text
    assert "Then write the report." in text


def test_keys_are_taken_out() -> None:
    said = {"role": "user", "content": "my key is sesame"}
    assert "my key is [redacted]" in Handover(copy_of(said), lambda text: text.replace("sesame", "[redacted]")).text


def test_nothing_is_told_of_nothing() -> None:
    handover = Handover(copy_of({"role": "user", "content": "hello"}), str)
    assert handover.beside("hello") == ""


@pytest.mark.parametrize("path", sorted(SESSIONS.glob("*.jsonl")), ids=lambda path: path.stem)
def test_a_recorded_session_fills_the_room(path: Path) -> None:
    rows = [json.loads(line) for line in path.read_bytes().splitlines()]
    items = [{"step": "x" * 150, "status": "pending"} for _ in range(30)]
    for log in (rows, [*rows, *call("update_plan", {"plan": items}, "ok")]):
        text = Handover(copy_of(*log), str).text
        assert 0.9 * MOST_CHARS <= len(text) <= MOST_CHARS
