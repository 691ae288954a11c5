"""/todo: the model's list of steps, in the chat and in lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nca.errors import UsageError
from nca.messages import Message, ToolCall
from tests.terminal.stage import a_stage
from tests.terminal.tty import Tty, chats

LONG = "Write the report module with totals by month and by category"


def listed(number: int = 1, **steps: Any) -> Message:
    return Message("assistant", None, (ToolCall(f"t{number}", "todo", json.dumps(steps)),))


async def test_the_list_is_the_newest_one_and_says_where_it_was_left_behind(tmp_path: Path) -> None:
    old, new = listed(open=["one"]), listed(2, doing=LONG, open=["tests\x1b[2J"], done=["read it"])
    with a_stage(tmp_path, [old, new, "So far.", "Fine.", "Well."]) as stage:
        assert "The model keeps no list of steps." in await stage.command("/todo")
        await stage.conversation.send("Go on.")
        in_words = await stage.command("/todo")
        assert in_words.splitlines()[:2] == ["Plan: 1 of 3 done", "done: read it"]
        assert "now: Write the report" in in_words
        assert "open: tests" in in_words
        assert "\x1b" not in in_words
        assert "✓ read it" in await stage.on_a_screen().command("/todos")
        with pytest.raises(UsageError, match="/todo takes no more"):
            await stage.command("/todo more")
        for text in ("Something else.", "And another."):
            await stage.conversation.send(text)
        assert (await stage.command("/todo")).startswith("Plan of message 4: 1 of 3 done")


@pytest.fixture
def tty(tmp_path: Path) -> Iterator[Tty]:
    steps = {"doing": LONG, "open": [f"step {number}" for number in range(6)], "done": ["read it"]}
    with chats(home=str(tmp_path), columns=40, settles=True) as start:
        yield start({"tool": "todo", "arguments": steps}, "Begun.")


def test_it_is_whole_in_a_narrow_window(tty: Tty) -> None:
    tty.line("go")
    tty.sees("Begun.")
    assert "· 4 more" in tty.text()
    tty.command("/todo")
    whole = tty.sees("· step 5")
    assert (
        "Plan: 1 of 8 done\n✓ read it\n› Write the report module with totals by\n  month and by category\n· step 0"
        in whole
    )
