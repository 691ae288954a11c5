"""The contract of each store of sessions, as tests: on SQLite, on disk and in memory, and on PostgreSQL.

    class TestMyStore(StoreSuite):
        @pytest.fixture
        def open_store(self) -> Callable[[], Store]: ...

`open_store` opens the same store each time, as another process would, or gives the same `Store` where no other process
can open it. A test closes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from nca.context.view import Marker, Stub, Summary, Verbatim, View
from nca.errors import NcaError, SessionLocked, SessionNotFound, StoreError, ViewInUse
from nca.messages import AttachmentPart, Message, TextPart, ToolCall, Usage
from nca.sessions import CompactionRecord, Learned, Session, Store
from tests.sessions.samples import change_pins

Open = Callable[[], Store]

ODD_TEXTS = (
    "\0",
    "a\0b",
    "'; DROP TABLE sessions; --",
    "\\",
    '"source":"nca"',
    "é e\u0301 京都 \U0001f600",
    "\ud800",
    "?1",
)
_RECORD = CompactionRecord(trigger="manual", stages=("summarize",), tokens_before=900, tokens_after=300, cost=0.25)


def said(*texts: str) -> list[Message]:
    return [Message("assistant" if place % 2 else "user", text) for place, text in enumerate(texts)]


def made(store: Store, *texts: str, name: str = "", directory: str = "/work") -> Session:
    session = store.create(directory=directory, model="m", name=name)
    session.log.append(said(*texts))
    return session


def refused(kind: type[NcaError], action: Callable[[], object]) -> NcaError:
    try:
        action()
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


class StoreSuite:
    """The log, views, usage, search, copies and leases of a store."""

    def test_messages_are_read_as_they_were_appended(self, open_store: Open) -> None:
        session = made(open_store(), *ODD_TEXTS)
        session.log.append(
            [
                Message("assistant", "", (ToolCall("1", "f", '{"a": "\\u0000"}'),), reasoning="why"),
                Message("tool", "out", tool_call_id="1", name="f", is_error=True),
                Message("user", (TextPart("look"), AttachmentPart("a.py", "x = 1", 5)), source="typed"),
            ]
        )
        found = open_store().open_session(session.info.id, read_only=True).log.entries()
        assert [entry.seq for entry in found] == list(range(1, len(ODD_TEXTS) + 4))
        assert [entry.message.text for entry in found[: len(ODD_TEXTS)]] == [
            text.replace("\ud800", "\N{REPLACEMENT CHARACTER}") for text in ODD_TEXTS
        ]
        assert found == session.log.entries()
        assert [entry.seq for entry in session.log.entries(3, 4)] == [3, 4]
        assert session.log.head == len(found) == session.info.messages

    def test_who_said_what_is_known(self, open_store: Open) -> None:
        session = made(open_store(), "one", "two", "three", "four")
        session.log.append([Message("user", 'says "source":"nca"'), Message("user", "a note", source="nca")])
        assert session.log.said(6) == (3, 5)
        assert session.log.said_before(6, 2) == [5, 3]
        assert (session.log.next_said(3), session.log.next_said(5)) == (5, 0)
        session.log.append([Message("tool", "done", tool_call_id="1", name="todo")])
        assert session.log.todo_results() == [7]

    def test_what_a_killed_process_left_is_completed(self, open_store: Open) -> None:
        store = open_store()
        session = made(store, "do it")
        session.log.append([Message("assistant", "", (ToolCall("1", "f", "{}"), ToolCall("2", "f", "{}")))])
        session.log.append([Message("tool", "done", tool_call_id="1", name="f")])
        session.log.save_partial("half", "thought")
        session.log.save_partial("half an answer")
        session.close()
        again = open_store().open_session(session.info.id)
        assert [entry.message.role for entry in again.recovered] == ["tool", "assistant"]
        assert (again.recovered[0].message.tool_call_id, again.recovered[1].message.text) == ("2", "half an answer")
        assert again.recovered[1].message.is_interrupted
        assert again.log.partial() is None

    def test_an_error_in_a_transaction_leaves_nothing(self, open_store: Open) -> None:
        session = made(open_store(), "one", "two")
        with suppress(ZeroDivisionError), session.transaction() as transaction:
            session.log.append_in(transaction, said("three"))
            session.views.put_in_force(transaction, View((), 1), _RECORD)
            raise ZeroDivisionError
        assert session.log.head == 2
        assert (session.views.current_id, session.views.compactions()) == (0, [])

    def test_the_log_is_append_only(self, open_store: Open) -> None:
        session = made(open_store(), "one", "two")

        def change(sql: str) -> Callable[[], None]:
            def run() -> None:
                with session.transaction() as transaction:
                    transaction.execute(sql, (session.number,))

            return run

        refused(StoreError, change("UPDATE messages SET body = '{}' WHERE session = ?"))
        refused(StoreError, change("DELETE FROM messages WHERE session = ?"))
        refused(StoreError, change("UPDATE views SET body = '{}' WHERE session = ?"))
        assert [entry.message.text for entry in session.log.entries()] == ["one", "two"]

    def test_views_go_back_and_forward(self, open_store: Open) -> None:
        session = made(open_store(), *map(str, range(8)))
        summary = Summary("s1", ((1, 2),), "sent \0", prose="prose", made_by="m")
        rich = View((summary, Verbatim(3, 3), Stub(4, "[cleared]", "prune"), Marker("t1", ((5, 6),), "[cut]")), 7)
        first = session.views.commit(rich, _RECORD)
        second = session.views.commit(View((summary, Verbatim(3, 4)), 5), _RECORD)
        views = open_store().open_session(session.info.id, read_only=True).views
        assert (views.current_id, views.load(first.view_after)) == (second.view_after, rich)
        assert views.summaries() == [summary]
        assert views.totals_in_effect() == (1200, 0.5)
        assert session.views.undo() is not None
        assert session.views.current() == rich
        assert [one.undone for one in session.views.compactions()] == [False, True]
        assert (done := session.views.redo()) is not None
        assert (done.view_after, session.views.redo()) == (second.view_after, None)
        planned_before = CompactionRecord(trigger="x", view_before=first.view_after)
        refused(StoreError, lambda: session.views.commit(rich, planned_before))
        refused(StoreError, lambda: session.views.commit(View((), 99), _RECORD))
        assert session.views.current_id == second.view_after

    def test_a_rewind_puts_messages_aside_and_comes_back(self, open_store: Open) -> None:
        session = made(open_store(), "one", "two", "three", "four")
        parent, view = session.rewinds.before(3)
        record = CompactionRecord(trigger="rewind", stages=("rewind",))
        session.views.commit(view, record, parent=parent, files=7)
        assert session.views.current().aside == ((3, 4),)
        newest = session.rewinds.newest
        assert newest is not None
        assert session.rewinds.files_since(newest) == (7, 5)
        assert (session.rewinds.newest_files, session.rewinds.ends()) == (7, {newest: 4})
        assert open_store().preview(session.info.id).asked == "one"
        assert session.rewinds.end_of(newest)[1].aside == ()
        session.log.append(said("instead"))
        assert session.rewinds.newest is None
        session.rewinds.append_beside(said("by the way?", "Yes."))
        assert session.views.current().aside == ((3, 4), (6, 7))

    def test_the_models_that_answered_are_known(self, open_store: Open) -> None:
        store, used = open_store(), Usage(1, 1)
        first, second, third = made(store, "a"), made(store, "b"), made(store, "c")
        for session, model in ((first, "of-the-first"), (second, "early"), (third, "late"), (second, "early")):
            session.usage.record(1, model, used, 0)
        third.usage.record(-1, "broke-off", used, 0)
        assert store.models_that_answered(2) == ["early", "late"], "m, of which a session was made, never answered"
        assert store.models_that_answered(50) == ["early", "late", "of-the-first"]

    def test_pins_usage_and_what_was_learned(self, open_store: Open) -> None:
        store = open_store()
        session = made(store, "one", "two")
        change_pins(session, 2)
        change_pins(session, 2)
        refused(StoreError, lambda: change_pins(session, 3))
        assert session.views.pins() == {2}
        session.usage.record(1, "m", Usage(10, 5, 3, cost=0.5), 0)
        session.usage.record(0, "m", Usage(2**40, 1), 0)
        other = open_store().open_session(session.info.id, read_only=True)
        assert other.usage.totals() == Usage(2**40 + 10, 6, 3, cost=0.5)
        assert [row.seq for row in other.usage.reports(5)] == [1]
        store.save_learned("m", Learned(1.5, 1000, 3, 7.0))
        store.save_learned("m", Learned(2.5, None, 4, 8.0))
        assert open_store().learned("m") == Learned(2.5, None, 4, 8.0)
        assert open_store().learned("other").samples == 0

    def test_sessions_are_listed_and_found(self, open_store: Open) -> None:
        store = open_store()
        empty = store.create(directory="/work", model="m")
        one, two = made(store, "the first", name="named"), made(store, "the second", directory="/else")
        other = open_store()
        assert [info.title for info in other.list()] == ["the second", "the first", ""]
        assert [info.id for info in other.list(1)] == [two.info.id]
        assert (other.latest() or two.info).id == two.info.id
        assert (other.latest("/work") or two.info).id == one.info.id
        assert other.find("named").id == other.find(one.info.id[:7]).id == one.info.id
        refused(SessionNotFound, lambda: other.find("none"))
        one.set_pinned(True)
        one.set_model("another")
        assert (one.info.is_pinned, one.info.model, store.expired(0, 1)) == (True, "another", [empty.info.id])
        empty.close()
        store.delete_empty()
        assert len(other.list()) == 2

    def test_a_deleted_session_is_gone_with_all_it_had(self, open_store: Open) -> None:
        store = open_store()
        session, stays = made(store, "the zebra", "two"), made(store, "a zebra")
        session.views.commit(View((Summary("s", ((1, 2),), "s"),), 3), _RECORD)
        change_pins(session, 1)
        session.usage.record(1, "m", Usage(1, 1), 1)
        refused(SessionLocked, lambda: open_store().delete(session.info.id))
        session_id = session.info.id
        session.close()
        open_store().delete(session_id)
        refused(SessionNotFound, lambda: store.find(session_id))
        assert [hit.session for hit in store.search("zebra")] == [stays.info.id]

    def test_a_copy_is_the_session(self, open_store: Open) -> None:
        store = open_store()
        session = made(store, *ODD_TEXTS, name="the original")
        session.views.commit(View((Summary("s", ((1, 2),), "s"),), 3), _RECORD)
        session.views.undo()
        change_pins(session, 2)
        session.usage.record(1, "m", Usage(1, 1, cost=0.1), 1)
        copy = store.copy_of(session.info.id)
        with Store.open(None) as elsewhere:
            there = elsewhere.copy_of(elsewhere.add(copy, keeps_id=True).id)
        assert there.info == copy.info
        back = store.copy_of(store.add(there).id)
        for name in ("entries", "views", "head_view", "summaries", "compactions", "pins", "usage"):
            assert getattr(copy, name) == getattr(there, name) == getattr(back, name), name
        refused(StoreError, lambda: store.add(copy, keeps_id=True))
        fork = store.fork(session.info.id, at=3)
        assert (fork.messages, store.find(session.info.id).has_forks) == (3, True)

    def test_what_was_said_is_found(self, open_store: Open) -> None:
        store = open_store()
        session = made(
            store,
            "Where do we keep the database of the invoices?",
            "In src/billing/invoice_store.py, in the class InvoiceArchive.",
            "東京タワーへ行きました",
            "The zebras were running.",
            *(f"nothing of interest {number}" for number in range(30)),
        )
        other = made(store, "a zebra of another session")

        def best(question: str) -> int:
            return session.search(question, 1)[0].seq

        assert best("zebra run") == best("ZEBRAS") == 4
        assert best("src/billing/invoice_store.py") == best("invoice archive") == 2
        assert best("keep databases") == 1
        assert best("東京") == best("京タ") == 3
        assert session.search("xylophone") == session.search("\0 \" ' * ( :") == []
        assert {hit.session for hit in open_store().search("zebra")} == {session.info.id, other.info.id}
        assert len(open_store().search_sessions("zebra")) == 2
        assert session.searchable_text(4) == "The zebras were running."

    def test_of_two_saves_of_a_view_only_the_first_counts(self, open_store: Open) -> None:
        one, two = open_store().program_views, open_store().program_views
        one.save("ada/1", "first", None)
        refused(ViewInUse, lambda: two.save("ada/1", "other", None))
        read = two.read("ada/1")
        one.save("ada/1", "second", read)
        refused(ViewInUse, lambda: two.save("ada/1", "other", read))
        refused(ViewInUse, lambda: two.delete("ada/1", read))
        assert (two.read("ada/1") or ("",))[0] == "second"
        one.delete("ada/1", one.read("ada/1"))
        refused(ViewInUse, lambda: two.save("ada/1", "other", read))
        assert two.read("ada/1") is None

    def test_one_process_writes_a_session(self, open_store: Open) -> None:
        session, other = made(open_store(), "one"), open_store()
        refused(SessionLocked, lambda: other.open_session(session.info.id))
        reader = other.open_session(session.info.id, read_only=True)
        refused(StoreError, lambda: reader.log.append(said("two")))
        assert reader.log.head == 1
        session.close()
        refused(StoreError, lambda: session.log.append(said("two")))
        with other.open_session(session.info.id) as mine:
            assert mine.log.append(said("two"))[0].seq == 2

    def test_a_session_that_was_taken_over_refuses_its_first_holder(self, open_store: Open) -> None:
        session, other = made(open_store(), "one"), open_store()
        if not other.can_take_over:
            return
        other.take_over(session.info.id)
        mine = other.open_session(session.info.id)
        mine.log.append(said("two"))
        for write in (
            lambda: session.log.append(said("lost")),
            lambda: session.log.save_partial("lost"),
            lambda: change_pins(session, 1),
            lambda: session.rename("lost"),
        ):
            assert "taken over" in str(refused(SessionLocked, write))
        assert [entry.message.text for entry in session.log.entries()] == ["one", "two"]
        session.close()
        assert mine.log.append(said("three"))[0].seq == 3
