"""Probes of the played sessions: what counts as right, and that the questions fit the sessions."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.comparison import VARIANTS, Variant
from benchmarks.environments import NCA, Environment
from benchmarks.probes import Probe, asked, joined, probes_of, question_count
from benchmarks.small_model import ahead, probed
from benchmarks.stated import OWN, sessions_in, shown

SESSIONS = sessions_in(OWN)
WITHOUT_PROBES = {
    "betrieb",
    "chalupa",
    "colloque",
    "garza",
    "hangul",
    "klinik",
    "kuorojuhla",
    "leoforeia",
    "merleg",
    "orion",
    "pantano",
    "paquete",
    "pegel",
    "sakagura",
    "sogukhat",
    "speiseplan",
    "spoldzielnia",
    "statii",
    "trasloco",
    "travessia",
    "verbouwing",
    "werkstatt",
    "winter",
    "wipanjang",
}
"""Nobody has written questions about these yet."""
PROBED = [session for session in SESSIONS if session.name not in WITHOUT_PROBES]


def test_a_word_counts_as_a_word_of_its_own() -> None:
    probe = Probe("How many?", [["60"], ["TOLERANZ", "tolerance"]])
    assert probe.is_right("Tolerance = 60.")
    assert not probe.is_right("TOLERANZ = 600")
    assert not probe.is_right("60")


@pytest.mark.parametrize("session", PROBED, ids=lambda session: session.name)
def test_the_answer_to_each_question_was_said_and_is_not_in_the_question(session: Any) -> None:
    probes = probes_of(session)
    assert len(probes) >= 5
    for probe in probes:
        assert probe.is_right(shown(session.rows)), probe.question
        assert not probe.is_right(probe.question)


def test_each_question_stands_in_place_of_the_last_words_and_is_asked_in_each_run() -> None:
    heard: list[list[dict[str, Any]]] = []

    def answer(messages: list[dict[str, Any]]) -> str:
        heard.append(messages)
        return "9331"

    session = next(one for one in SESSIONS if one.name == "slugify")
    own = next(one for one in VARIANTS if one.peer == "nca" and one.name == "extract")
    probes = probes_of(session)
    found = asked(Environment(NCA), own, [session], answer, runs=2)
    request = shown(heard[0][:-1])
    asked_for = [probe.question for probe in probes if probe.is_right(request)]
    assert found == [{"slugify": [1, len(asked_for), len(probes)]}] * 2
    assert [messages[-1]["content"] for messages in heard] == [one for one in asked_for for _ in range(2)]
    assert all(messages[:-1] == heard[0][:-1] for messages in heard)
    last_words = next(row["content"] for row in reversed(session.rows) if row["role"] == "user")
    earlier = session.rows[[row["content"] for row in session.rows].index(last_words) - 1]["content"]
    assert heard[0][-2]["content"] == earlier
    assert asked(Environment(NCA), Variant("nca", "no such", ""), [session], answer, 1) == [
        {"slugify": [0, 0, len(probes)]}
    ]


def test_the_section_says_how_many_were_right() -> None:
    runs = [{"a": [2, 4, 4], "b": [1, 3, 4]}, {"a": [4, 4, 4], "b": [3, 3, 4]}]
    rows = [{"label": "nca", "runs": runs}]
    figures = {
        "model": "small",
        "date": "2026-01-02",
        "runs": 2,
        "questions": 8,
        "rows": rows,
    }
    text = "\n".join(probed({"probes": figures}))
    assert "| nca | 62% | 38 to 88% | 88% | 3 of 4 | 2 of 4 |" in text
    other = {"label": "other", "runs": [{"a": [4, 4, 4], "b": [2, 4, 4]}] * 2}
    better = {**figures, "rows": [*rows, other]}
    assert list(ahead({"probes": better})) == [("questions answered by a small model", "62%", "other 75%")]
    assert not list(ahead({}))
    assert not list(probed({}))


def test_a_program_that_was_not_asked_everything_has_no_row() -> None:
    rows = [{"label": name, "runs": [{"a": [2, 4, 4]}]} for name in ("nca", "other")]
    figures = {"model": "small", "date": "2026-01-02", "runs": 1, "questions": 8, "rows": rows}
    assert not list(probed({"probes": figures}))
    figures["rows"] = joined(rows, {"label": "nca", "runs": [{"b": [3, 4, 4]}]})
    text = "\n".join(probed({"probes": figures}))
    assert "| nca | 62% | – | 100% | 2 of 4 | 3 of 4 |" in text
    assert "other" not in text


def test_a_program_that_is_asked_again_keeps_its_answers_about_other_sessions() -> None:
    rows = [{"label": name, "runs": [{"a": [2, 4, 4], "b": [1, 3, 4]}]} for name in ("nca", "other")]
    assert joined(rows, {"label": "nca", "runs": [{"b": [3, 4, 4]}]}) == [
        {"label": "nca", "runs": [{"a": [2, 4, 4], "b": [3, 4, 4]}]},
        rows[1],
    ]
    new = {"label": "new", "runs": [{"a": [0, 0, 4]}]}
    assert joined(rows, new) == [*rows, new]


def test_questions_about_a_session_that_is_not_here_now_still_count() -> None:
    own = sessions_in(OWN)
    asked_now = sum(len(probes_of(session)) for session in own)
    assert question_count([], own) == asked_now
    name = own[0].name
    rows = [{"label": "nca", "runs": [{"elsewhere": [5, 8, 8], name: [1, 1, 1]}]}]
    assert question_count(rows, own) == asked_now + 8
