"""The history file and the suggestions from it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document

from nca.terminal.input.history import HistorySuggestion, PrivateHistory
from nca.terminal.input.pastes import FoldedPastes

LINES = "\n".join(f"line {number}" for number in range(50))


async def loaded(history: PrivateHistory) -> list[str]:
    return [entry async for entry in history.load()]


async def test_entries_come_back_newest_first_and_only_the_owner_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "data" / "history"
    history = PrivateHistory(path, FoldedPastes())
    for entry in ("one", "two\nlines\n", "  ", "# not a comment", "+plus"):
        history.append_string(entry)
    assert await loaded(PrivateHistory(path, FoldedPastes())) == ["+plus", "# not a comment", "two\nlines\n", "one"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_folded_paste_is_whole_in_the_file_and_folded_in_the_program(tmp_path: Path) -> None:
    pastes = FoldedPastes()
    history = PrivateHistory(tmp_path / "history", pastes)
    await loaded(history)
    folded = f"see {pastes.fold(LINES)}"
    history.append_string(folded)
    history.append_string(pastes.fold("x" * 30_000))
    assert history.get_strings()[0] == folded
    assert await loaded(PrivateHistory(tmp_path / "history", FoldedPastes())) == [f"see {LINES}"]


async def test_of_a_large_file_the_end_is_read(tmp_path: Path) -> None:
    path = tmp_path / "history"
    history = PrivateHistory(path, FoldedPastes())
    for number in range(300):
        history.append_string(f"entry {number}\nsecond line")
    history.READ_BYTES = path.stat().st_size // 3
    newest = await loaded(history)
    assert 80 < len(newest) < 100
    assert newest == [f"entry {number}\nsecond line" for number in range(299, 299 - len(newest), -1)]


async def test_a_history_that_cannot_be_written_is_kept_while_the_program_runs(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    history = PrivateHistory(tmp_path / "file" / "history", FoldedPastes())
    assert await loaded(history) == []
    history.append_string("typed")
    assert await loaded(history) == ["typed"]


@pytest.mark.parametrize(
    ("typed", "rest"),
    [
        ("fix", " the tests"),
        ("fix the p", "arser"),
        ("two", " lines"),
        ("hid", None),
        ("see ", None),
        ("", None),
        ("fix\n", None),
        ("fix the tests", None),
        ("FIX", None),
    ],
)
def test_the_newest_entry_that_begins_so_is_suggested(typed: str, rest: str | None, tmp_path: Path) -> None:
    pastes = FoldedPastes()
    history = PrivateHistory(tmp_path / "history", FoldedPastes())
    for entry in ("fix the parser", "two lines\nhere", "hid\x1b[31m", f"see {pastes.fold(LINES)}", "fix the tests"):
        history.append_string(entry)
    suggestion = HistorySuggestion(pastes)
    found = suggestion.get_suggestion(Buffer(history=history), Document(typed))
    assert (found.text if found else None) == rest
