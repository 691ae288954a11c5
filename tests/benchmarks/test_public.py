"""Readers of public benchmarks, and what is measured on them; the files here are invented."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.environments import NCA, PEERS, Environment
from benchmarks.public import BOTH, RECALL, ahead, conversations_in, measured, public

FILLER = "We talked about the weather and about nothing in particular. " * 12


def locomo(turns: int) -> dict[str, Any]:
    """Two people, the first session with what is asked for later."""
    first = [
        {"speaker": "Ana", "dia_id": "D1:1", "text": "My boat is called Perpetua."},
        {"speaker": "Bo", "dia_id": "D1:2", "text": "Look at this.", "blip_caption": "a red boat"},
    ]
    names = ("Ana", "Bo")
    rest = [{"speaker": names[n % 2], "dia_id": f"D2:{n}", "text": f"{n}: {FILLER}"} for n in range(turns)]
    qa = [
        {"question": "What is the name of Ana's boat, Perpetua?", "evidence": ["D1:1"], "category": 4},
        {"question": "Where do both places stand?", "evidence": ["D1:1; D1:2"], "category": 1},
        {"question": "What was said last?", "evidence": [f"D2:{turns - 1}"], "category": 2},
        {"question": "Nobody knows?", "evidence": ["D1:1"], "category": 5},
        {"question": "Without evidence?", "evidence": ["D"], "category": 3},
    ]
    return {"session_1_date_time": "8 May", "session_1": first, "session_10": rest, "session_2": [], "qa": qa}


def longmemeval(id: str, *, has_answer: bool = True) -> dict[str, Any]:
    said = {"role": "user", "content": "I keep 17 goats.", **({"has_answer": True} if has_answer else {})}
    sessions = [[said, {"role": "assistant", "content": "Noted."}], [{"role": "user", "content": FILLER}]]
    return {
        "question_id": id,
        "question": "How many goats?",
        "haystack_dates": ["2023/05/20", "2023/05/21"],
        "haystack_sessions": sessions,
    }


def test_both_forms_are_read_and_other_files_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "26.json").write_text(json.dumps(locomo(4)))
    nested = locomo(4)
    (tmp_path / "all.json").write_text(json.dumps([{"qa": nested.pop("qa"), "conversation": nested}]))
    items = [longmemeval("q1"), longmemeval("q2_abs"), longmemeval("q3", has_answer=False)]
    (tmp_path / "longmemeval_s.json").write_text(json.dumps(items))
    for name, text in (
        ("broken.json", "{"),
        ("other.json", '{"a": 1}'),
        ("empty.json", "[]"),
        ("half.json", '[{"qa": 1}]'),
    ):
        (tmp_path / name).write_text(text)
    found = conversations_in(tmp_path)
    assert set(found) == {"LoCoMo", "LongMemEval"}
    assert found["LoCoMo"][0].rows == found["LoCoMo"][1].rows
    talk = found["LoCoMo"][0]
    assert [row["role"] for row in talk.rows[:3]] == ["user", "assistant", "user"]
    assert talk.rows[1]["content"] == "[8 May] Bo: Look at this. [photo: a red boat]"
    assert [needed for _, needed in talk.questions] == [{0}, {0, 1}, {5}]
    (one,) = found["LongMemEval"]
    assert (one.name, one.questions) == ("q1", [("How many goats?", frozenset({0}))])
    assert one.rows[0]["content"] == "[2023/05/20] I keep 17 goats."
    left_out = [line.partition(": ")[0] for line in capsys.readouterr().out.splitlines()]
    assert left_out == [str(tmp_path / name) for name in ("broken.json", "empty.json", "half.json", "other.json")]


def test_a_folder_without_any_of_them_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="there is no such folder"):
        conversations_in(tmp_path / "nothing")
    with pytest.raises(SystemExit, match=r"no file of LoCoMo \(locomo10.json\)"):
        conversations_in(tmp_path)


def test_what_can_be_read_and_what_is_found_are_counted(tmp_path: Path) -> None:
    (tmp_path / "26.json").write_text(json.dumps(locomo(160)))
    environments = {peer.name: Environment(peer, reason="not here") for peer in PEERS} | {"nca": Environment(NCA)}
    rows = list(measured(environments, conversations_in(tmp_path), tmp_path))
    assert {row["peer"] for row in rows} == {"nca"}
    assert [row["windows"] for row in rows] == [[8_000]] * len(rows)
    (code,) = [row for row in rows if row["label"] == "nca" and not row["has_model"]]
    assert (code["questions"], code["met"]) == (3, 1)
    assert 1 <= code["found"] <= 3, "the newest message stays whole"
    assert [due for _, due in code["by_role"].values()] == [1, 1], "one question needs both"
    assert 0 < code["fill"] <= 1.02
    (by_recall,) = [row["found"] for row in rows if row["label"] == RECALL]
    (by_both,) = [row["found"] for row in rows if row["label"] == BOTH]
    assert by_recall >= 1
    assert max(by_recall, code["found"]) <= by_both <= 3
    text = "\n".join(public({"public": rows}))
    assert "LoCoMo: 1 conversations, 3 questions, windows of 8,000 tokens." in text
    assert "| nca's recall, all messages needed |" in text
    assert not list(public({}))
    assert list(ahead({"public": rows})) == []
    better = {**code, "peer": "other", "label": "other", "found": 3, "met": 0}
    ((what, _, theirs, why, _),) = ahead({"public": [{**code, "found": 2}, better]})
    assert what == "what questions of LoCoMo need"
    assert theirs == "other 100.0% but meets 0 of 1 targets (nca: 1)"
    assert why.startswith("nca keeps the user's words first: ")


def test_lost_in_compaction_has_its_questions_beside_it(tmp_path: Path) -> None:
    rows = [
        {"role": role, "content": said} for role, said in (("user", "I keep 17 goats."), ("assistant", "Noted: 17."))
    ]
    facts = [
        {"question": "How many goats?", "keywords": ["17", "Goats"], "compacted": False},
        {"question": "How many?", "keywords": ["17"], "compacted": True},
        {"question": "Why?", "keywords": ["milk"], "compacted": False},
    ]
    (tmp_path / "d40_C1.json").write_text(json.dumps(rows))
    places = {"message_start": 0, "message_end": 1}
    (tmp_path / "d40_C1_meta.json").write_text(json.dumps({"facts": [fact | places for fact in facts]}))
    ((name, (one,)),) = conversations_in(tmp_path).items()
    assert (name, one.name, one.rows) == ("lost-in-compaction", "d40_C1", rows)
    assert one.questions == [("How many goats?", frozenset({0}))]
