"""The history file and the suggestions from it."""

from __future__ import annotations

import fcntl
import stat
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document

from nca.terminal.input.history import DraftFile, HistorySuggestion, PrivateHistory
from nca.terminal.input.pastes import FoldedPastes
from nca.terminal.input.prompt_text import PromptText
from nca.words import Source, Span, Words, merged, text_of, words

LINES = "\n".join(f"line {number}" for number in range(50))


ALPHABET = "ab @/+#\n0-"


def history_in(path: Path, pastes: FoldedPastes | None = None) -> PrivateHistory:
    return PrivateHistory(path, pastes or FoldedPastes(), PromptText())


async def loaded(history: PrivateHistory) -> list[str]:
    return [entry async for entry in history.load()]


async def test_entries_come_back_newest_first_and_only_the_owner_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "data" / "history"
    path.parent.mkdir()
    path.touch(mode=0o644)
    history = history_in(path)
    for entry in ("one", "two\nlines\n", "  ", "# not a comment", "+plus"):
        history.append_string(entry)
    assert await loaded(history_in(path)) == ["+plus", "# not a comment", "two\nlines\n", "one"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_folded_paste_is_whole_in_the_file_and_folded_in_the_program(tmp_path: Path) -> None:
    pastes = FoldedPastes()
    history = history_in(tmp_path / "history", pastes)
    await loaded(history)
    folded = f"see {text_of(pastes.fold_pasted(LINES))}"
    history.append_string(folded)
    history.append_string(text_of(pastes.fold_pasted("x" * 30_000)))
    assert history.get_strings()[0] == folded
    assert await loaded(history_in(tmp_path / "history")) == [f"see {LINES}"]


SOURCES: st.SearchStrategy[Source] = st.sampled_from(("typed", "pasted"))
SAID = st.lists(st.tuples(st.text(ALPHABET), SOURCES)).map(lambda parts: merged(tuple(Span(*part) for part in parts)))


@given(st.lists(SAID, max_size=4))
async def test_a_later_program_knows_what_was_pasted(entries: list[Words]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "history"
        text = PromptText()
        history = PrivateHistory(path, FoldedPastes(), text)
        entries = [said for said in entries if text_of(said).strip()]
        for said in entries:
            text.become(said)
            history.append_string(text_of(said))
        later = PromptText()
        assert await loaded(PrivateHistory(path, FoldedPastes(), later)) == [text_of(one) for one in entries[::-1]]
        for said in entries:
            known = later.said_of(text_of(said))
            assert known == said or [text_of(one) for one in entries].count(text_of(said)) > 1


async def test_an_older_entry_counts_as_typed_if_it_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_text(
        "\n# 2026-01-01 10:00:00\n+one line\n\n# 2026-01-02 10:00:00\n+two\n+lines\n# pasted 0-9x 2-\n+odd\n"
    )
    text = PromptText()
    assert await loaded(PrivateHistory(path, FoldedPastes(), text)) == ["odd", "two\nlines", "one line"]
    assert text.said_of("one line") == words("one line")
    assert text.said_of("two\nlines") == words("two\nlines", "pasted")
    assert text.said_of("odd") == words("odd", "pasted")


async def test_of_a_large_file_the_end_is_read(tmp_path: Path) -> None:
    path = tmp_path / "history"
    history = history_in(path)
    for number in range(300):
        history.append_string(f"entry {number}\nsecond line")
    history.READ_BYTES = path.stat().st_size // 3
    newest = await loaded(history)
    assert 80 < len(newest) < 100
    assert newest == [f"entry {number}\nsecond line" for number in range(299, 299 - len(newest), -1)]


async def test_a_history_that_cannot_be_written_is_kept_while_the_program_runs(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    history = history_in(tmp_path / "file" / "history")
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
    text = PromptText()
    history = PrivateHistory(tmp_path / "history", FoldedPastes(), text)
    pasted = (Span("see ", "typed"), Span("it", "pasted"))
    for said in (*map(words, ("fix the parser", "two lines\nhere", "hid\x1b[31m", "fix the tests")), pasted):
        text.become(said)
        text.known.add(said)
        history.append_string(text_of(said))
    suggestion = HistorySuggestion(text)
    found = suggestion.get_suggestion(Buffer(history=history), Document(typed))
    assert (found.text if found else None) == rest


async def test_the_draft_of_a_killed_program_is_in_the_history_and_that_of_a_running_one_stays(tmp_path: Path) -> None:
    for name, line in (("killed", "half a line"), ("running", "another's")):
        (tmp_path / f"history.draft-{name}").write_text(f"\n+{line}\n")
    with (tmp_path / "history.draft-running").open() as running:
        fcntl.flock(running, fcntl.LOCK_EX)
        assert DraftFile(tmp_path / "history", FoldedPastes()).are_others_taken
        assert not DraftFile(tmp_path / "history", FoldedPastes()).are_others_taken
        assert await loaded(history_in(tmp_path / "history")) == ["half a line"]
    assert [one.name for one in tmp_path.glob("history.draft-*")] == ["history.draft-running"]
    # A killed program whose parent has not waited for it is no longer a running one.
    DraftFile(tmp_path / "history", FoldedPastes())
    assert await loaded(history_in(tmp_path / "history")) == ["another's", "half a line"]


async def test_an_entered_line_is_written_before_it_is_drawn_and_a_key_only_once_a_second(tmp_path: Path) -> None:
    def written() -> list[str]:
        return [one.read_text() for one in tmp_path.glob("history.draft-*")]

    draft = DraftFile(tmp_path / "history", FoldedPastes())
    draft.note_ahead(lambda: [words("half a li")], False)
    draft.write_entered()
    assert not written()
    draft.note_ahead(lambda: [words("a line")], True)
    assert not written()  # many lines of one read are written once
    draft.write_entered()
    assert ["+a line" in one for one in written()] == [True]
    draft.note_ahead(lambda: [words("a")], True)
    draft.write()
    assert [one.endswith("\n+a\n") for one in written()] == [True]
    draft.note_ahead(tuple, True)
    draft.write()
    assert not written()


async def test_a_draft_has_its_pastes_in_full(tmp_path: Path) -> None:
    pastes = FoldedPastes()
    draft = DraftFile(tmp_path / "history", pastes)
    draft.note_prompt(pastes.fold_pasted(LINES))
    draft.write()
    (left,) = tmp_path.glob("history.draft-*")
    assert await loaded(history_in(left)) == [LINES]
    draft.note_prompt(())
    draft.write()


async def test_a_refused_line_is_suggested_again_once_it_was_sent_again(tmp_path: Path) -> None:
    path = tmp_path / "history"

    async def suggested(typed: str) -> str | None:
        text = PromptText()
        history = PrivateHistory(path, FoldedPastes(), text)
        await loaded(history)
        found = HistorySuggestion(text).get_suggestion(Buffer(history=history), Document(typed))
        return found.text if found else None

    for line in ("/help", "/hlep", "!gti status"):
        text = PromptText()
        text.become(words(line))
        history = PrivateHistory(path, FoldedPastes(), text)
        history.append_string(line)
        if line != "/help":
            history.refuse(line)
    assert [await suggested(typed) for typed in ("/h", "/hl", "!g")] == ["elp", None, None]
    again = PromptText()
    again.become(words("!gti status"))
    PrivateHistory(path, FoldedPastes(), again).append_string("!gti status")
    assert [await suggested(typed) for typed in ("/hl", "!g")] == [None, "ti status"]
