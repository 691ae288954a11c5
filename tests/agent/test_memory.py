"""Notes and daily memory files: limited in size, private, and written atomically."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nca.agent.memory import (
    MAX_DAYS,
    MAX_NOTE_CHARS,
    Note,
    add_note,
    append_day,
    day_entries,
    day_file,
    load_notes,
    notes_file,
)
from nca.config.schema import MemorySettings
from nca.errors import ConfigError

DAY = date(2031, 5, 9)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return notes_file(MemorySettings(), tmp_path)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_usual_places(tmp_path: Path, notes: Path) -> None:
    assert notes == tmp_path / ".nca" / "memory.json"
    assert day_file(notes, DAY) == tmp_path / ".nca" / "memory" / "2031-05-09.md"
    assert day_file(tmp_path / "memory", DAY) == tmp_path / "memory.days" / "2031-05-09.md"
    assert notes_file(MemorySettings(file_path=str(tmp_path / "x.json")), Path("/")) == tmp_path / "x.json"
    assert not (tmp_path / ".nca").exists()
    assert load_notes(notes) == []
    assert not (tmp_path / ".nca").exists()


def test_notes_are_kept_in_order_and_the_oldest_go_first(notes: Path) -> None:
    for number in range(5):
        kept = add_note(notes, f" note {number} ", at=number, max_notes=3)
    assert kept == load_notes(notes) == [Note("note 2", 2), Note("note 3", 3), Note("note 4", 4)]
    assert [note.text for note in add_note(notes, "note 2", at=9, max_notes=3)] == ["note 3", "note 4", "note 2"]
    assert add_note(notes, "  ", at=10, max_notes=3) == load_notes(notes)
    assert json.loads(notes.read_text())["notes"][0] == {"text": "note 3", "at": 3.0}


@pytest.mark.parametrize("first", ["note", "day"])
def test_git_does_not_see_them_unless_the_person_wants_it_to(tmp_path: Path, notes: Path, first: str) -> None:
    def untracked() -> str:
        run = ("git", "-C", str(tmp_path), "status", "--porcelain", "--untracked-files=all")
        return subprocess.run(run, check=True, capture_output=True, text=True).stdout

    subprocess.run(("git", "init", "-q", str(tmp_path)), check=True)
    if first == "day":
        append_day(notes, "Trimmed.", DAY)
    add_note(notes, "a", at=0, max_notes=9)
    append_day(notes, "Trimmed.", DAY)
    assert untracked() == ""
    (tmp_path / ".nca" / "config.toml").touch()
    assert untracked() == "?? .nca/config.toml\n"
    (tmp_path / ".nca" / ".gitignore").unlink()
    add_note(notes, "b", at=1, max_notes=9)
    assert "?? .nca/memory.json\n" in untracked(), "who wants them shared has them shared"


def test_a_gitignore_that_is_there_and_a_place_that_the_person_chose_stay_as_they_are(tmp_path: Path) -> None:
    notes = notes_file(MemorySettings(), tmp_path)
    notes.parent.mkdir()
    (notes.parent / ".gitignore").write_text("*\n")
    add_note(notes, "a", at=0, max_notes=9)
    assert (notes.parent / ".gitignore").read_text() == "*\n"
    add_note(tmp_path / "docs" / "notes.json", "a", at=0, max_notes=9)
    assert [one.name for one in (tmp_path / "docs").iterdir()] == ["notes.json"]


def test_they_are_the_persons_alone(notes: Path) -> None:
    add_note(notes, "a", at=0, max_notes=9)
    assert (mode(notes), mode(notes.parent)) == (0o600, 0o700)
    path = append_day(notes, "Trimmed.", DAY)
    assert path is not None
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)
    assert sorted(one.name for one in notes.parent.iterdir()) == [".gitignore", "memory", "memory.json"]


def test_odd_texts(notes: Path) -> None:
    add_note(notes, "a\0\ud800\u001b[2J" + "x" * 50_000, at=0, max_notes=9)
    (note,) = load_notes(notes)
    assert note.text.startswith("a\0\ufffd\x1b[2J")
    assert len(note.text) == MAX_NOTE_CHARS


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"not json",
        b"[]",
        b'{"name": "somebody\'s package.json"}',
        b'{"notes": [], "more": 1}',
        b'{"notes": [{"text": 5}]}',
        b'{"notes": [{"text": "a", "extra": 1}]}',
        b'{"notes": ' + b"[" * 100_000,
        b"\xff\xfe",
        b'{"notes": [{"text": "\xff"}]}',
        b" " * (9 << 20),
    ],
)
def test_a_file_that_is_no_notes_is_left_alone_and_said_in_one_line(notes: Path, raw: bytes) -> None:
    notes.parent.mkdir()
    notes.write_bytes(raw)
    with pytest.raises(ConfigError) as read:
        load_notes(notes)
    with pytest.raises(ConfigError) as added:
        add_note(notes, "a", at=0, max_notes=3)
    for caught in (read, added):
        message = str(caught.value)
        assert message.startswith(f"{notes} ")
        assert "it was left as it is" in message
        assert message.isprintable()
        assert len(message) < 300 + len(str(notes))
    assert notes.read_bytes() == raw
    assert [one.name for one in notes.parent.iterdir()] == [notes.name]


def test_what_is_no_file_is_refused_without_waiting(notes: Path) -> None:
    notes.parent.mkdir()
    os.mkfifo(notes)
    with pytest.raises(ConfigError, match="not an ordinary file"):
        load_notes(notes)
    notes.unlink()
    notes.mkdir()
    with pytest.raises(ConfigError, match="left as it is"):
        add_note(notes, "a", at=0, max_notes=3)


def test_links_lead_nowhere_else(tmp_path: Path) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside"
    for folder in (project / ".nca", outside):
        folder.mkdir(parents=True)
    (project / ".nca" / "memory").symlink_to(outside)
    notes = notes_file(MemorySettings(), project)
    with pytest.raises(ConfigError, match="is a link"):
        append_day(notes, "x", DAY)
    (project / ".nca" / "memory").unlink()
    (project / ".nca" / "memory").mkdir()
    (project / ".nca" / "memory" / "2031-05-09.md").symlink_to(outside / "f")
    with pytest.raises(ConfigError, match="cannot be written"):
        append_day(notes, "x", DAY)
    notes.symlink_to(outside / "f")
    with pytest.raises(ConfigError, match="outside of"):
        notes_file(MemorySettings(), project)
    assert list(outside.iterdir()) == []


def test_the_days_entries_follow_one_another(notes: Path) -> None:
    assert append_day(notes, " \n", DAY) is None
    assert not notes.parent.exists()
    append_day(notes, "First.\n", DAY, heading="Session ab12\nx")
    path = append_day(notes, "Second \ud800.", DAY)
    assert path == day_file(notes, DAY)
    assert path.read_text(encoding="utf-8") == (
        "## Session ab12 x\n\nFirst.\n\n## Earlier part of a conversation\n\nSecond \ufffd.\n\n"
    )
    other = append_day(notes, "Third.", date(2031, 5, 10))
    assert other is not None
    assert other.name == "2031-05-10.md"


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(max_size=20), max_size=12), st.integers(1, 5))
def test_any_texts_read_back(notes: Path, texts: list[str], limit: int) -> None:
    notes.unlink(missing_ok=True)
    wanted: list[str] = []
    for place, text in enumerate(texts):
        kept = add_note(notes, text, at=place, max_notes=limit)
        if clean := text.strip():
            wanted = [*(one for one in wanted if one != clean), clean][-limit:]
        assert [note.text for note in kept] == wanted
    assert [note.text for note in load_notes(notes)] == wanted


def test_of_more_days_than_are_read_the_newest_are_and_the_oldest_of_them_comes_first(notes: Path) -> None:
    days = [DAY + timedelta(days=number) for number in range(MAX_DAYS + 2)]
    for day in days[::-1]:
        append_day(notes, f"One of {day}.", day)
    append_day(notes, "Another.", days[-1])
    found = [(day, number) for day, number, _ in day_entries(notes)]
    assert found == [*((day, 1) for day in days[2:]), (days[-1], 2)]
