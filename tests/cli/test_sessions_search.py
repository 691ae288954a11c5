"""`nca sessions search`: messages and sessions, with nothing written and no control character printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nca.errors import SessionNotFound, UsageError
from tests.cli.test_sessions import NASTY, run, store_in
from tests.sessions.samples import said


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def ids(home: Path) -> list[str]:
    found = []
    with store_in(home) as store:
        for text in ("Where is the walrus?", f"The seal {NASTY}", "A seal and a walrus"):
            with store.create(directory="/work", model="m") as session:
                session.log.append(said(text, "I do not know."))
                found.append(session.info.id)
    return found


def test_the_best_sessions_with_their_messages(home: Path, ids: list[str]) -> None:
    lines = run(home, "search", "seal", "and", "walrus").output.splitlines()
    assert lines[0].startswith(ids[2])
    assert lines[1].startswith(f"    {ids[2]}:1  user: A seal and a walrus")
    found = json.loads(run(home, "search", "seal and walrus", "--json").output)
    assert found[0]["id"] == found[0]["session"] == ids[2]
    assert found[0]["hits"][0]["seq"] == 1


def test_messages_of_all_sessions_or_one(home: Path, ids: list[str]) -> None:
    everywhere = json.loads(run(home, "search", "walrus", "--all", "--json").output)
    assert {hit["session"] for hit in everywhere} == {ids[0], ids[2]}
    one = json.loads(run(home, "search", "walrus", "--session", ids[0][:6], "--json", "--limit", "1").output)
    assert [hit["id"] for hit in one] == [f"{ids[0]}:1"]
    assert run(home, "search", "walrus", "--session", ids[0]).output.startswith(f"{ids[0]}:1  user: Where is")
    with store_in(home) as store, store.open_session(ids[0]):
        assert run(home, "search", "walrus", "--session", ids[0]).exit_code == 0, "a chat that is open can be searched"


def test_nothing_found_and_nothing_written(home: Path, ids: list[str]) -> None:
    before = sorted(file.name for file in home.rglob("*"))
    assert run(home, "search", '" OR (NEAR').output == "Nothing found.\n"
    assert json.loads(run(home, "search", "unicorn", "--json").output) == []
    assert sorted(file.name for file in home.rglob("*")) == before


def test_stored_text_cannot_control_the_terminal(home: Path, ids: list[str]) -> None:
    for arguments in ((), ("--all",), ("--json",)):
        text = run(home, "search", "seal", *arguments).output
        assert ids[1] in text
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(text)


def test_what_contradicts_itself_is_refused(home: Path, ids: list[str]) -> None:
    with pytest.raises(UsageError, match="nothing to search for"):
        run(home, "search", "")
    with pytest.raises(UsageError, match="exclude each other"):
        run(home, "search", "x", "--all", "--session", ids[0])
    with pytest.raises(SessionNotFound):
        run(home, "search", "x", "--session", "ffffffff")
