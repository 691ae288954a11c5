"""A log that is many windows long is shown from its newest window on, and nothing else of it is read."""

from __future__ import annotations

from collections.abc import Iterable

from nca.context.history import History
from nca.context.log import Log
from nca.context.stages.truncate import TRUNCATED
from nca.context.view import Marker, Verbatim, View, check_partition
from nca.context.within_window import MOST_WINDOWS, within_window
from nca.messages import Entry, Message
from tests.context.logs import history_of
from tests.context.samples import agent_turn, talk

WINDOW = 2_000


class Counting:
    """A stored log that counts what is read of it."""

    def __init__(self, messages: list[Message]) -> None:
        self._entries = [Entry(seq, message) for seq, message in enumerate(messages, 1)]
        self.read = 0

    @property
    def head(self) -> int:
        return len(self._entries)

    def entries(self, first: int = 1, last: int | None = None) -> list[Entry]:
        found = self._entries[first - 1 : last]
        self.read += len(found)
        return found

    def said(self, last: int) -> tuple[int, int]:
        return 0, 0

    def todo_results(self) -> Iterable[int]:
        return ()


def test_what_a_window_may_hold_stays_as_it_is() -> None:
    for turns in (0, 1, 10, 60):
        history = history_of(talk(turns))
        assert history.view_tokens <= MOST_WINDOWS * WINDOW
        assert within_window(history, WINDOW) == View()


def test_the_newest_messages_are_shown_from_a_question_on() -> None:
    history = history_of([Message("system", "Be brief."), *talk(2_000)])
    view = within_window(history, WINDOW)
    check_partition(view)
    assert history.message(view.tail).role == "user"
    assert WINDOW / 2 <= history.seen_as(view).view_tokens <= 1.2 * WINDOW
    system, marker = view.items
    assert system == Verbatim(1, 1)
    assert isinstance(marker, Marker)
    assert marker.ranges == ((2, view.tail - 1),)
    assert marker.text == f"{TRUNCATED} [recall expand=2-{view.tail - 1}]"
    assert within_window(history.seen_as(view), WINDOW) == view


def test_pins_and_what_an_earlier_compaction_left_stay() -> None:
    history = history_of(talk(2_000))
    history.pins = frozenset({7, 8, 3_999})
    earlier = View((Marker("t1", ((1, 4),), "[truncated]"),), 5)
    history.view = earlier
    view = within_window(history, WINDOW)
    check_partition(view)
    assert view.items[0] == earlier.items[0]
    assert [item for item in view.items if isinstance(item, Verbatim)] == [Verbatim(7, 8)]
    assert sum(isinstance(item, Marker) for item in view.items) == 2


def test_one_turn_of_many_windows_keeps_its_question_and_whole_steps() -> None:
    history = history_of(agent_turn(3_000))
    view = within_window(history, WINDOW)
    check_partition(view)
    assert view.items[0] == Verbatim(1, 1)
    assert history.message(view.tail).role == "assistant"


def test_what_is_not_shown_is_not_read() -> None:
    stored = Counting(talk(50_000))
    history = History(Log(stored))
    assert within_window(history, WINDOW).tail > 99_000
    assert stored.read < 2_000


def test_where_everything_older_stays_the_view_does() -> None:
    history = history_of([Message("system", "Be brief."), Message("user", "long " * 10 * WINDOW)])
    assert within_window(history, WINDOW) == View()
    history = history_of([Message("user", "long " * 10 * WINDOW), Message("assistant", "Done.")])
    history.pins = frozenset({1})
    assert within_window(history, WINDOW) == View()


def test_a_pinned_result_stays_with_its_call() -> None:
    messages = [*agent_turn(3), *talk(2_000)]
    history = history_of(messages)
    result = next(seq for seq, message in enumerate(messages, 1) if message.role == "tool")
    history.pins = frozenset({result})
    view = within_window(history, WINDOW)
    assert [item for item in view.items if isinstance(item, Verbatim)] == [Verbatim(result - 1, result)]
