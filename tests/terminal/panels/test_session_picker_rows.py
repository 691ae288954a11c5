"""What the session picker lists and how it draws it, at every size."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from prompt_toolkit.formatted_text import StyleAndTextTuples
from rich.cells import cell_len

from nca.sessions import Hit, SessionHit, SessionInfo, SessionPreview
from nca.terminal.panels.list_panel import fitted_listing
from nca.terminal.panels.session_picker import SessionList

EVIL = "\x1b]0;title\x07a \x9b2J漢字\u202e name"


def info(name: str, title: str = "", *, directory: str = "/here", **more: object) -> SessionInfo:
    fields = {"created_at": 0.0, "updated_at": 0.0, "messages": 2, "is_pinned": False, "model": "m/x", **more}
    return SessionInfo(id=name, name="", directory=directory, title=title, **fields)  # type: ignore[arg-type]


def found(session: str, snippet: str) -> SessionHit:
    return SessionHit(session, 1.0, (Hit(f"{session}:1", session, 1, "user", 0.0, 1.0, snippet, (1, 2)),))


def listed(infos: Sequence[SessionInfo], directory: str, current: str = "") -> SessionList:
    rows = SessionList(directory, current)
    rows.offer(infos)
    return rows


def text(rows: SessionList, columns: int = 80, height: int = 20) -> list[str]:
    return [line.rstrip() for line in shown(fitted_listing(rows.listing(columns), columns, height))]


def shown(parts: StyleAndTextTuples) -> list[str]:
    return "".join(part[1] for part in parts).split("\n")


def ids(rows: SessionList) -> list[str]:
    return [one.id for one in rows.rows]


INFOS = [
    info("a1", "the parser bug"),
    info("b2", "a walk", directory="/there"),
    info("c3", "Parser again"),
    info("d4", "the parser elsewhere", directory="/there"),
]


def test_this_directory_first_then_all() -> None:
    rows = listed(INFOS, "/here")
    assert ids(rows) == ["a1", "c3"]
    rows.move(1)
    rows.turn()
    assert ids(rows) == ["a1", "b2", "c3", "d4"]
    assert rows.chosen is INFOS[2]
    # Where nothing was said here yet, all are shown at once.
    assert ids(listed(INFOS, "/nowhere")) == ["a1", "b2", "c3", "d4"]


def test_what_one_text_found_and_chose_is_nothing_for_the_next() -> None:
    rows = listed(INFOS, "/here")
    rows.search("frog")
    rows.take("frog", [found("a1", "a frog")])
    assert ids(rows) == ["a1"]
    rows.search("toad")
    assert ids(rows) == []
    rows.search("parser")
    rows.move(1)
    assert rows.chosen is INFOS[2]
    rows.search("pars")
    rows.take("pars", [])
    assert rows.chosen is INFOS[0]


def test_the_session_one_is_in_is_listed_and_not_offered() -> None:
    rows = listed(INFOS, "/here", "a1")
    assert rows.chosen is INFOS[2]
    assert text(rows)[0].split() == ["when", "messages", "session"]
    assert "(this) the parser bug" in text(rows)[1]


def test_a_run_stands_at_its_time_with_a_mark() -> None:
    rows = listed([info("r1", "count the lines", kind="run"), INFOS[0]], "/here")
    assert ids(rows) == ["r1", "a1"]
    assert [line.split()[-4:] for line in text(rows)[1:3]] == [
        ["(run)", "count", "the", "lines"],
        ["2", "the", "parser", "bug"],
    ]


def test_words_are_found_at_once_and_texts_follow() -> None:
    rows = listed(INFOS, "/here")
    rows.turn()
    rows.search("PARSER the")
    assert ids(rows) == ["a1", "d4"]
    rows.move(1)
    rows.take("parser the", [found("b2", "not asked any more")])
    assert ids(rows) == ["a1", "d4"]
    rows.take("PARSER the", [found("b2", "the parser, said on a walk"), found("a1", "…"), found("gone", "…")])
    assert ids(rows) == ["a1", "d4", "b2"]
    assert rows.chosen is INFOS[3]
    rows.move(1)
    assert "found: the parser, said on a walk" in text(rows)
    rows.turn()
    assert ids(rows) == ["a1"]


def test_the_beginning_of_an_id_is_found_and_a_number_is_a_word() -> None:
    rows = listed([info("0dedb1a3", "question 4"), info("1c11de00", "question 0")], "/here")
    rows.search("question 0")
    assert ids(rows) == ["1c11de00"]
    rows.search("0ded")
    assert ids(rows) == ["0dedb1a3"]


def test_nothing_found_says_where_else_to_look() -> None:
    rows = listed(INFOS, "/here")
    rows.search("nothing like it")
    rows.move(1)
    assert rows.chosen is None
    assert "nothing found in this directory; Tab shows all" in text(rows)[1]
    rows.turn()
    assert text(rows)[1].strip() == "nothing found"


def test_the_chosen_one_is_always_on_the_screen() -> None:
    rows = listed([info(f"{number:04}", f"talk {number}") for number in range(500)], "/here")
    for step in (1, 10, 400, 500, -3, -490, -90):
        rows.move(step)
        lines = text(rows, height=30)
        assert len(lines) <= 30
        assert rows.chosen is not None
        assert [line for line in lines if line.startswith("›") and rows.chosen.title in line]
    assert any("1 of 500" in line for line in lines)


@pytest.mark.parametrize("columns", [1, 2, 7, 20, 56, 80, 200])
@pytest.mark.parametrize("height", [0, 1, 2, 3, 4, 10, 12, 18, 50])
def test_it_fits_every_window_and_nothing_hostile_gets_in(columns: int, height: int) -> None:
    rows = listed([info(f"{EVIL}{n}", EVIL, directory=f"/{EVIL}", model=EVIL) for n in range(9)], "/here", "x")
    rows.search("name")
    rows.take("name", [found(f"{EVIL}1", EVIL)])
    assert rows.chosen is not None
    rows.previews[rows.chosen.id] = SessionPreview(EVIL * 40, EVIL, 5_000_000)
    lines = text(rows, columns, height)
    assert len(lines) <= max(height, 1)
    assert all(cell_len(line) <= columns for line in lines)
    assert not set("".join(lines)) & set("\x1b\x07\x9b\u202e")
    if height >= 12 and columns >= 80:
        assert any("5.0 MB" in line for line in lines)


def test_what_is_said_of_the_chosen_one_wraps_in_a_narrow_window_and_has_no_empty_part() -> None:
    model = "anthropic/claude-of-a-long-name-2026"
    rows = listed([info("a1", "x", model=model, kind="run")], "/here")
    rows.previews["a1"] = SessionPreview("asked", "answered", 5_000_000)
    said = " ".join(line.strip() for line in text(rows, 60))
    assert f"a1 · {model} · 2 messages" in said
    assert "from nca run" in said
    assert "…" not in said
    assert "a1 · 2 messages" in " ".join(text(listed([info("a1", "x", model="")], "/here")))
