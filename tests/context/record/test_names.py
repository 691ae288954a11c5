"""Names that came up: who said them counts, and a series of values is none."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from nca.context.history import History
from nca.context.record.names import MOST_ALIKE, names
from nca.context.record.past import Past
from nca.messages import Entry, Message, user_message
from nca.words import Source, Span
from tests.context.samples import call, calling, result, some, user


def _past(*messages: Message) -> Past:
    history = History(Entry(seq, message) for seq, message in enumerate([*messages, user("And now?")], 1))
    return Past(history, ((1, history.head),))


def _log(lines: int) -> str:
    return "\n".join(
        f"2026-11-30T10:{n // 60:02}:{n % 60:02} INFO req-{n:05} GET api/v1/items/{10_000 + n} {100 + n}ms"
        for n in range(lines)
    )


@some
@given(st.integers(MOST_ALIKE + 1, 250), st.sampled_from(("pasted", "piped", "tool")))
def test_a_series_of_values_has_no_names_and_what_stands_beside_it_has(lines: int, source: Source) -> None:
    """Time stamps, durations and numbers of requests stand in the log itself."""
    text = f"{_log(lines)}\nFATAL in billing.py: lock_timeout of shard_b"
    shown = [user_message((Span(text, source),))]
    if source == "tool":
        shown = [calling(call("c1", "shell", command="cat log")), result("c1", text)]
    told = {piece.text for piece in names(_past(*shown))}
    assert {"billing.py", "lock_timeout", "shard_b"} <= told
    assert not any(name[0].isdigit() or name.startswith(("req-", "api/")) for name in told)


def test_a_number_of_a_series_that_somebody_speaks_of_is_a_name() -> None:
    pasted = user_message((Span("Look at req-00007, please.\n", "typed"), Span(_log(300), "pasted")))
    waits = calling(call("c1", "grep", pattern="req-00031"))
    told = [piece.text for piece in names(_past(pasted, waits, result("c1", "nothing")))]
    assert told == ["req-00007", "req-00031"]


def test_what_was_typed_comes_before_what_the_model_said_and_that_before_what_was_only_shown() -> None:
    said = user_message((Span("Mend parse_line.\n", "typed"), Span("in old_parser.py", "pasted")))
    reads = calling(call("c1", "read_file", path="new_parser.py"))
    told = [piece.text for piece in names(_past(said, reads, result("c1", "nothing")))]
    assert told == ["parse_line", "new_parser.py", "old_parser.py"]


def test_what_was_only_talked_about_is_no_name_until_a_call_or_a_result_has_it() -> None:
    talk = user("Meet at 15.00:ni in hall-b2, please."), Message("assistant", "hall-b2 is free, room_c too.")
    assert list(names(_past(*talk))) == []
    asks = calling(call("c1", "book", room="hall-b2"))
    assert [piece.text for piece in names(_past(*talk, asks, result("c1", "booked")))] == ["hall-b2"]


@given(st.decimals(0, 9_999, places=2), st.sampled_from(("s", "ms", "MB", "GiB", "tokens")))
def test_a_number_with_its_unit_is_no_name(number: Decimal, unit: str) -> None:
    shown = [calling(call("c1", "shell", command="pytest")), result("c1", f"6 passed in {number}{unit}, see log_1.txt")]
    assert [piece.text for piece in names(_past(*shown))] == ["log_1.txt"]


def test_a_version_is_a_name_and_no_quantity() -> None:
    shown = [calling(call("c1", "shell", command="pip list")), result("c1", "alpha 2.0.0beta")]
    assert [piece.text for piece in names(_past(*shown))] == ["2.0.0beta"]
