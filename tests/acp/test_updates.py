"""Events as updates, without a client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from acp import schema

from nca.acp.tool_calls import Outlet
from nca.acp.updates import Updates
from nca.events import (
    ContextCompaction,
    Notice,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnFinished,
)


def listening(*, is_open: bool = True) -> tuple[Updates, Outlet, list[dict[str, Any]]]:
    sent: list[dict[str, Any]] = []
    outlet = Outlet(lambda message: sent.append(message["params"]["update"]))
    outlet.session_id = "s"
    if is_open:
        outlet.open()
    return Updates(outlet, Path("/here")), outlet, sent


def test_nothing_is_sent_before_the_client_knows_the_session() -> None:
    updates, outlet, sent = listening(is_open=False)
    updates.on_event(Notice("Settings were ignored."))
    updates.on_event(TextDelta("Hello"))
    assert sent == []
    outlet.open()
    assert [one["content"]["text"] for one in sent] == ["\n\n> Settings were ignored.\n\n", "Hello"]


def test_escape_codes_reach_no_editor_even_in_pieces() -> None:
    updates, _, sent = listening()
    for piece in ("red \x1b[3", "1mtext", "\x1b]0;title\x07", " end\u202e"):
        updates.on_event(TextDelta(piece))
    updates.on_event(TurnFinished("answered", "", 1, 0.1))
    assert "".join(one["content"]["text"] for one in sent) == "red text end"


def test_a_call_that_is_cut_off_ends_as_failed_and_a_repeated_id_is_another_call() -> None:
    updates, _, sent = listening()
    for _ in range(2):
        updates.on_event(ToolStarted("call_0", "shell", '{"command": "ls"}', "$ ls"))
        updates.on_event(ToolProgress("call_0", "half"))
        updates.on_event(TurnFinished("interrupted", "", 1, 0.1))
    assert [(one["toolCallId"], one.get("status"), one.get("title")) for one in sent] == [
        ("call_0", "in_progress", "$ ls"),
        ("call_0", None, "$ ls · half"),
        ("call_0", "failed", None),
        ("call_0#2", "in_progress", "$ ls"),
        ("call_0#2", None, "$ ls · half"),
        ("call_0#2", "failed", None),
    ]
    # Nothing of a call that never began.
    updates.on_event(ToolFinished("other", "shell", False, "done", 0.1))
    assert len(sent) == 6


def test_a_call_whose_id_another_had_in_a_terminal_shows_its_own_result() -> None:
    updates, _, sent = listening()
    for is_in_terminal in (True, False):
        updates.on_event(ToolStarted("call_0", "shell", '{"command": "ls"}', "$ ls"))
        if is_in_terminal:
            updates.shown_in_terminal("call_0", schema.TerminalToolCallContent(terminal_id="t", type="terminal"))
        updates.on_event(ToolFinished("call_0", "shell", False, "done", 0.1))
    assert ["content" in one for one in sent if one.get("status") == "completed"] == [False, True]


def test_each_compaction_is_one_call() -> None:
    updates, _, sent = listening()
    updates.on_event(ContextCompaction("starting", "threshold"))
    updates.on_event(ContextCompaction("completed", "threshold", tokens_before=900, tokens_after=300))
    updates.on_event(ContextCompaction("starting", "idle"))
    updates.on_event(ContextCompaction("skipped", "idle"))
    updates.on_event(ContextCompaction("starting", "manual"))
    updates.on_event(ContextCompaction("failed", "manual", message="interrupted"))
    updates.on_event(ContextCompaction("preview", "manual", tokens_before=900, tokens_after=300))
    assert [(one["toolCallId"], one["status"], one["title"]) for one in sent] == [
        ("compaction-1", "in_progress", "Compacting the context"),
        ("compaction-1", "completed", "Compacted 900 → 300 tokens"),
        ("compaction-2", "in_progress", "Compacting the context"),
        ("compaction-2", "failed", "Compaction stopped; nothing changed."),
        ("compaction-3", "completed", "Would compact 900 → 300 tokens"),
    ]


def test_why_a_turn_stopped_short_is_said() -> None:
    updates, _, sent = listening()
    updates.on_event(TurnFinished("max_steps", "", 50, 0.1))
    assert "Stopped after 50 steps" in sent[0]["content"]["text"]
