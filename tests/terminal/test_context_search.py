"""/context search, over a real conversation."""

from __future__ import annotations

from pathlib import Path

import pytest

from nca.errors import UsageError
from tests.sessions.samples import said
from tests.terminal.stage import a_stage


async def test_what_was_cleared_is_found(tmp_path: Path) -> None:
    with a_stage(tmp_path, ["It is 4711."]) as stage:
        await stage.conversation.send("What is the password of the lighthouse?")
        await stage.command("/context clear")
        text = await stage.command("/context search lighthouse passwords")
        assert "1  user: What is the password of the lighthouse?" in text
        assert "2  assistant (beside a hit): It is 4711." in text


async def test_other_sessions_on_request(tmp_path: Path) -> None:
    with a_stage(tmp_path) as stage:
        with stage.conversation.store.create(directory="/", model="m") as other:
            other.log.append(said("the walrus"))
        assert "--all TEXT searches every session" in await stage.command("/context search walrus")
        assert f"{other.info.id}:1  user: the walrus" in await stage.command("/context search --all walrus")
        assert (await stage.command("/context search --all seal")).strip() == "Nothing was found."


async def test_where_messages_have_the_words_no_other_is_shown(tmp_path: Path) -> None:
    with a_stage(tmp_path) as stage:
        with stage.conversation.store.create(directory="/", model="m") as other:
            other.log.append(said(*["a walrus", "a seal"] * 8))
        lines = (await stage.command("/context search --all walrus")).splitlines()
        assert len(lines) == 8
        assert all(line.endswith("user: a walrus") for line in lines)


async def test_how_a_word_is_written_does_not_matter(tmp_path: Path) -> None:
    answers = ["Each line is parsed by the parser.", "The line ends.", "See parse_line there."] * 2
    with a_stage(tmp_path, answers) as stage:
        for number in range(6):
            await stage.conversation.send(f"Where is the line {number}?" if number % 2 else "Where is parse_line?")
        lines = (await stage.command("/context search PARSE_line")).splitlines()
        assert len(lines) == 5
        assert all("parse_line" in line for line in lines)
        lines = (await stage.command("/context search parsing")).splitlines()
        assert lines[0] == "Nothing has exactly these words. These are similar:"


async def test_a_hit_is_the_line_with_the_word_and_hangs_below_its_number(tmp_path: Path) -> None:
    """A newcomer's: the beginning of a long message, without the word, went on in the first column."""
    padding = "Much is said before it. " * 20
    with a_stage(tmp_path, [f"One line.\n{padding}The sea holds the walrus. {padding}\nThe last line."]) as stage:
        await stage.conversation.send("Go on.")
        lines = (await stage.command("/context search WALRUS")).splitlines()
        assert lines[0].startswith("2  assistant: …")
        assert "The sea holds the walrus." in lines[0] + lines[1]
        assert all(line.startswith("   ") for line in lines[1:])
        assert len(lines) > 2
        assert lines[-1].endswith("…")


async def test_more_places_than_are_shown_are_counted(tmp_path: Path) -> None:
    with a_stage(tmp_path) as stage:
        with stage.conversation.store.create(directory="/", model="m") as other:
            other.log.append(said(*["a walrus", "the seal"] * 14))
        lines = (await stage.command("/context search --all walrus")).splitlines()
        assert all("walrus" in line for line in lines[:10])
        assert lines[10] == "The best 10 of 14 matches. More words narrow the search."


async def test_nothing_to_search_for_is_said(tmp_path: Path) -> None:
    with a_stage(tmp_path) as stage:
        for line in ("/context search", "/context search --all"):
            with pytest.raises(UsageError, match="needs a text"):
                await stage.command(line)


async def test_stored_text_cannot_control_the_terminal(tmp_path: Path) -> None:
    with a_stage(tmp_path, ["ok"]) as stage:
        await stage.conversation.send("walrus \x1b]0;owned\x07 \x9b2J \u202e end")
        text = await stage.command("/context search walrus")
        assert "walrus" in text
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(text)
