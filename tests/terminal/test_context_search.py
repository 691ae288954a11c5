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


async def test_messages_with_the_words_come_before_those_beside_them(tmp_path: Path) -> None:
    with a_stage(tmp_path) as stage:
        with stage.conversation.store.create(directory="/", model="m") as other:
            other.log.append(said(*["a walrus", "a seal"] * 8))
        lines = (await stage.command("/context search --all walrus")).splitlines()
        assert ["beside" in line for line in lines] == [False] * 9 + [True] * 2
        assert lines[8] == "These are only similar:"


async def test_messages_with_the_word_come_first_and_all_are_counted(tmp_path: Path) -> None:
    answers = ["Each line is parsed by the parser.", "The line ends.", "See parse_line there."] * 2
    with a_stage(tmp_path, answers) as stage:
        for number in range(6):
            await stage.conversation.send(f"Where is the line {number}?" if number % 2 else "Where is parse_line?")
        lines = (await stage.command("/context search PARSE_line")).splitlines()
        place = lines.index("These are only similar:")
        assert place == 5
        assert all("parse_line" in line for line in lines[:place])
        assert not any("parse_line" in line.partition(": ")[2] for line in lines[place + 1 :])
        assert len(lines) == 11, "no more than ten, and the line between them"
        assert (await stage.command("/context search parsing")).startswith("Nothing has exactly these words.")


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
