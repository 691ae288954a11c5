"""A stored log gives the same answers as one in memory, and reads only what is needed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.context.budget import Budget
from nca.context.history import History
from nca.context.log import KEPT_PAGES, PAGE, Log, LogSoFar
from nca.context.meter import Meter
from nca.context.request import request_messages
from nca.context.restore import block_of
from nca.context.retention import MOST_COUNTED, KeptFacts
from nca.context.rules.cut_points import blocks
from nca.context.rules.untouchable import unseen, untouchable
from nca.context.todo import newest_list
from nca.context.view import Marker, Stub, Summary, Verbatim, View
from nca.errors import StoreDamaged
from nca.messages import Entry, Message, ToolCall
from tests.context.logs import grow, history_of, logs
from tests.context.samples import assistant, some, step, talk, user

BUDGET = Budget.of(100_000)


class Kept:
    """A log in a list, which keeps account of what is read of it."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.all = [Entry(seq, message) for seq, message in enumerate(messages, 1)]
        self.read: list[tuple[int, int]] = []

    @property
    def head(self) -> int:
        return len(self.all)

    def entries(self, first: int = 1, last: int | None = None) -> list[Entry]:
        self.read.append((first, self.head if last is None else last))
        return self.all[first - 1 : last]

    def said(self, last: int) -> tuple[int, int]:
        said = [e.seq for e in self.all[:last] if e.message.role == "user" and not e.message.is_synthetic]
        return len(said), max(said, default=0)

    def todo_results(self) -> Iterable[int]:
        return [e.seq for e in reversed(self.all) if e.message.role == "tool" and e.message.name == "todo"]


def both(messages: Sequence[Message], view: View | None = None) -> tuple[History, History]:
    """The same log, in memory and kept elsewhere."""
    kept = Kept(messages)
    return History(list(kept.all), view), History(Log(kept), view)


def long_talk(turns: int) -> list[Message]:
    return [message for number in range(turns) for message in (user(f"Question {number}?"), assistant(f"{number}."))]


def hidden_but(first: int, head: int) -> View:
    return View((Marker("m", ((1, first - 1),), "[out]"),), first)


@some
@given(logs(), st.data())
def test_everything_is_as_in_memory(messages: list[Message], data: st.DataObject) -> None:
    begun = data.draw(st.integers(0, len(messages)))
    hidden = data.draw(st.integers(0, begun))
    view = hidden_but(hidden + 1, begun) if hidden else View()
    kept = Kept(messages[:begun])
    memory, stored = History(list(kept.all), view), History(Log(kept), view)
    for seq, message in enumerate(messages[begun:], begun + 1):
        kept.all.append(Entry(seq, message))
        memory.append(Entry(seq, message))
        stored.append(Entry(seq, message))
    assert list(stored.entries) == list(memory.entries)
    assert (stored.turns, stored.newest_user) == (memory.turns, memory.newest_user)
    assert stored.newest_list == memory.newest_list
    assert (stored.view_tokens, stored.view_calls) == (memory.view_tokens, memory.view_calls)
    assert Meter().measure(stored, BUDGET).used_tokens == Meter().measure(memory, BUDGET).used_tokens
    assert request_messages(stored) == request_messages(memory)
    assert (untouchable(stored), unseen(stored)) == (untouchable(memory), unseen(memory))
    stored.view = memory.view = View()
    assert stored.view_tokens == memory.view_tokens
    if messages:
        first = data.draw(st.integers(1, len(messages)))
        last = data.draw(st.integers(first - 1, len(messages)))
        assert stored.run_tokens(first, last) == memory.run_tokens(first, last)
        assert list(stored.entries[first - 1 : last]) == list(memory.entries[first - 1 : last])


def test_only_what_is_shown_is_read() -> None:
    kept = Kept(long_talk(20 * PAGE))
    history = History(Log(kept), View((Verbatim(1, 2), Marker("m", ((3, kept.head - 9),), "")), kept.head - 8))
    assert history.view_tokens > 0
    assert history.turns == 20 * PAGE
    assert [entry.seq for entry in history.visible()] == [1, 2, *range(kept.head - 8, kept.head + 1)]
    request_messages(history)
    untouchable(history)
    Meter().measure(history, BUDGET)
    assert kept.read == [(1, PAGE), (kept.head - PAGE + 1, kept.head)]


def test_what_is_hidden_comes_back_with_the_view_before() -> None:
    messages = long_talk(3 * PAGE)
    memory, stored = both(messages, hidden_but(len(messages) - 3, len(messages)))
    for view in (View(), hidden_but(PAGE + 2, len(messages)), View((Stub(1, "cut", "truncate"), Verbatim(2, 9)), 10)):
        assert stored.tokens_of(view) == memory.tokens_of(view)
        stored.view = memory.view = view
        assert stored.view_tokens == memory.view_tokens
        assert request_messages(stored) == request_messages(memory)


