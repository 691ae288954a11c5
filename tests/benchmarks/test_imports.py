"""Importing a long session of another program: what is measured is what Claude Code's reader reads."""

from __future__ import annotations

from benchmarks.goals import goals
from benchmarks.imports import imports
from benchmarks.material import coding_session
from tests.benchmarks.samples import figures


def test_all_messages_arrive_and_the_goals_tell_of_them() -> None:
    found = imports(300)
    assert found["messages"] == sum(row["role"] != "system" for row in coding_session(300))
    assert found["first_turn_seconds"] > 0
    found |= {"messages": 100_000, "bytes": 300e6, "seconds": 4.0, "first_turn_seconds": 3.5}
    text = "\n".join(goals({**figures(), "imports": found}))
    assert "100,000 messages in Claude Code's format, 300 MB | 30,000 messages a second | 25,000 | **no** |" in text
    assert "| 3.0 s | 3.5 s | **no** |" in text
