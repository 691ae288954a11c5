"""The protocol between the benchmark and an adapter, with a trivial adapter in a real process."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.asking import ask, asked, packed
from benchmarks.comparison import SUMMARY
from benchmarks.environments import PEERS, prepared
from benchmarks.material import coding_session
from benchmarks.peers.side import NO_END, plain_row, read_rows
from benchmarks.requests import heads, judged, requests_of

PEER = (sys.executable, str(Path(__file__).with_name("trivial_peer.py")))
ANSWER = {"role": "assistant", "content": "I did."}


@cache
def session() -> list[dict[str, Any]]:
    return coding_session(40)


def answers(folder: Path, op: str, variant: str, **more: Any) -> list[dict[str, Any]]:
    case = {"file": str(packed(session(), folder / "rows.json")), "target_tokens": 2_000, "budget_tokens": 4_000}
    task = {"op": op, "variant": variant, "runs": 2, "summary": "", "times": ("from dicts", "native")}
    limits = {"trigger_tokens": 3_000, "window_tokens": 6_000}
    return asked(PEER, task, [{**case, **limits, **more}], most_seconds=more.get("seconds", 20))


def test_the_marks_of_a_message_go_to_the_program_and_the_judge_s_notes_stay(tmp_path: Path) -> None:
    marked = {"role": "user", "content": "Stopped by a hook.", "_source": "nca"}
    assert read_rows(str(packed([{**marked, "_rules": ["Stop."], "_number": 3}], tmp_path / "rows.json"))) == [marked]


def test_a_compaction_comes_back_with_the_peer_s_own_numbers(tmp_path: Path) -> None:
    answer = answers(tmp_path, "compact", "last")[0]
    sent = [{key: value for key, value in row.items() if key != "_error"} for row in session()]
    assert answer["messages"] == sent[-len(answer["messages"]) :]
    assert answer["tokens_after"] <= 2_000 < answer["tokens_before"]
    assert (answer["mutated"], answer["counter"]) == (False, "a quarter of the characters")


def test_what_a_peer_does_wrong_is_an_answer_too(tmp_path: Path) -> None:
    assert answers(tmp_path, "compact", "raises")[0] == {"error": "RuntimeError: it cannot"}
    assert answers(tmp_path, "compact", "changes")[0]["mutated"] is True
    assert asked((sys.executable, "-c", "raise SystemExit('no such peer')"), {}, [{}])[0] == {"error": "no such peer"}


def test_who_computes_too_long_is_told_from_who_is_kept_waiting(tmp_path: Path) -> None:
    assert answers(tmp_path, "compact", "computes", seconds=0.2)[0]["error"] == "more than 0 s"
    assert answers(tmp_path, "compact", "sleeps", seconds=0.2)[0]["error"].startswith(NO_END)


def test_each_case_has_an_answer_whatever_becomes_of_the_others(tmp_path: Path) -> None:
    good = {"file": str(packed(session(), tmp_path / "rows.json")), "target_tokens": 2_000}
    task = {"op": "compact", "variant": "last"}
    found = asked(PEER, task, [good, {"file": str(tmp_path / "nothing.json")}, good])
    assert ["error" in answer for answer in found] == [False, True, False]


def test_times_are_those_of_the_work(tmp_path: Path) -> None:
    answer = answers(tmp_path, "time", "last")[0]
    assert 1 <= len(answer["seconds"]) <= 2
    assert 1 <= len(answer["from_dicts_seconds"]) <= 2
    assert all(second > 0 for name in ("seconds", "from_dicts_seconds", "check_seconds") for second in answer[name])
    assert "seconds" not in answers(tmp_path, "time", "last", times=("from dicts",))[0]
    assert answer["peak_bytes"] > 1_000_000


def test_every_request_of_a_replay_comes_back_and_is_judged_by_its_messages(tmp_path: Path) -> None:
    kept, anew = (answers(tmp_path, "replay", variant)[0] for variant in ("last", "each"))
    first = requests_of(kept)[0]
    assert first == [plain_row(row) for row in session()[: heads(session())[0]]]
    assert len(kept["requests"]) == len(anew["requests"]) == len(heads(session()))
    found = judged(session(), requests_of(kept), {"budget_tokens": 4_000, "window_tokens": 6_000})
    assert found["breaks"] == kept["compactions"] > 0
    assert anew["compactions"] > kept["compactions"]
    assert 0 < found["cost_ratio"] < 1
    assert found["broken"] > 0
    assert found["refused"] >= found["broken"]


def test_counts_and_errors(tmp_path: Path) -> None:
    counts = answers(tmp_path, "count", "last", model="openai/gpt-4o", ends=[1, 10, 40])[0]["counts"]
    assert counts == sorted(counts)
    said = answers(tmp_path, "errors", "last", errors=[{"body": "the prompt is too long"}, {"body": "slow down"}])[0]
    assert said == {"overflows": [True, False]}


def test_codex_s_rule_keeps_the_person_s_newest_words_and_cuts_the_first_that_does_not_fit(tmp_path: Path) -> None:
    codex = prepared(next(one for one in PEERS if one.name == "codex"))
    said = [{"role": "user", "content": f"{number} " + "word " * 200} for number in range(5)]
    rows = [{"role": "system", "content": "Be kind."}, *(one for row in said for one in (row, ANSWER))]
    case = {"file": str(packed(rows, tmp_path / "rows.json")), "target_tokens": 700, "summary": SUMMARY}
    (answer,) = ask(codex, {"op": "compact", "variant": "local"}, [case])
    system, cut, *whole, summary = answer["messages"]
    assert (system["content"], whole) == ("Be kind.", said[-len(whole) :])
    assert len(whole) == 2
    assert cut["content"].startswith("2 word")
    assert "tokens truncated" in cut["content"]
    assert summary["content"].endswith(SUMMARY)
    again = {**case, "file": str(packed([*answer["messages"], ANSWER], tmp_path / "again.json"))}
    (second,) = ask(codex, {"op": "compact", "variant": "local"}, [again])
    assert sum(SUMMARY in row["content"] for row in second["messages"]) == 1
