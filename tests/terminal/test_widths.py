"""What the chat prints fits every window: nothing is wider, and no word is cut without a sign of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.cells import cell_len

from nca.config.schema import KEYS
from nca.messages import Message, ToolCall
from nca.terminal.app import ChatApp
from nca.terminal.interrupts import Interrupts
from nca.terminal.panels.config_browser import shown
from nca.terminal.render.draw import Draw
from nca.terminal.render.layout import broken_at_gaps
from nca.terminal.render.screen import Screen
from tests.terminal.stage import Stage, a_stage

WIDTHS = (40, 45, 52, 60, 71, 72, 80, 99, 120, 200)
AT_LARGE = 400
COMMANDS = (
    *("/help", "/help keys", "/help context", "/help config", "/context all", "/context history", "/context diff"),
    *("/tools", "/config", "/config context", "/config all", "/permissions", "/cost", "/mcp", "/jobs", "/effort"),
    *("/memory", "/sessions", "/show 1", "/changes", "/model"),
)
_CODE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
LONG = "The parser reads src/parse.py and fails at line 12 with ValueError: bad token. " * 30


def words(text: str) -> list[str]:
    return [word.strip("`,.:;()") for word in text.replace("·", " ").split()]


async def printed(stage: Stage, command: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("LINES", "50")
    app = ChatApp(stage.conversation, Draw(Screen(stage.answers)), stage.app.reader, Interrupts())
    return _CODE.sub("", await Stage(app, stage.answers, stage.asides).command(command))


async def test_every_answer_of_a_command_fits_every_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "parse.py").write_text("x = 1\n")
    call = Message("assistant", tool_calls=(ToolCall("call-1", "read_file", '{"path": "parse.py"}'),))
    summary = "## Goal and intent\n\nFix src/parse.py."
    replies = [call, *[f"Answer {number}. {LONG}" for number in range(3)], *[summary] * 3]
    with a_stage(tmp_path, replies, window_tokens=20_000) as stage:
        for number in range(3):
            await stage.conversation.send(f"Question {number}: look at src/parse.py and say what is wrong with it.")
        await stage.conversation.context.compact()
        loaded = stage.conversation.loaded
        values = words(" ".join(shown(loaded.value(name)) for name in KEYS))
        for command in COMMANDS:
            whole = words(await printed(stage, command, AT_LARGE, monkeypatch)) + values
            for columns in WIDTHS:
                text = await printed(stage, command, columns, monkeypatch)
                assert text.strip(), command
                assert [line for line in text.splitlines() if cell_len(line.rstrip()) > columns] == [], (
                    command,
                    columns,
                )
                dangling = [line for line in text.splitlines() if line.rstrip().endswith(" ·") or line.startswith("· ")]
                assert dangling == [], (command, columns)
                known = " ".join(whole)
                # Beside a one, a heading stands without its s.
                new = (word for word in words(text) if word not in whole and f"{word}s" not in whole)
                unknown = [word for word in new if "…" not in word]
                # A word that is longer than its column is folded: its parts are words of their own.
                folded = [word for word in unknown if word in known and len(word) >= columns // 5]
                ends = [word for word in unknown if any(one.endswith(word) and len(one) > 20 for one in whole)]
                assert [word for word in unknown if word not in folded + ends and not _is_drawn(word)] == [], (
                    command,
                    columns,
                )


def _is_drawn(word: str) -> bool:
    """A bar is as long as the window lets it be; beside it stand no letters."""
    return not any(letter.isalnum() for letter in word) or word == "compaction"


@pytest.mark.parametrize("columns", range(24, 120, 7))
def test_a_key_and_what_it_does_stand_in_one_row(columns: int) -> None:
    from rich.text import Text

    from nca.terminal.panels.key_question import keys_line

    keys = [("y", "once"), ("s", "for this session"), ("n", "no"), ("Esc", "no, and stop")]
    rows = broken_at_gaps(keys_line(keys, Text("Allow it?", style="notice")), columns).plain.split("\n")
    assert all(any(f"{key} {about}" in row for row in rows) for key, about in keys)
    assert max(map(cell_len, rows)) <= columns
