"""Recorded sessions: what is counted as readable, and that the recorded ones stay so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.recorded import WINDOWS, Readable, lines, readable, recorded_lines
from benchmarks.stated import MARKS, OWN, Fact, Recorded, digest, marked_in, sessions_in, text_of
from nca.messages import Message
from nca.sessions import Store
from nca.transcripts.session_file import to_json
from tests.sessions.samples import MANUAL, said


def talk(turns: int) -> list[dict[str, Any]]:
    """A rule, then long turns about something else."""
    rows: list[dict[str, Any]] = [{"role": "user", "content": "Never touch lock.py. My name is Ines Varga."}]
    for number in range(turns):
        rows.append({"role": "assistant", "content": f"Part {number}: " + "the reader keeps what it has seen. " * 60})
        rows.append({"role": "user", "content": f"Go on with part {number + 1}."})
    return [*rows, {"role": "assistant", "content": "Done."}]


def test_a_session_without_a_compaction_has_all_its_facts() -> None:
    session = Recorded("short", talk(3), [Fact("name", 1, "name", [["Varga"]]), Fact("rule", 3, "rule", [["lock.py"]])])
    found = readable(session, 24_000)
    assert (found.share, found.worst, found.compactions) == (1.0, (1.0, 1, ()), 0)
    assert [due for _, due, _ in found.requests] == [1, 2, 2, 2]


def test_what_was_never_said_is_lost_from_when_it_is_due() -> None:
    session = Recorded("short", talk(3), [Fact("one", 1, "name", [["Varga"]]), Fact("two", 5, "name", [["Nobody"]])])
    found = readable(session, 24_000)
    assert found.requests == [(1, 1, ()), (3, 1, ()), (5, 2, ("two",)), (7, 2, ("two",))]
    assert found.share == pytest.approx(4 / 6)
    assert found.worst == (0.5, 5, ("two",))


def test_a_session_larger_than_the_window_is_compacted_and_the_listing_says_so() -> None:
    session = Recorded("long", talk(60), [Fact("rule", 1, "rule", [["lock.py"]])])
    found = readable(session, 8_000)
    assert found.compactions > 1
    assert len(found.requests) == 61
    listed = list(lines([session]))
    assert [line.partition(":")[0] for line in listed] == [
        f"long at {size}" for size in ("8,000", "12,000", "16,000", "24,000")
    ]
    assert f"{found.share:.1%} of the facts readable over 61 requests" in listed[0]


def test_every_group_needs_one_of_its_words() -> None:
    fact = Fact("both", 1, "rule", [["a.py"], ["never", "nunca"]])
    assert fact.is_in("nunca toques a.py")
    assert not fact.is_in("nunca toques b.py")


def test_the_arguments_of_calls_are_read_without_escapes() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "shell", "arguments": '{"command": "echo \\u00e4"}'}}
    assert "echo ä" in text_of({"role": "assistant", "content": None, "tool_calls": [call]})
    assert text_of({"role": "user", "content": [{"type": "text", "text": "hello"}]}) == "hello"


def test_a_folder_of_sessions_is_read_and_an_export_becomes_lines(tmp_path: Path) -> None:
    with Store.open(None) as store, store.create(directory="/", model="m") as session:
        session.log.append(said("señor\u2028no", "never mind"))
        _, before_it = session.rewinds.before(2)
        session.views.commit(before_it, MANUAL)
        session.log.append([Message("assistant", "Sí.")])
        export = to_json(store.copy_of(session.info.id))
    (tmp_path / "export.json").write_bytes(export)
    command = [sys.executable, "-m", "benchmarks.recorded", "--lines", str(tmp_path / "export.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=OWN.parents[2])
    printed = done.stdout.removesuffix("\n").split("\n")
    assert printed == list(recorded_lines(export, "export.json"))
    rows = [json.loads(line) for line in printed]
    assert [(row["content"], row["_seq"]) for row in rows] == [("señor\u2028no", 1), ("Sí.", 3)], (
        "not what a rewind left"
    )
    (tmp_path / "one.jsonl").write_text(done.stdout)
    fact: dict[str, Any] = {"name": "who", "from_message": 1, "kind": "name", "all_of": [["señor"]]}
    (tmp_path / "one.facts.json").write_text(json.dumps([fact]))
    assert sessions_in(tmp_path) == [Recorded("one", rows, [Fact(**fact)])]


LEAST = {
    "berths": (0.925, 0.965, 1.0),
    "betrieb": (0.395, 0.615, 0.94),
    "brygga": (0.46, 0.69, 0.985),
    "chalupa": (0.195, 0.305, 0.79),
    "colloque": (0.34, 0.505, 0.945),
    "dotenv": (1.0, 1.0, 1.0),
    "fahrplan": (1.0, 1.0, 1.0),
    "garza": (0.615, 0.765, 0.97),
    "hangul": (0.485, 0.685, 0.995),
    "hoian": (0.325, 0.545, 0.96),
    "klinik": (0.34, 0.49, 0.85),
    "kuorojuhla": (0.195, 0.395, 0.895),
    "leoforeia": (0.15, 0.52, 0.87),
    "mahrajan": (0.485, 0.635, 0.965),
    "merleg": (0.36, 0.665, 1.0),
    "mittaus": (0.3, 0.55, 0.955),
    "orion": (0.415, 0.5, 0.755),
    "pantano": (0.31, 0.465, 0.91),
    "paquete": (0.19, 0.62, 0.92),
    "pasika": (0.53, 0.64, 0.95),
    "pegel": (0.53, 0.675, 0.93),
    "sakagura": (0.355, 0.48, 0.885),
    "schedule": (1.0, 1.0, 1.0),
    "slugify": (1.0, 1.0, 1.0),
    "sogukhat": (0.23, 0.4, 0.86),
    "speiseplan": (0.315, 0.51, 0.91),
    "spoldzielnia": (0.24, 0.405, 0.915),
    "statii": (0.16, 0.49, 0.88),
    "tabulate": (1.0, 1.0, 1.0),
    "trasloco": (0.195, 0.42, 0.81),
    "travessia": (0.295, 0.655, 0.995),
    "verbouwing": (0.565, 0.78, 1.0),
    "werkstatt": (0.5, 0.645, 0.995),
    "winter": (0.57, 0.7, 0.995),
    "wipanjang": (0.29, 0.52, 0.97),
}
"""By session: the share of the worst request at 8,000, and of all requests there and at 24,000. Measured, and rounded
down by half a point to a point: the system prompt says what machine it is. `make bench-quick` compares 12,000
with the page as well.

