"""/help: one screen with everything that a new person needs, and examples that work."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nca.config.schema import KEYS
from nca.errors import NcaError, UsageError
from nca.terminal.commands.help_topics import EXAMPLES, SHORT
from nca.terminal.commands.registry import all_commands, find_command
from tests.terminal.stage import a_stage


@contextmanager
def columns(width: int) -> Iterator[None]:
    """What the command asks how wide the window is."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(width)
    try:
        yield
    finally:
        del os.environ["COLUMNS"]
        if before is not None:
            os.environ["COLUMNS"] = before


async def test_the_first_screen_fits_and_names_what_a_new_person_should_find(tmp_path: Path) -> None:
    with columns(80), a_stage(tmp_path) as stage:
        text = await stage.command("/help")
        lines = text.rstrip("\n").splitlines()
        assert len(lines) <= 20
        for command in all_commands():
            assert f"/{command.name} " in text
        for words in (
            *("a new line", "@path", "!command", "while it works", "Ctrl-C", "Ctrl-X Ctrl-E", "Paste"),
            *("undo", "pin N", "collapse N", "search TEXT", "compact --preview", "accept-edits", "--continue"),
            *("/help COMMAND", "/help keys", "/help ideas"),
        ):
            assert words in text, words
        assert "…" not in text


async def test_a_narrow_window_has_one_command_a_row(tmp_path: Path) -> None:
    with columns(40), a_stage(tmp_path) as stage:
        lines = (await stage.command("/help")).splitlines()
        assert sum(line.startswith("/") for line in lines) >= len(all_commands())


async def test_keys_and_ideas(tmp_path: Path) -> None:
    with a_stage(tmp_path) as stage:
        keys = await stage.command("/help keys")
        for key in ("Alt-Enter", "Tab", "Ctrl-R", "Ctrl-D", "vi"):
            assert key in keys
        ideas = " ".join((await stage.command("/help ideas")).split())
        for words in ("The log and the view", "Undo", "The gauge", "One number everywhere"):
            assert words in ideas
        with pytest.raises(UsageError, match="no command /nothing"):
            await stage.command("/help nothing")


async def test_every_command_in_detail_and_every_example_is_one(tmp_path: Path) -> None:
    with a_stage(tmp_path) as stage:
        for command in all_commands():
            assert command.about in " ".join((await stage.command(f"/help {command.name}")).split())
        assert "/context compact from 40" in await stage.command("/help ctx")
    known = {command.name for command in all_commands()}
    assert set(EXAMPLES) | set(SHORT) <= known
    for name, examples in EXAMPLES.items():
        for line, about in examples:
            assert find_command(line.removeprefix("/").split()[0]), line
            assert about
            words = line.split()
            if words[0] == "/config" and "." in words[1]:
                assert words[1] in KEYS, name


async def test_no_example_has_a_word_that_its_command_does_not_know(tmp_path: Path) -> None:
    refused: dict[str, str] = {}
    with a_stage(tmp_path, ["Beside."]) as stage:
        for line in (line for examples in EXAMPLES.values() for line, _ in examples):
            try:
                await stage.command(line)
            except NcaError as error:
                # There is no message 17 here, and no other model: those are refused too.
                refused[line] = error.message
    assert [line for line, why in refused.items() if "knows no" in why or "not known" in why] == []
