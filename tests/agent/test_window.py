"""The window of a reopened session measures the same as before."""

from __future__ import annotations

import time

import msgspec
import pytest

from nca.agent.window import Window
from nca.config.loaded import defaults
from nca.context.calibration import Calibration
from nca.context.log import Log
from nca.context.view import Marker, Verbatim, View
from nca.errors import ProviderFailure
from nca.messages import Entry, Message, Usage
from nca.models.catalog import FROM_ERROR, ModelFacts
from nca.sessions.access import Origin
from nca.sessions.session import Session
from nca.sessions.store import Store
from nca.sessions.transfer import new_copy
from nca.sessions.usage import Learned, UsageRow
from nca.sessions.views import CompactionRecord
from tests.agent import parts
from tests.context.samples import assistant, result, step, talk, user

FACTS = ModelFacts("scripted/model", "scripted", 8_000)
CLAUDE = ModelFacts("anthropic/claude-sonnet-4", "anthropic", 200_000)


def window_of(store: Store, session: Session) -> Window:
    return parts.window_of(store, session, defaults(), FACTS)


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
            session.views.commit(view, CompactionRecord(trigger="manual"))
            window.history.view, calls = view, calls - 5
        text = sum(len(entry.message.text) for entry in window.history.visible())
        reported = 700 + round(text / 4.2) + 90 * calls
        window.learn(
            window.meter.raw(window.history), window.history.view_calls, window.history.head, Usage(reported, 0)
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


@pytest.mark.parametrize(
    ("failure", "room"),
    [
        (ProviderFailure("lower_max_tokens", False, asked_tokens=30_000, limit_tokens=900), 900),
        (ProviderFailure("lower_max_tokens", False), None),
        (ProviderFailure("lower_max_tokens", False, limit_tokens=10_000_000), None),
    ],
)
def test_an_answer_is_given_less_room_after_it_was_refused(failure: ProviderFailure, room: int | None) -> None:
    store = Store.open(None)
    with store.create(directory="/", model=FACTS.name) as session:
        window = window_of(store, session)
        before = window.answer_tokens()
        assert window.shorten_answer(failure)
        assert window.answer_tokens() == (before // 4 if room is None else room)
        assert before == window.budget.reserve_tokens


def test_room_for_an_answer_gives_way_to_the_window_that_it_exceeds() -> None:
    store = Store.open(None)
    with store.create(directory="/", model=FACTS.name) as session:
        window = window_of(store, session)
        before, limit = window.answer_tokens(), FACTS.window_tokens // 2
        assert window.shorten_answer(ProviderFailure("lower_max_tokens", True, limit + 10, limit))
        assert (window.budget.window_tokens, window.answer_tokens() < before) == (limit, True)
        # The window is no news any more: what is too much goes.
        now = window.answer_tokens()
        assert window.shorten_answer(ProviderFailure("lower_max_tokens", True, limit + 10, limit))
        assert window.answer_tokens() == now - 10


def test_an_answer_is_counted_as_its_provider_counted_it_also_after_reopening() -> None:
    store = Store.open(None)
    session = store.create(directory="/", model=FACTS.name)
    window = window_of(store, session)
    window.append(*talk(10), user())
    history = window.history
    raw, calls, head = window.meter.raw(history), history.view_calls, history.head
    window.append(assistant("A short answer of a few words, in a language that is dense."))
    window.learn(raw, calls, head, Usage(1_500, 30))
    assert window.measure().used_tokens == 1_530
    session.close()
    assert window_of(store, store.open_session(session.info.id)).measure().used_tokens == 1_530


@pytest.mark.parametrize("used", [Usage(1_500, 9_000), Usage(1_500, 0), Usage(1_500, 400, reasoning_tokens=399)])
def test_a_count_that_is_not_of_the_text_is_not_taken_for_it(used: Usage) -> None:
    store = Store.open(None)
    window = window_of(store, store.create(directory="/", model=FACTS.name))
    window.append(*talk(10), user())
    history = window.history
    raw, calls, head = window.meter.raw(history), history.view_calls, history.head
    window.append(assistant("An answer of many words. " * 20))
    window.learn(raw, calls, head, used)
    expected = 1_500 + window.meter.scaled(history.run_tokens(head + 1, head + 1))
    assert window.measure().used_tokens == expected


def test_a_long_session_is_opened_by_what_its_view_shows_and_undo_brings_the_rest() -> None:
    store = Store.open(None)
    session = store.create(directory="/", model=FACTS.name)
    entries = session.log.append(talk(900))
    hidden = View((Marker("m", ((1, 1_780),), "[out]"),), 1_781)
    session.views.commit(hidden, CompactionRecord(trigger="manual", tokens_before=9_000, tokens_after=90))
    session.close()
    session = store.open_session(session.info.id)
    window = window_of(store, session)
    context = parts.context_of(window)
    window.measure()
    window.request_messages()
    log = window.history.entries
    assert isinstance(log, Log)
    assert 20 <= len(list(log.in_memory())) < 1_800
    assert (window.history.turns, window.history.newest_user) == (900, 1_799)
    assert session.views.totals_in_effect() == (8_910, None)
    context.undo()
    assert session.views.totals_in_effect() == (0, None)
    assert list(window.history.visible()) == entries
    context.redo()
    assert [entry.seq for entry in window.history.visible()] == list(range(1_781, 1_801))


def test_a_session_is_counted_by_its_text_until_its_model_reports() -> None:
    """Claude's vocabulary makes far more of Chinese than of English."""
    store = Store.open(None)
    session = store.create(directory="/", model=CLAUDE.name)
    session.log.append([user("会议讨论了调查结果，没有人同意它的说法。" * 40), assistant()] * 5)
    window = parts.window_of(store, session, defaults(), CLAUDE)
    window.measure()
    looked = window.meter.calibration.ratio
    assert looked > 1.05 * Calibration.unlearned(CLAUDE.provider, CLAUDE.name).ratio
    window.append(user("Why is it so? " * 100))
    used = window.measure().used_tokens
    assert window.meter.calibration.ratio < looked, "every request is looked at"
    assert used == round(window.meter.calibration.ratio * window.meter.raw(window.history))
    raw = window.meter.raw(window.history)
    window.learn(raw, 0, window.history.head, Usage(raw, 10))
    learned = window.meter.calibration.ratio
    assert learned == pytest.approx(1)
    session.close()
    again = parts.window_of(store, store.open_session(session.info.id), defaults(), CLAUDE)
    again.measure()
    assert again.meter.calibration.ratio == learned


def test_another_name_alone_changes_no_count() -> None:
    """What a provider adds to each request was forgotten with /model NAME, until that model's first answer."""
    facts = ModelFacts("openai/gpt-4.1", "openai", 100_000)
    store = Store.open(None)
    window = parts.window_of(store, store.create(directory="/", model=facts.name), defaults(), facts)
    window.append(*talk(10))
    raw = window.meter.raw(window.history)
    window.learn(raw, 0, window.history.head, Usage(raw + 800, 10))
    used = window.measure().used_tokens
    window.use_model(ModelFacts("openai/gpt-4o", "openai", 100_000))
    assert window.measure().used_tokens == pytest.approx(used, rel=0.02)
    window.use_model(ModelFacts("mistral/large", "mistral", 100_000))
    assert window.meter.calibration.tokenizer == Calibration.unlearned("mistral", "mistral/large").tokenizer
    assert window.meter.anchor is None


def test_a_short_session_is_not_looked_at() -> None:
    store = Store.open(None)
    window = parts.window_of(store, store.create(directory="/", model=CLAUDE.name), defaults(), CLAUDE)
    before = window.meter.calibration
    window.append(user("2,718"))
    window.measure()
    assert window.meter.calibration == before


def test_an_answer_that_says_nothing_leaves_the_report_as_it_is() -> None:
    before, after = reopened([*talk(10), user()], 1_500, [Message("assistant", "")])
    assert before == after == 1_500


def test_a_report_teaches_the_same_when_it_is_taken_up_again_also_of_a_broken_log() -> None:
    """What repairs leave out, such as the results of no call, was never sent: it is no part of the lesson."""
    store = Store.open(None)
    session = store.create(directory="/", model=FACTS.name)
    window = window_of(store, session)
    window.append(user("Read."), result("nobody's", "out " * 3_000))
    for number in range(8):
        window.append(user(f"And file {number}?"))
        raw = window.meter.raw(window.history)
        window.learn(raw, window.history.view_calls, window.history.head, Usage(round(raw * 1.3) + 200, 0))
        window.append(assistant("It says this. " * 40))
    session.close()
    again = window_of(store, store.open_session(session.info.id))
    lessons, known = again.meter.calibration.lessons, window.meter.calibration.lessons
    assert lessons.count == known.count == 8
    assert lessons.squares == pytest.approx(known.squares)
    assert lessons.products == pytest.approx(known.products)


def test_after_an_undo_the_report_of_the_view_in_force_counts_also_when_reopened() -> None:
    store = Store.open(None)
    session = store.create(directory="/", model=FACTS.name)
    window = window_of(store, session)
    window.append(*talk(10), user())
    window.learn(window.meter.raw(window.history), window.history.view_calls, window.history.head, Usage(1_500, 1))
    head = window.history.head
    session.views.commit(View((Marker("gone", ((1, 8),), "[gone]"),), 9), CompactionRecord(trigger="manual"))
    window.history.view = session.views.current()
    window.learn(window.meter.raw(window.history), window.history.view_calls, head, Usage(700, 1))
    parts.context_of(window).undo()
    before = window.measure().used_tokens
    session.close()
    assert window_of(store, store.open_session(session.info.id)).measure().used_tokens == before == 1_500


@pytest.mark.parametrize("rest", [[], [user()]])
def test_an_answer_that_was_stopped_leaves_the_report_before_it_in_force(rest: list[Message]) -> None:
    """Nobody reports how long a stopped answer is: it is counted as what came after the report."""
    store = Store.open(None)
    session = store.create(directory="/", model=FACTS.name)
    window = window_of(store, session)
    window.append(*talk(10), user())
    history = window.history
    window.learn(window.meter.raw(history), history.view_calls, history.head, Usage(1_500, 0))
    head = history.head
    window.append(Message("assistant", "The beginning of an answer. " * 20, is_interrupted=True), *rest)
    measured = window.measure()
    assert not measured.is_estimate
    assert measured.used_tokens == 1_500 + window.meter.scaled(history.run_tokens(head + 1, history.head))
    session.close()
    again = window_of(store, store.open_session(session.info.id)).measure()
    assert (again.used_tokens, again.is_estimate) == (measured.used_tokens, False)


def test_the_reports_of_another_agents_requests_teach_nothing() -> None:
    """They had another system prompt and other tools, even where the model is the same."""
    entries = [Entry(seq, message) for seq, message in enumerate([*talk(6), user()], 1)]
    usage = UsageRow(len(entries), FACTS.name, Usage(1_200, 1), 0, 1.0)
    own = msgspec.structs.replace(new_copy(entries, directory="/"), usage=(usage,))
    imported = Origin(agent="claude", path="/x", messages=len(entries) + 1)
    theirs = msgspec.structs.replace(own, info=msgspec.structs.replace(own.info, origin=imported))
    used = []
    for copy in (own, theirs):
        store = Store.open(None)
        session = store.open_session(store.add(copy).id)
        used.append(window_of(store, session).measure().used_tokens)
    assert used[0] >= 1_200
    assert used[1] < 1_000


def test_a_window_is_learned_for_one_model_at_one_endpoint() -> None:
    store = Store.open(None)
    here, there = (msgspec.structs.replace(FACTS, server=f"models.example:{port}") for port in (1, 2))
    with store.create(directory="/", model=FACTS.name) as session:
        assert parts.window_of(store, session, defaults(), here).learn_window(4_096)
        again = parts.window_of(store, session, defaults(), here)
        assert (again.budget.window_tokens, again.state.facts_in_force.window_origin) == (4_096, FROM_ERROR)
        said = [line for line in again.notices() if "an error of the provider said" in line]
        assert "at models.example:1 is 4,096 tokens" in said[0]
        assert "model.context_window" in said[0]
        for facts in (there, FACTS, msgspec.structs.replace(here, name="scripted/other")):
            other = parts.window_of(store, session, defaults(), facts)
            assert (other.budget.window_tokens, other.state.facts_in_force.window_origin) == (8_000, "")
        # One that the model has by itself is smaller: nothing is learned from the other.
        small = parts.window_of(store, session, defaults(), msgspec.structs.replace(here, window_tokens=4_000))
        assert (small.budget.window_tokens, small.state.facts_in_force.window_origin) == (4_000, "")


def test_a_larger_request_that_is_answered_ends_a_learned_window() -> None:
    store = Store.open(None)
    with store.create(directory="/", model=FACTS.name) as session:
        assert window_of(store, session).learn_window(4_096)
        by_person = defaults().with_value("model.context_window", 7_000, "set in this chat")
        window = parts.window_of(store, session, by_person, FACTS)
        assert (window.budget.window_tokens, window.state.way_out) == (7_000, "")
        window.append(*talk(10), user())
        for tokens, left in ((4_000, 4_096), (4_097, 8_000)):
            window.learn(
                window.meter.raw(window.history), window.history.view_calls, window.history.head, Usage(tokens, 1)
            )
            assert window_of(store, session).budget.window_tokens == left


def test_a_window_that_was_learned_in_a_chat_holds_there_until_another_one_is_set() -> None:
    """A setting of a colour brought back the window that the provider had just refused."""
    store = Store.open(None)
    with store.create(directory="/", model=FACTS.name) as session:
        by_flag = defaults().with_value("model.context_window", 7_000, "--context-window")
        state = parts.window_of(store, session, by_flag, FACTS).state
        assert state.budget.window_tokens == 7_000
        assert state.learn_window(4_096)
        state.use(by_flag.with_value("terminal.theme", "dark", "set in this chat"), FACTS)
        assert (state.budget.window_tokens, state.facts_in_force.window_origin) == (4_096, FROM_ERROR)
        for tokens in (7_000, 6_000):
            state.use(by_flag.with_value("model.context_window", tokens, "set in this chat"), FACTS)
            assert (state.budget.window_tokens, state.facts_in_force.window_origin) == (tokens, "")


def test_a_learned_window_ends_after_a_day() -> None:
    store = Store.open(None)
    now = time.time()
    with store.create(directory="/", model=FACTS.name) as session:
        for age, window_tokens in ((86_000, 4_096), (87_000, 8_000)):
            store.save_learned("scripted/model at its provider", Learned(window_tokens=4_096, at=now - age))
            assert window_of(store, session).budget.window_tokens == window_tokens


def test_a_learned_window_that_leaves_no_budget_does_not_keep_a_session_closed() -> None:
    store = Store.open(None)
    with store.create(directory="/", model=FACTS.name) as session:
        assert window_of(store, session).learn_window(20)
        assert window_of(store, session).budget.window_tokens == 20


def test_what_was_noted_of_a_model_is_not_of_the_next_one_nor_of_it_again() -> None:
    """A window that has had another model is as one that begins with this model."""
    other = ModelFacts("scripted/other", "scripted", 8_000)
    with Store.open(None) as store, store.create(directory="/", model=FACTS.name) as session:
        window = window_of(store, session)
        usual = window.answer_tokens()
        for facts in (other, FACTS, other):
            assert [window.note_cut(), window.note_cut()] == [True, False]
            assert window.shorten_answer(ProviderFailure("lower_max_tokens", False, limit_tokens=900))
            window.note_refused()
            assert (window.answer_tokens(), window.refused_tokens > 0) == (900, True)
            window.use_model(facts)
            assert (window.answer_tokens(), window.refused_tokens) == (usual, 0)


def test_after_a_change_of_settings_compaction_is_tried_again() -> None:
    with Store.open(None) as store, store.create(directory="/", model=FACTS.name) as session:
        window = window_of(store, session)
        window.use(defaults().with_value("context.compact_threshold", 0.5, "the test"), FACTS)
        while window.due() != "compact":
            window.append(*talk(1))
        assert [window.compacted_in_vain(), window.compacted_in_vain()] == [False, True]
        grown = window.measure().used_tokens + window.budget.budget_tokens // 10
        while window.measure().used_tokens < grown:
            window.append(*talk(1))
        assert window.due() == "nothing"
        window.use(window.loaded.with_value("context.preserve_turns", 1, "the test"), FACTS)
        assert window.due() == "compact"
