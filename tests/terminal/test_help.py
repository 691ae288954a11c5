"""/help: one screen with everything that a new person needs, and examples that work."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nca.config.schema import KEYS
from nca.errors import NcaError, UsageError
from nca.models.reasoning import LEVELS
from nca.terminal.commands.command import all_commands, find_command, texts
from nca.terminal.commands.context import SUBCOMMANDS
from nca.terminal.commands.help import NAME_CELLS, in_short
from nca.terminal.render.event_lines import GROUPS, NAMES
from tests.terminal.stage import a_stage


@contextmanager
def columns(width: int, rows: int = 24) -> Iterator[None]:
    """What the command asks how large the window is."""
    size = {"COLUMNS": str(width), "LINES": str(rows)}
    before = {name: os.environ.get(name) for name in size}
    os.environ.update(size)
    try:
        yield
    finally:
        for name, value in before.items():
            del os.environ[name]
            if value is not None:
                os.environ[name] = value


async def test_the_first_screen_fits_and_names_what_a_new_person_should_find(tmp_path: Path) -> None:
    with columns(80), a_stage(tmp_path) as stage:
        text = await stage.on_a_screen().command("/help")
        lines = text.rstrip("\n").splitlines()
        # With the prompt and the toolbar it fills a screen of 24 rows.
        assert len(lines) <= 22
        assert max(map(len, lines)) <= 80
        for command in all_commands():
            assert f"/{command.name} " in text
        for words in (
            *("A new line", "@path", "!command", "While it works", "Esc ", "Ctrl-C", "Ctrl-X Ctrl-E", "Paste"),
            *("undo", "pin N", "collapse N", "search TEXT", "or --preview", "accept-edits", "--continue"),
            *("/help COMMAND", "/help keys", "/help ideas"),
        ):
            assert words in text, words
        assert "…" not in text


async def test_each_command_stands_under_a_heading_of_one_grid(tmp_path: Path) -> None:
    assert [name for names in GROUPS.values() for name in names] == [command.name for command in all_commands()]
    for width, across in ((40, 1), (80, 2)):
        with columns(width, 60), a_stage(tmp_path) as stage:
            lines = (await stage.on_a_screen().command("/help")).splitlines()
        places = {line.index(title) for title in (*GROUPS, "Typing") for line in lines if title in line}
        assert len(places) == across
        for name in NAMES:
            (row,) = [line for line in lines if f"/{name} " in line and "/help COMMAND" not in line]
            # What it does stands in the second column of its part of the grid.
            place = row.index(f"/{name} ")
            assert place in places
            assert row[place + NAME_CELLS - 1] == " "
            assert row[place + NAME_CELLS] != " "


async def test_a_narrow_window_has_one_command_a_row(tmp_path: Path) -> None:
    with columns(40, 60), a_stage(tmp_path) as stage:
        lines = (await stage.on_a_screen().command("/help")).splitlines()
        assert sum(line.startswith("/") for line in lines) >= len(all_commands())


async def test_a_narrow_and_low_window_says_what_each_command_does_too(tmp_path: Path) -> None:
    for width, rows in ((40, 30), (60, 24), (79, 30)):
        with columns(width, rows), a_stage(tmp_path) as stage:
            text = await stage.on_a_screen().command("/help")
        for command in all_commands():
            assert f"{f'/{command.name}':<{NAME_CELLS}}{in_short(command.name, command.about)[0]}" in text, command.name
        assert "…" not in text


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
        (row,) = [line for line in (await stage.command("/help model")).splitlines() if "/model default" in line]
        assert row.split("  ")[0] == "/model default"
        text = await stage.command("/help ctx")
        assert "/context compact from 40" in text
        for word in (*SUBCOMMANDS, "compact from", "compact before"):
            assert f"/context {word} " in text
    known = {command.name for command in all_commands()}
    assert set(texts().commands) == known
    assert "|".join(LEVELS) in texts().commands["effort"].usage
    assert set(texts().examples) | set(texts().short) <= known
    for name, examples in texts().examples.items():
        for line, about in examples.items():
            assert find_command(line.removeprefix("/").split()[0]), line
            assert about
            words = line.split()
            if words[0] == "/config" and "." in words[1]:
                assert words[1] in KEYS, name


async def test_no_example_has_a_word_that_its_command_does_not_know(tmp_path: Path) -> None:
    refused: dict[str, str] = {}
    with a_stage(tmp_path, ["Beside."]) as stage:
        for line in (line for examples in texts().examples.values() for line in examples):
            try:
                await stage.command(line)
            except NcaError as error:
                # There is no message 17 here, and no other model: those are refused too.
                refused[line] = error.message
    assert [line for line, why in refused.items() if " takes no " in why] == []


async def test_plain_lines_have_one_command_each_and_ones_own_are_named(tmp_path: Path) -> None:
    (tmp_path / ".claude" / "commands").mkdir(parents=True)
    (tmp_path / ".claude" / "commands" / "deploy-it.md").write_text("Do it.")
    with columns(120), a_stage(tmp_path) as stage:
        lines = (await stage.command("/help")).splitlines()
        assert max(sum(f"/{one.name}  " in line for one in all_commands()) for line in lines) == 1
        assert lines[-1] == "Your own: /deploy-it"
        assert "Your own: /deploy-it" in await stage.on_a_screen().command("/help")