def test_what_is_not_shown_any_more_is_let_go_and_read_again() -> None:
    kept = Kept(long_talk((KEPT_PAGES + 3) * PAGE // 2))
    history = History(Log(kept))
    whole = history.view_tokens
    kept.read.clear()
    history.view = hidden_but(kept.head - 3, kept.head)
    assert history.message(1).text == "Question 0?"
    assert kept.read == [(1, PAGE)]
    history.view = View()
    assert history.view_tokens == whole


def test_what_a_record_stands_for_is_not_read_to_count_what_it_keeps() -> None:
    kept = Kept(long_talk(4 * PAGE))
    history = History(Log(kept))
    gone = ((2, kept.head - 4),)
    view = View((Verbatim(1, 1), Summary("s", gone, "Nothing.")), kept.head - 3)
    counted = KeptFacts(History(list(kept.all), view), view).by_kind()
    kept.read.clear()
    assert KeptFacts(history, view).by_kind() == counted
    assert sum(last - first + 1 for first, last in kept.read) <= MOST_COUNTED + PAGE


def test_going_through_all_of_it_keeps_nothing() -> None:
    kept = Kept(long_talk(PAGE))
    log = Log(kept)
    assert [entry.seq for entry in log] == list(range(1, kept.head + 1))
    assert not list(log.in_memory())
    assert log[-1].seq == kept.head
    assert [entry.seq for entry in log[::-1]][:2] == [kept.head, kept.head - 1]
    with pytest.raises(IndexError):
        log[kept.head]


def test_a_log_that_is_not_whole_is_refused() -> None:
    kept = Kept(long_talk(4))
    log = Log(kept)
    del kept.all[3]
    with pytest.raises(StoreDamaged, match="a gap between messages 1 and 8"):
        log[0]


def wrote(number: int, **arguments: object) -> list[Message]:
    call = ToolCall(f"t{number}", "todo", json.dumps(arguments))
    return [
        Message("assistant", None, (call,)),
        Message("tool", "ok", tool_call_id=call.id, name="todo"),
    ]


def test_the_list_of_what_is_to_be_done_is_found_far_back_and_anew() -> None:
    messages = [user(), *wrote(1, open=["a"]), *wrote(2), *long_talk(2 * PAGE)]
    history = History(Log(Kept(messages)), hidden_but(len(messages), len(messages)))
    assert history.newest_list == newest_list(history.entries) == (2, {"open": ["a"]})
    grow(history, wrote(3, open=["b"]))
    assert history.newest_list == (history.head - 1, {"open": ["b"]})


def test_a_log_so_far_does_not_grow() -> None:
    history = history_of(talk(2))
    before = LogSoFar(history.entries)
    length = len(before)
    history.append(Entry(history.head + 1, user("More.")))
    assert (len(before), len(list(before)), len(before[-99:]), len(before[::-1])) == (length,) * 4
    assert before[-1].seq == length
    assert before == tuple(history.entries[:length])
    assert before != history.entries
    assert LogSoFar(()) == ()
    assert before != 5


@pytest.mark.parametrize("is_stored", [False, True])
def test_a_history_so_far_does_not_grow(is_stored: bool) -> None:
    messages = [user(), *wrote(1, open=["a"]), *wrote(2), *long_talk(2 * PAGE)]
    history = History(Log(Kept(messages))) if is_stored else history_of(messages)
    history.view = hidden_but(len(messages), len(messages))
    now, meter = history.so_far(), Meter()
    before = now.head, now.turns, now.newest_user, now.newest_list, now.view_tokens, meter.used(now)
    shown = request_messages(now)
    grow(history, [user("More."), *wrote(3, open=["b"])])
    assert (now.head, now.turns, now.newest_user, now.newest_list, now.view_tokens, meter.used(now)) == before
    assert request_messages(now) == shown == request_messages(history)[: len(shown)]


@some
@given(logs(), st.data())
def test_the_block_of_a_message_is_found_beside_it(messages: list[Message], data: st.DataObject) -> None:
    if not messages:
        return
    far = long_talk(70)
    history = history_of([*far, *messages, *far])
    seq = data.draw(st.integers(1, history.head))
    spans = blocks([entry.message for entry in history.entries])
    assert block_of(history, seq) == next((a + 1, b + 1) for a, b in spans if a < seq <= b + 1)


def test_a_result_far_from_its_call_is_looked_for_in_all_of_the_log() -> None:
    called, answered = step("c1", "text")
    history = history_of([user(), called, *long_talk(120), answered, user()])
    spans = blocks([entry.message for entry in history.entries])
    for seq in (2, history.head - 1):
        assert block_of(history, seq) == next((a + 1, b + 1) for a, b in spans if a < seq <= b + 1)
    with pytest.raises(ValueError, match="no message 0"):
        block_of(history, 0)