The sessions that note who said a fact have three times as many facts as the others, and a third of them or more are
what the model answered or a tool printed: in a small window the person's words come first, beside the answer that they
speak of.
"""
OF_THE_PERSON = {
    "betrieb": (0.965, 1.0),
    "brygga": (0.895, 1.0),
    "chalupa": (0.365, 0.925),
    "colloque": (0.73, 0.985),
    "garza": (1.0, 1.0),
    "hangul": (0.995, 1.0),
    "hoian": (0.85, 1.0),
    "klinik": (0.705, 1.0),
    "kuorojuhla": (0.495, 1.0),
    "leoforeia": (0.73, 0.97),
    "mahrajan": (0.86, 1.0),
    "merleg": (0.945, 1.0),
    "mittaus": (0.915, 1.0),
    "orion": (1.0, 1.0),
    "pantano": (0.63, 1.0),
    "paquete": (0.97, 1.0),
    "pasika": (0.96, 1.0),
    "pegel": (1.0, 1.0),
    "sakagura": (0.64, 1.0),
    "sogukhat": (0.77, 1.0),
    "speiseplan": (0.71, 1.0),
    "spoldzielnia": (0.555, 1.0),
    "statii": (0.68, 1.0),
    "trasloco": (0.615, 0.96),
    "travessia": (0.795, 1.0),
    "verbouwing": (0.985, 1.0),
    "werkstatt": (0.96, 1.0),
    "winter": (0.985, 1.0),
    "wipanjang": (0.86, 1.0),
}
"""The same of what the person said, where it is noted who said what."""


def of_the_person(session: Recorded, found: Readable) -> float:
    """Of the facts that the person said, in all requests, the share that could be read."""
    due = [(fact, lost) for head, _, lost in found.requests for fact in session.due(head) if fact.by == "person"]
    return sum(fact.name not in lost for fact, lost in due) / len(due)


def tried() -> Iterator[Any]:
    """All in the small window, and in the large one those that lose the most there; NCA_RECORDED=1 tries all there."""
    for window_tokens in (WINDOWS[0], WINDOWS[-1]):
        for session in sessions_in(OWN):
            if window_tokens == WINDOWS[0] or LEAST[session.name][-1] < 0.95 or os.environ.get("NCA_RECORDED"):
                yield pytest.param(session, window_tokens, id=f"{window_tokens}-{session.name}")


@pytest.mark.parametrize(("session", "window_tokens"), list(tried()))
def test_the_recorded_sessions_stay_readable(session: Recorded, window_tokens: int) -> None:
    worst, *shares = LEAST[session.name]
    is_small = window_tokens == WINDOWS[0]
    # The chat's tools take room: what a change of the engine costs shows in one window with them, in one without.
    found = readable(session, window_tokens, has_tools=is_small)
    assert found.share >= shares[not is_small], found.worst
    if session.name in OF_THE_PERSON:
        assert of_the_person(session, found) >= OF_THE_PERSON[session.name][not is_small]
    if is_small:
        assert found.compactions > 5
        assert found.worst[0] >= worst, found.worst


def test_who_said_a_fact_is_noted_for_all_of_a_session_or_for_none() -> None:
    for session in sessions_in(OWN):
        speakers = {fact.by for fact in session.facts}
        assert speakers <= {"person", "model", "tool"} if session.name in OF_THE_PERSON else speakers == {""}


@pytest.mark.parametrize("session", sessions_in(OWN), ids=lambda session: session.name)
def test_every_fact_of_a_recorded_session_was_said_by_then(session: Recorded) -> None:
    for fact in session.facts:
        assert fact.is_in("\n".join(text_of(row) for row in session.rows[: fact.from_message])), fact.name


@pytest.mark.parametrize("place", sorted(MARKS.glob("*.json")), ids=lambda place: place.stem)
def test_marks_say_what_they_are_of(place: Path) -> None:
    marks = json.loads(place.read_text())
    assert set(marks) <= {"file", "line", "sha256", "facts"}
    facts = [Fact(**one) for one in marks["facts"]]
    assert facts
    assert all(fact.all_of and all(fact.all_of) for fact in facts)


def test_marks_belong_to_the_transcript_that_they_were_made_of(tmp_path: Path) -> None:
    rows = [*talk(2), {"role": "_compaction", "summary": ""}]
    (tmp_path / "all.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "each.jsonl").write_text(json.dumps({"id": "x", "messages": talk(3)}))
    fact = {"name": "rule", "from_message": 1, "kind": "rule", "all_of": [["lock.py"]], "until_message": 3}
    marks = tmp_path / "marks"
    marks.mkdir()
    heads: dict[str, dict[str, Any]] = {
        "whole": {"file": "all.jsonl", "sha256": digest(talk(2))},
        "in-lines": {"file": "each.jsonl", "line": 1, "sha256": digest(talk(3))},
        "no-such-line": {"file": "each.jsonl", "line": 2, "sha256": digest(talk(3))},
        "changed": {"file": "all.jsonl", "sha256": digest(talk(3))},
        "elsewhere": {"file": "nothing.jsonl", "sha256": digest(talk(3))},
    }
    for name, head in heads.items():
        (marks / f"{name}.json").write_text(json.dumps({**head, "facts": [fact]}))
    found = marked_in(tmp_path, marks)
    assert [(one.name, len(one.rows)) for one in found] == [("in lines", 8), ("whole", 6)]
    assert [len(found[0].due(number)) for number in (0, 1, 2, 3)] == [0, 1, 1, 0]
