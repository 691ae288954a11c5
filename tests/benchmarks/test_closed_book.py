"""Questions drawn by code: what is asked, that it is the same for the same seed, and what is counted."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.closed_book import BLANK, clozes, drawn, examined, legible, read_by_hand
from benchmarks.small_model import LEGIBLE_WINDOWS, OF_EACH, OPTIONS, closed_book, closed_book_in_short
from benchmarks.stated import OWN, sessions_in, shown, text_of
from benchmarks.summed import percent

Row = dict[str, Any]
SESSIONS = sessions_in(OWN)
KEY = re.compile(r"### ([0-9a-f]{12})\n(.*?)(?=\n### |\Z)", re.DOTALL)


def test_a_line_loses_a_value_that_two_messages_say() -> None:
    rows = [
        {"role": "system", "content": "Ticket OPS-1000 is always open for questions."},
        {"role": "user", "content": "Please look at ticket OPS-4471 before the day ends.\nShort OPS-4471."},
        {"role": "assistant", "content": "OPS-4471 is about src/reader.py, and about nothing else."},
    ]
    (person, model) = clozes(rows)
    assert (person.line, person.value, person.by) == (
        f"Please look at ticket {BLANK} before the day ends.",
        "OPS-4471",
        "person",
    )
    assert (model.value, model.by) == ("OPS-4471", "model")


def test_a_line_that_several_values_have_filled_is_not_asked_for() -> None:
    rows = [
        {"role": "user", "content": f"The price of the {what} was 1{n}00 zloty in total."}
        for n, what in enumerate("aabb")
    ]
    rows += [{"role": "assistant", "content": "It was 1000, 1100, 1200 or 1300."}]
    assert {one.by for one in clozes(rows)} == {"model"}


@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session.name)
def test_each_question_has_one_right_answer_that_was_said(session: Any) -> None:
    questions = drawn(session.rows, "0")
    assert questions == drawn(session.rows, "0")
    assert len(questions) >= 2 * OF_EACH
    for one in questions:
        assert len(set(one.options)) == OPTIONS
        assert one.cloze.value in one.options
        assert one.cloze.line.replace(BLANK, one.cloze.value) in shown(session.rows)
        assert one.cloze.value not in one.text.replace(f"- {one.cloze.value}\n", "")


def test_a_model_that_reads_finds_more_in_the_whole_log_than_from_the_question() -> None:
    def reader(messages: list[Row], options: Sequence[str]) -> str:
        *behind, question = messages
        helped, _, asked = question["content"].partition("What stood before")
        before = f"{shown(behind)}\n{helped}"
        line = next(one for one in asked.splitlines()[1:] if BLANK in one)
        return next((one for one in options if line.replace(BLANK, one) in before), options[0])

    session = next(one for one in SESSIONS if one.name == "berths")
    found = examined(session, reader, 2, has_whole_log=True)
    right = {way: sum(count[0] for draws in by.values() for count in draws) for way, by in found.items()}
    asked = sum(count[1] for draws in found["whole log"].values() for count in draws)
    assert asked == 2 * 3 * OF_EACH
    assert right["whole log"] == asked
    assert right["blind"] < right["view"] <= right["with a recall"] <= asked
    assert all(count[2] == count[1] for draws in found["whole log"].values() for count in draws)


def test_what_can_be_read_is_counted_over_all_sessions_without_a_model() -> None:
    sessions = [one for one in SESSIONS if one.name in ("berths", "betrieb")]  # betrieb ends with a question
    found = legible(sessions, 2, windows=(LEGIBLE_WINDOWS[0], LEGIBLE_WINDOWS[-1]))
    assert (found["sessions"], found["asked"]) == (2, 2 * 2 * 3 * OF_EACH)
    small, large = found["windows"].values()
    assert small["view"] < small["with a recall"] <= found["asked"]
    assert small["view"] < large["view"]
    page = {"model": "m", "draws": 2, "sessions": {}, "legible": found}
    shown = "\n".join(closed_book_in_short({"closed_book": page}))
    share = percent(small["view"] / found["asked"])
    assert f"| lines that can be read | 8,000 | 2 | – | {share} |" in shown


def test_a_reader_answers_from_files(tmp_path: Path) -> None:
    sessions = [one for one in SESSIONS if one.name == "berths"]
    assert read_by_hand(sessions, 2, tmp_path, "somebody") is None
    blind, view, helped = ((tmp_path / f"berths-{number}.md").read_text() for number in range(3))
    assert len(blind) < len(view)
    assert len(KEY.findall(helped)) < len(KEY.findall(view)) == len(KEY.findall(blind)) == 2 * 3 * OF_EACH
    assert "One of these" not in view
    log = {line.strip() for row in sessions[0].rows for line in text_of(row).splitlines()}
    answers = {}
    for key, text in KEY.findall(view):
        before, _, behind = text.strip().splitlines()[-1].partition(BLANK)
        line = next(one for one in log if one.startswith(before) and one.endswith(behind))
        answers[key] = line.removeprefix(before).removesuffix(behind)
    (tmp_path / "answers.json").write_text(json.dumps(answers))
    found = read_by_hand(sessions, 2, tmp_path, "somebody")
    assert found is not None
    ways = found["ways"]
    assert sum(count[0] for draws in ways["blind"].values() for count in draws) == 0, "these were not answered"
    assert sum(count[0] for draws in ways["view"].values() for count in draws) == 2 * 3 * OF_EACH
    page = {"model": "m", "draws": 2, "sessions": {}, "by_hand": found}
    shown = "\n".join(closed_book_in_short({"closed_book": page}))
    assert "| somebody | 8,000 | 1 | 0 ± 0% | 100 ± 0% |" in shown
    assert "somebody had no values to choose from" in shown


def test_the_section_gives_the_mean_of_the_draws_with_its_interval() -> None:
    view = {"person": [[2, 2, 2], [1, 2, 2]], "tool": [[0, 2, 0], [1, 2, 1]]}
    ways = {"blind": view, "view": view, "with a recall": view}
    found = {"model": "m", "date": "today", "draws": 2, "sessions": {"a": ways}}
    text = "\n".join(closed_book({"closed_book": found}))
    assert "a draw takes up to 1 line each" in text
    assert "the mean of 2 draws." in text
    assert "| view | 1 | 50 ± 0% | 62% | 75% | – | 25% |" in text
    assert "| m | 8,000 | 1 | 50 ± 0% | 50 ± 0% | 50 ± 0% |" in "\n".join(closed_book_in_short({"closed_book": found}))
    assert list(closed_book({})) == list(closed_book_in_short({})) == []
