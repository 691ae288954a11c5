"""Running counts equal a fresh count."""

from __future__ import annotations

import pytest
from hypothesis import given

from nca.context.history import History
from nca.context.request import resolve
from nca.context.tokens import message_tokens
from nca.context.view import Marker, Stub, Summary, Verbatim, View
from nca.messages import Entry, Message
from tests.context.logs import history_of, logs
from tests.context.samples import assistant, some, step, talk, user


@some
@given(logs())
def test_counts_equal_counting_anew(messages: list[Message]) -> None:
    history = history_of(messages)
    assert history.view_tokens == sum(map(message_tokens, messages))
    assert history.run_tokens(1, history.head) == history.view_tokens
    assert [entry.message for entry in history.visible()] == messages


def test_counts_of_a_rich_view_before_and_after_growth() -> None:
    history = history_of(talk(6))
    view = View(
        (
            Summary("s", ((1, 3),), "what was said"),
            Stub(4, "[cut]", "truncate"),
            Marker("m", ((5, 6),), "[out]"),
            Marker("c", ((7, 7),), ""),
            Verbatim(8, 9),
        ),
        10,
    )
    assert history.tokens_of(view) < history.view_tokens
    expected = history.tokens_of(view)
    history.view = view
    assert history.view_tokens == expected == sum(map(message_tokens, resolve(history)))
    history.append(Entry(13, Message("user", "More.")))
    assert history.view_tokens == sum(map(message_tokens, resolve(history)))
    assert [entry.seq for entry in history.visible()] == [4, 8, 9, 10, 11, 12, 13]


def test_a_gap_is_refused() -> None:
    history = History([Entry(1, Message("user", "a"))])
    with pytest.raises(ValueError, match="message 3 does not follow message 1"):
        history.append(Entry(3, Message("user", "b")))


def test_what_items_show() -> None:
    history = history_of([Message("user", "a"), Message("tool", "long", tool_call_id="x", is_error=True)])
    stub = history.shown(Stub(2, "[Tool result cleared]", "prune"))
    assert stub == Message("tool", "[Tool result cleared]", tool_call_id="x", is_error=True)
    summary = history.shown(Summary("s", ((1, 1),), "text", role="system"))
    assert summary == Message("system", "text", source="nca")
    assert history.shown(Marker("m", ((1, 1),), "")) is None


def test_a_history_can_begin_with_a_view_and_pins() -> None:
    entries = history_of(talk(2)).entries
    history = History(entries, View((Marker("m", ((1, 2),), ""),), 3), pins=[1])
    assert history.pins == {1}
    assert [entry.seq for entry in history.visible()] == [3, 4]
    assert History().head == 0


def test_the_last_answer_is_whole_and_before_the_newest_message_of_the_person() -> None:
    stopped = Message("assistant", "I would", is_interrupted=True)
    messages = [user("One."), assistant("Done."), user("Two."), *step("a", "text"), stopped, user("Three.")]
    history = history_of(messages)
    assert history.last_answer == 2
    assert history_of([*messages, assistant("Done.")]).last_answer == 2
    assert history_of([*messages, assistant("Done."), user("Four.")]).last_answer == len(messages) + 1
    history.view = View((Verbatim(3, 6),), 7, aside=((1, 2),))
    assert history.last_answer == 0, "what is aside is no part of the conversation"
    assert history_of([user("One."), *step("a", "text")]).last_answer == 0
    assert history_of([]).last_answer == 0
