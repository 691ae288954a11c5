"""Questions about a long log are answered from an index, as if all of it had been read."""

from __future__ import annotations

import json

import pytest

from nca.context.view import Marker, Summary, View
from nca.errors import StoreError
from nca.messages import Message, TextPart, ToolCall, Usage
from nca.sessions import Store
from nca.sessions.sql import SAID, TODO_RESULT
from nca.sessions.usage import BESIDE
from nca.sessions.views import CompactionRecord
from tests.context.samples import assistant, talk, user


@pytest.fixture
def store() -> Store:
    return Store.open(None)


def test_a_part_of_the_log(store: Store) -> None:
    session = store.create(directory="/", model="m")
    session.log.append(talk(5))
    assert session.log.head == 10
    assert [entry.seq for entry in session.log.entries(3, 5)] == [3, 4, 5]
    assert [entry.seq for entry in session.log.entries(9)] == [9, 10]
    assert session.log.entries(5, 4) == []


def test_what_the_person_said_is_counted_up_to_a_message(store: Store) -> None:
    session = store.create(directory="/", model="m")
    assert (session.log.head, session.log.said(0)) == (0, (0, 0))
    reminded = Message("user", (TextPart("And?"), TextPart("Remember.", source="nca")))
    record = Message("user", "A record.", source="nca")
    quoting = user('He wrote {"is_synthetic":true} there.')
    session.log.append([user(), assistant(), record, reminded, assistant(), quoting])
    assert [session.log.said(last) for last in range(1, 7)] == [(1, 1), (1, 1), (1, 1), (2, 4), (2, 4), (3, 6)]


def test_results_of_the_todo_tool_newest_first(store: Store) -> None:
    session = store.create(directory="/", model="m")
    messages = [user()]
    for number, name in enumerate(("todo", "grep", "todo")):
        call = ToolCall(f"c{number}", name, json.dumps({"open": ["a"]}))
        messages += [Message("assistant", None, (call,)), Message("tool", "ok", tool_call_id=call.id, name=name)]
    session.log.append([*messages, user('{"name":"todo"}')])
    assert session.log.todo_results() == [7, 3]


def test_reports_are_the_newest_without_what_is_beside(store: Store) -> None:
    session = store.create(directory="/", model="m")
    session.log.append(talk(3))
    for seq in (2, BESIDE, 4, 6):
        session.usage.record(seq, "m", Usage(10 * seq, 1), 0)
    assert [row.seq for row in session.usage.reports(2)] == [4, 6]
    assert [row.seq for row in session.usage.reports(9)] == [2, 4, 6]


def test_totals_go_on_from_what_was_summed_up(store: Store) -> None:
    session = store.create(directory="/", model="m")
    assert session.usage.totals() == Usage(0, 0)
    session.usage.record(BESIDE, "m", Usage(10, 1, 2, 3, 4), 0)
    assert session.usage.totals().cost is None
    session.usage.record(BESIDE, "m", Usage(5, 1, cost=0.25), 0)
    session.usage.record(BESIDE, "m", Usage(5, 1, cost=0.5), 0)
    expected = Usage(20, 3, 2, 3, 4, 0.75)
    with store.open_session(session.info.id, read_only=True) as reader:
        assert session.usage.totals() == reader.usage.totals() == expected
        session.usage.record(BESIDE, "m", Usage(1, 1), 0)
        assert session.usage.totals() == reader.usage.totals() == Usage(21, 4, 2, 3, 4, 0.75)


def test_only_compactions_that_stand_are_added_up(store: Store) -> None:
    session = store.create(directory="/", model="m")
    session.log.append(talk(4))
    assert session.views.totals_in_effect() == (0, None)
    for tail, cost in ((3, None), (5, 0.25)):
        view = View((Marker(f"m{tail}", ((1, tail - 1),), ""),), tail)
        session.views.commit(view, CompactionRecord(trigger="manual", tokens_before=100, tokens_after=40, cost=cost))
    assert session.views.totals_in_effect() == (120, 0.25)
    session.views.undo()
    assert session.views.totals_in_effect() == (60, None)
    standing = [record for record in session.views.compactions() if not record.undone]
    assert sum(record.tokens_before - record.tokens_after for record in standing) == 60


def test_a_summary_that_two_views_have_stands_in_the_store_once(store: Store) -> None:
    session = store.create(directory="/", model="m")
    session.log.append(talk(4))
    summary = Summary("s", ((1, 2),), "What was said.")
    for tail in (5, 7):
        hidden = Marker(f"m{tail}", ((3, tail - 1),), "")
        session.views.commit(View((summary, hidden), tail), CompactionRecord(trigger="manual"))
    assert session.views.summaries() == [summary]


@pytest.mark.parametrize(
    ("sql", "index"),
    [
        (f"SELECT count(*), max(seq) FROM messages WHERE session = 1 AND seq <= 9 AND {SAID}", "messages_said"),
        (f"SELECT seq FROM messages WHERE session = 1 AND {TODO_RESULT} ORDER BY seq DESC", "messages_of_todo"),
        ("SELECT 1 FROM usage WHERE session = 1 AND seq <> 0 ORDER BY id DESC LIMIT 5", "usage_session"),
        ("SELECT 1 FROM summaries WHERE session = 1 AND length(body) = length('x') AND body = 'x'", "summaries_size"),
    ],
)
def test_each_is_found_by_its_index(store: Store, sql: str, index: str) -> None:
    plan = " ".join(row[3] for row in store._database.rows(f"EXPLAIN QUERY PLAN {sql}"))
    assert index in plan
    assert "SCAN" not in plan
    assert "TEMP B-TREE" not in plan


def test_a_session_that_is_gone_has_no_log(store: Store) -> None:
    session = store.create(directory="/", model="m")
    session.log.append(talk(1))
    session_id = session.info.id
    session.close()
    store.delete(session_id)
    assert (session.log.head, session.log.entries(), session.views.totals_in_effect()) == (0, [], (0, None))
    with pytest.raises(StoreError):
        _ = session.views.current_id
