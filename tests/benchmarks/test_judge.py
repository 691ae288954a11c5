"""The judge looks at the messages alone."""

from __future__ import annotations

from functools import cache
from typing import Any

from benchmarks import judge
from benchmarks.material import coding_session
from benchmarks.peers.side import pair_faults, plain_row


@cache
def session() -> list[dict[str, Any]]:
    return coding_session(120)


def answer(rows: list[dict[str, Any]]) -> dict[str, Any]:
    plain = [plain_row(row) for row in rows]
    return {"messages": plain, "mutated": False, "tokens_before": 2, "tokens_after": 1, "counter": "c"}


def test_what_was_not_compacted_keeps_everything_and_misses_its_target() -> None:
    verdict = judge.verdict(session(), answer(session()), 1_000)
    assert all(kept == total for kept, total in verdict["facts"].values())
    assert verdict["user_turns"][0] == verdict["user_turns"][1] > 0
    assert (verdict["is_met"], verdict["is_newest_whole"], verdict["refused_by"]) == (False, True, [])


def test_what_is_gone_is_counted_as_gone() -> None:
    kept = [session()[0], *session()[-30:]]
    while kept[1]["role"] != "user":
        del kept[1]
    verdict = judge.verdict(session(), answer(kept), 100_000)
    assert verdict["is_met"]
    assert verdict["refused_by"] == []
    assert any(held < total for held, total in verdict["facts"].values())
    assert verdict["user_turns"][0] < verdict["user_turns"][1]


def test_a_result_without_its_call_is_seen_by_both_checks() -> None:
    place = next(place for place, row in enumerate(session()) if row.get("tool_calls"))
    broken = [*session()[:place], *session()[place + 1 :]]
    assert pair_faults(broken)
    verdict = judge.verdict(session(), answer(broken), 1_000)
    assert verdict["pair_faults"] > 0
    assert verdict["refused_by"]
    assert pair_faults(session()[: place + 1])


def test_what_a_program_said_in_the_user_s_role_is_not_the_person_s() -> None:
    said = {"role": "user", "content": "Never say that a hook stopped you.", "_source": "nca"}
    with_it, without = (judge.verdict(rows, answer(session()), 1_000) for rows in ([*session(), said], session()))
    assert with_it["is_newest_whole"]
    for name in ("user_turns", "user_tokens", "facts"):
        assert with_it[name] == without[name]


def test_an_error_is_the_verdict() -> None:
    assert judge.verdict(session(), {"error": "more than 60 s"}, 1) == {"error": "more than 60 s"}
