"""The window of a session that is opened again: the same number as before."""

from __future__ import annotations

import pytest

from nca.agent.window import Window
from nca.config.loaded import defaults
from nca.context.view import Marker, Verbatim, View
from nca.messages import Message, Usage
from nca.models.catalog import ModelFacts
from nca.sessions.session import Session
from nca.sessions.store import Store
from nca.sessions.views import CompactionRecord
from tests.context.samples import assistant, result, step, talk, user

FACTS = ModelFacts("scripted/model", "scripted", 8_000)


def window_of(store: Store, session: Session) -> Window:
    return Window(store, session, defaults(), FACTS, system_prompt="You are a test.", tools=())


def reopened(messages: list[Message], reported_tokens: int, later: list[Message]) -> tuple[int, int]:
    """Tokens used before and after, where a report came and then `later`."""
    store = Store.open(None)
    session = store.create(directory="/", model=FACTS.name)
    window = window_of(store, session)
    window.append(*messages)
    history = window.history
    window.learn(window.meter.raw(history), history.view_calls, history.head, Usage(reported_tokens, 1))
    window.append(*later)
    before = window.measure().used_tokens
    session.close()
    return before, window_of(store, store.open_session(session.info.id)).measure().used_tokens


def test_repairs_of_what_came_later_are_not_taken_for_a_part_of_the_report() -> None:
    orphans = [result("nobody's", "out " * 20), result("nobody's too", "out " * 20)]
    before, after = reopened([*talk(10), user()], 1_500, [*talk(1), *orphans])
    assert before == after > 1_500


def test_what_the_reports_taught_is_not_forgotten() -> None:
    """A provider that counts 90 tokens for each call's syntax and 700 for its preamble, over a compaction too."""
    store = Store.open(None)
    session = store.create(directory="/", model=FACTS.name)
    window = window_of(store, session)
    window.append(user("Read them all, please, and say what is in them."))
    view, calls = View(), 0
    for number in range(24):
        if number == 12:
            view = View((Verbatim(1, 1), Marker("gone", ((2, 11),), "[gone]")), 12)
            session.commit_view(view, CompactionRecord(trigger="manual"))
            window.history.view, calls = view, calls - 5
        text = sum(len(entry.message.text) for entry in window.history.visible())
        reported = 700 + round(text / 4.2) + 90 * calls
        window.learn(
            window.meter.raw(window.history), window.history.view_calls, window.history.head, Usage(reported, 1)
        )
        window.append(*step(f"c{number}", f"some text {number} " * (300 if number % 7 == 3 else 1)))
        calls += 1
    window.append(assistant("There is text in all of them."))
    later = View((Verbatim(1, 1), Marker("all", ((2, 33),), "[gone]")), 34)
    before = window.measure().used_tokens, window.meter.used_with(window.history, later)
    session.close()
    again = window_of(store, store.open_session(session.info.id))
    assert window.history.call_raw > 10
    assert again.history.call_raw == pytest.approx(window.history.call_raw, abs=1)
    after = again.measure().used_tokens, again.meter.used_with(again.history, later)
    assert after == pytest.approx(before, rel=0.005)


def test_a_report_that_was_not_believed_is_not_taken_up_later() -> None:
    before, after = reopened([*talk(10), user()], 90_000, talk(1))
    assert before == after < 90_000
