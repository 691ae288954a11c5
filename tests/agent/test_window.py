"""The window of a session that is opened again: the same number as before."""

from __future__ import annotations

from nca.agent.window import Window
from nca.config.loaded import defaults
from nca.messages import Message, Usage
from nca.models.catalog import ModelFacts
from nca.sessions.session import Session
from nca.sessions.store import Store
from tests.context.samples import result, talk, user

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


def test_a_report_that_was_not_believed_is_not_taken_up_later() -> None:
    before, after = reopened([*talk(10), user()], 90_000, talk(1))
    assert before == after < 90_000
