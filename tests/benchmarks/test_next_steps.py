"""What the agent needs next, what it fetches again, and what it changed elsewhere: by the messages alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import effects
from benchmarks.comparison import VARIANTS, Variant
from benchmarks.environments import NCA, Environment
from benchmarks.needed import Fetched, cuts, names, needs
from benchmarks.next_steps import ahead, measured, newest, next_steps, summed
from benchmarks.stated import Recorded
from benchmarks.tokens import tokens

Row = dict[str, Any]
OWN = [variant for variant in VARIANTS if variant.peer == "nca" and variant.name == "extract"]


def called(number: int, name: str, text: str, **given: object) -> list[Row]:
    call = {"id": f"c{number}", "function": {"name": name, "arguments": json.dumps(given)}}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": text},
    ]


def test_a_name_has_a_mark_and_a_number_three_digits() -> None:
    found = names("Look at src/parser.py, parseLine and line 12 of 1,250; then stop (OPS-4471).")
    assert found == {"src/parser.py", "parseLine", "1,250", "OPS-4471"}


def test_what_is_needed_came_up_before_and_was_not_shown_again() -> None:
    past = [
        {"role": "user", "content": "Mend src/parser.py, ticket OPS-4471."},
        *called(1, "grep", "lib/reader.py has it"),
    ]
    coming = [
        *called(2, "read_file", "nothing of it", path="src/parser.py"),
        {"role": "assistant", "content": "lib/reader.py is next, and new/thing.py."},
        *called(3, "read_file", "x", path="src/parser.py"),
        {"role": "assistant", "content": "See OPS-4471 in src/parser.py."},
    ]
    found = needs(past, coming, coming)
    assert dict(found.names) == {
        ("calls", "person"): {"src/parser.py"},
        ("prose", "tool"): {"lib/reader.py"},
        ("prose", "person"): {"OPS-4471"},
    }


def test_a_result_that_is_the_same_is_fetched_again_and_a_changed_one_is_not() -> None:
    past = [*called(1, "read_file", "one\ntwo", path="a.py"), *called(2, "read_file", "three", path="b.py")]
    rest = [*called(3, "read_file", "one\ntwo", path="a.py"), *called(4, "read_file", "changed", path="b.py")]
    assert needs(past, [], rest).fetched == [Fetched("one\ntwo", set())]


def test_lines_that_the_same_file_had_before_are_fetched_again() -> None:
    text = "\n".join(f"line {number} of the file" for number in range(60))
    part = "\n".join(text.splitlines()[20:30])
    past = called(1, "read_file", text, path="a.py")
    again, other = called(2, "read_file", part, path="a.py", offset=21), called(3, "read_file", part, path="b.py")
    changed = called(4, "read_file", part.replace("of the file", "is new"), path="a.py", offset=21)
    assert needs(
        past, [], [*again, *other, *changed, *called(5, "bash", part, command="sed -n 21,30p a.py")]
    ).fetched == [Fetched(part, set())]


def test_what_the_agent_uses_of_a_result_is_what_it_names_behind_it() -> None:
    text = "def first_one(): ...\ndef second_one(): ..."
    past = [*called(1, "read_file", text, path="a.py"), {"role": "assistant", "content": "first_one is there."}]
    rest = [
        {"role": "assistant", "content": "I look again for first_one."},
        *called(2, "read_file", text, path="a.py"),
        {"role": "user", "content": "Leave first_one."},
        {"role": "assistant", "content": "Then second_one and third_one."},
    ]
    assert needs(past, [], rest).fetched == [Fetched(text, {"second_one"})]


def lacking(label: str, count: int, of_target: float, session: str = "a", **more: object) -> Row:
    size = {"window_tokens": 64_000, "of_target": of_target, "cuts": 1, "names": {}, "newest": {}}
    return {"label": label, "has_model": False, "session": session, "lacking": [count, 4], **size, **more}


def test_who_keeps_to_the_target_and_lacks_less_of_what_is_fetched_again_is_ahead() -> None:
    rows = [lacking("nca", 3, 1.2), lacking("better", 1, 1.0), lacking("level", 3, 1.0), lacking("large", 0, 2.0)]
    ((what, own, other, why, is_fair),) = ahead({"next_steps": rows})
    assert (what, own, other, is_fair) == (
        "results fetched again that the view lacks, at 64k",
        "3 of 4",
        "better 1 of 4",
        True,
    )
    assert why
    assert list(ahead({})) == list(ahead({"next_steps": rows[1:]})) == []


def test_who_is_larger_where_results_are_fetched_again_is_ahead_by_its_size() -> None:
    elsewhere = lacking("better", 0, 0.2, "b", lacking=[0, 0])
    rows = [lacking("nca", 3, 1.0), lacking("better", 1, 2.0), elsewhere]
    ((*_, other, _, is_fair),) = ahead({"next_steps": rows})
    assert (other, is_fair) == ("better 1 of 4 with 2.0 × the target in these sessions", False)
    rows = [lacking("nca", 3, 1.0), lacking("better", 1, 1.0), {**elsewhere, "of_target": 3.0}]
    ((*_, other, _, is_fair),) = ahead({"next_steps": rows})
    assert (other, is_fair) == ("better 1 of 4", True), "it is larger where nothing is fetched again"


def test_the_section_says_whose_results_are_fetched_again_and_what_was_used_of_them() -> None:
    rows = [lacking("nca", 3, 1.0, "one", used=[1, 4]), lacking("nca", 1, 1.0, "two", lacking=[1, 1], used=[1, 1])]
    text = "\n".join(next_steps({"next_steps": rows}))
    assert "At 64k 4 of the 5 results that are fetched again are of one session (one)" in text
    assert "nca's view had 40.0% at 64k." in text


def test_a_session_is_never_cut_between_a_call_and_its_result() -> None:
    rows = [row for number in range(60) for row in (*called(number, "ls", "a"), {"role": "user", "content": "Go on."})]
    places = list(cuts(rows))
    assert places
    assert all(rows[place]["role"] != "tool" for place in places)


def test_everything_that_is_needed_can_be_read_where_nothing_was_compacted(tmp_path: Path) -> None:
    rows: list[Row] = []
    for number in range(60):
        rows.append(
            {"role": "user", "content": f"Mend src/part_{number}.py please. " + "It is about the reader. " * 20}
        )
        rows += called(number, "read_file", f"part {number} of it " * 60, path=f"src/part_{number}.py")
        rows.append({"role": "assistant", "content": f"src/part_{max(0, number - 30)}.py does the same."})
    (row,) = measured({"nca": Environment(NCA)}, [Recorded("made", rows, [])], tmp_path, OWN, (8_000,))
    assert row["cuts"] == len([at for at in cuts(rows) if tokens(rows[:at]) > 5_200])
    assert row["of_target"] < 1.1
    share, floor = summed([row], "names", "prose"), summed([row], "newest", "prose")
    assert share is not None
    assert floor is not None
    assert share > floor
    assert list(measured({"nca": Environment(NCA)}, [Recorded("made", rows, [])], tmp_path, OWN, (400_000,))) == []


def test_an_adapter_that_fails_reads_nothing(tmp_path: Path) -> None:
    rows = [
        {"role": role, "content": f"src/part_{n // 4}.py " * 200} for n in range(60) for role in ("user", "assistant")
    ]
    nobody = [Variant("nca", "no such", "nobody")]
    (row,) = measured({"nca": Environment(NCA)}, [Recorded("made", rows, [])], tmp_path, nobody, (8_000,))
    assert row["error"]
    assert not summed([row], "names")


def test_the_newest_messages_are_as_many_as_fit() -> None:
    rows = [{"role": "user", "content": "word " * 100} for _ in range(10)]
    assert len(newest(rows, 3 * tokens(rows[:1]))) == 3
    assert newest(rows, 0) == []


def test_a_change_is_told_by_its_action_and_what_it_was_done_to() -> None:
    rows = [
        *called(1, "cancel_reservation", '{"status": "cancelled"}', reservation_id="LU15PA"),
        *called(2, "cancel_reservation", "Error: not yours", reservation_id="XXXXXX"),
        *called(3, "get_reservation_details", "{}", reservation_id="LU15PA"),
        *called(4, "update_reservation_flights", "{}", reservation_id="LU15PA", cabin="economy"),
        *called(5, "update_reservation_flights", "{}", reservation_id="LU15PA", cabin="business"),
    ]
    wanted = effects.effects(rows)
    assert wanted == {("cancel_reservation", "LU15PA"): 1, ("update_reservation_flights", "LU15PA"): 2}
    assert effects.told(wanted, rows) == 3
    one = [
        {
            "role": "user",
            "content": "- update_reservation_flights reservation_id=LU15PA\n- cancel_reservation\n- LU15PA",
        }
    ]
    assert effects.told(wanted, one) == 1


@pytest.mark.parametrize("has_file", [True, False])
def test_a_day_at_the_desk_is_all_conversations_behind_one_system_prompt(tmp_path: Path, has_file: bool) -> None:
    if has_file:
        talks = [
            [
                {"role": "system", "content": "Be kind."},
                {"role": "user", "content": f"Cancel R{number}."},
                *called(number, "cancel_reservation", "{}", reservation_id=f"R{number:05}"),
                {"role": "assistant", "content": "It is cancelled. " + "Have a good day. " * 300},
            ]
            for number in range(30)
        ]
        lines = [json.dumps({"id": number, "messages": talk}) for number, talk in enumerate(talks)]
        (tmp_path / effects.FILE).write_text("\n".join(lines))
    day = effects.a_day(tmp_path)
    assert [row["role"] for row in day].count("system") == has_file
    rows = list(effects.measured({"nca": Environment(NCA)}, tmp_path, tmp_path, OWN))
    assert [row["told"] for row in rows] == [[30, 30]] * (len(effects.WINDOWS) * has_file)
