"""The log is append-only, without gaps and byte-exact; what a killed process left open is closed once."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nca.context.view import View, put_aside
from nca.errors import StoreError
from nca.messages import AttachmentPart, Entry, MediaPart, Message, TextPart, ToolCall, clean_text
from nca.sessions import Session, Store
from nca.sessions.database import connect
from nca.sessions.view_rows import BESIDE, REDO, REWIND, CompactionRecord
from tests.sessions.samples import calling, hiding, pin, result, said

EVERY_KIND = [
    Message("system", "rules"),
    Message("user", (TextPart("look", {"cache_control": {"type": "ephemeral"}}), AttachmentPart("a", "text", 9, True))),
    Message("user", (MediaPart("image", {"type": "image_url", "image_url": {"url": "data:,"}}),)),
    Message("assistant", None, tool_calls=(ToolCall("1", "f", "{not json"),), reasoning="hm", extra={"x": [1, None]}),
    Message(
        "assistant", None, tool_calls=(ToolCall("2", "f", "{}", {"extra_content": {"google": "Zm9v"}}, "gemini/x"),)
    ),
    Message("tool", "no", tool_call_id="1", name="f", is_error=True, source="nca"),
    Message("assistant", "", is_interrupted=True),
]


def reopened(path: Path, session: Session) -> list[Entry]:
    with Store.open(path, read_only=True) as store, store.open_session(session.info.id, read_only=True) as other:
        return other.log.entries()


def test_what_is_appended_is_read_again(path: Path, session: Session) -> None:
    first = session.log.append(EVERY_KIND)
    second = session.log.append(said("more"))
    assert [entry.seq for entry in first + second] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [entry.message for entry in first] == EVERY_KIND
    assert reopened(path, session) == first + second
    assert session.log.entries(first=7) == [first[6], *second]


def test_a_call_of_an_older_nca_is_read_and_a_call_with_nothing_beside_it_is_written_as_then(
    path: Path, session: Session
) -> None:
    body = '{"role":"assistant","tool_calls":[{"id":"1","name":"f","arguments":"{}"}]}'
    session.log.append([Message("assistant", None, (ToolCall("1", "f", "{}"),))])
    with apsw.Connection(str(path)) as connection:
        assert connection.execute("SELECT body FROM messages").get == body
    assert reopened(path, session)[0].message.tool_calls == (ToolCall("1", "f", "{}"),)


@settings(max_examples=75, deadline=None)
@given(text=st.text(st.characters(codec=None), max_size=200))
def test_any_text_is_kept(text: str) -> None:
    with Store.open(None) as store, store.create(directory=text, model=text, name=text) as session:
        [entry] = session.log.append([Message("user", text, extra={text: text})])
        assert session.log.entries() == [entry]
        assert entry.message.text == clean_text(text)
        session.log.save_partial(text, text)
        partial = session.log.partial()
        assert partial is not None
        assert partial.text == clean_text(text)
        session.rename(text)
        assert store.list()[0].directory == clean_text(text)


def test_nul_and_two_megabytes(path: Path, session: Session) -> None:
    texts = ["a\0b", "\0", "x" * 2_000_000 + "\0y"]
    session.log.append(said(*texts))
    assert [entry.message.text for entry in reopened(path, session)] == texts


def test_nothing_appended_changes_nothing(session: Session) -> None:
    session.log.save_partial("half")
    assert session.log.append([]) == []
    assert session.log.partial() is not None


def test_a_message_that_json_cannot_hold_is_refused(session: Session) -> None:
    with pytest.raises(StoreError, match="cannot be stored"):
        session.log.append([Message("user", "fine"), Message("user", "no", extra={"x": object()})])
    assert session.log.entries() == []


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE messages SET body = '{}'",
        "UPDATE messages SET seq = seq + 10",
        "DELETE FROM messages",
        "INSERT OR REPLACE INTO messages (session, seq, at, role, body) VALUES (1, 1, 0, 'user', '{}')",
        "INSERT INTO messages (session, seq, at, role, body) VALUES (1, 9, 0, 'user', '{}')",
        "INSERT INTO messages (session, seq, at, role, body) VALUES (99, 1, 0, 'user', '{}')",
        "UPDATE views SET body = '{}'",
        "DELETE FROM views WHERE number = 1",
        "UPDATE summaries SET body = '{}'",
        "DELETE FROM summaries",
    ],
)
def test_the_schema_itself_refuses_to_rewrite(store: Store, session: Session, sql: str) -> None:
    from tests.sessions.samples import MANUAL

    entries = session.log.append(said("one", "two"))
    session.views.commit(hiding(1), MANUAL)
    with pytest.raises(StoreError), store._database.transaction() as connection:
        connection.execute(sql)
    assert session.log.entries() == entries
    assert session.views.current() == hiding(1)


def test_deleting_the_whole_session_takes_everything(store: Store, session: Session) -> None:
    from tests.sessions.samples import MANUAL

    session.log.append(said("one", "two"))
    session.views.commit(hiding(1), MANUAL)
    pin(session, 2)
    session.log.save_partial("half")
    name = session.info.id
    session.close()
    store.delete(name)
    for table in ("sessions", "messages", "views", "summaries", "compactions", "pins", "usage", "partials"):
        assert store._database.rows(f"SELECT count(*) FROM {table}") == [(0,)], table


def test_a_partial_is_replaced_and_goes_with_the_answer(path: Path, session: Session) -> None:
    session.log.append(said("question"))
    for text in ("A", "A b", "A b c"):
        session.log.save_partial(text, "thinking")
    partial = session.log.partial()
    assert partial is not None
    assert (partial.text, partial.reasoning) == ("A b c", "thinking")
    session.log.append([Message("assistant", "A b c d")])
    assert session.log.partial() is None


def test_reopening_keeps_the_partial_as_an_interrupted_answer(store: Store, session: Session) -> None:
    session.log.append(said("question"))
    session.log.save_partial("half an ans", "thinking")
    session.close()
    with store.create(directory="/here", model="m") as later:
        later.log.append(said("later"))
    with store.open_session(session.info.id) as again:
        assert [info.id for info in store.list()] == [later.info.id, session.info.id], "it was not used"
        message = Message("assistant", "half an ans", reasoning="thinking", is_interrupted=True)
        assert [entry.message for entry in again.recovered] == [message]
        assert again.log.entries()[-1].message == message
        assert again.log.partial() is None
        assert again.log.recover() == []
    with store.open_session(session.info.id) as third:
        assert third.recovered == ()


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_a_blank_partial_leaves_no_message(store: Store, session: Session, text: str) -> None:
    session.log.append(said("question"))
    session.log.save_partial(text, "thinking")
    session.close()
    with store.open_session(session.info.id) as again:
        assert again.recovered == ()
        assert again.log.partial() is None
        assert len(again.log.entries()) == 1


@pytest.mark.parametrize(
    ("log", "closed"),
    [
        ([calling("a")], ["a"]),
        ([calling("a", "b", "c"), result("b")], ["a", "c"]),
        ([calling("a", "a")], ["a"]),
        ([calling("a"), result("a")], []),
        ([calling("a"), result("a"), calling("a")], ["a"]),
        ([calling("a"), result("a"), Message("assistant", "done")], []),
        ([calling("a"), Message("user", "an old break, repaired on the way out")], []),
        ([result("a")], []),
        ([], []),
    ],
)
def test_open_calls_get_one_result_each(store: Store, session: Session, log: list[Message], closed: list[str]) -> None:
    session.log.append(log)
    session.close()
    with store.open_session(session.info.id) as again:
        added = [entry.message for entry in again.recovered]
        assert [message.tool_call_id for message in added] == closed
        assert all(message.is_error and message.is_synthetic and message.name == "read_file" for message in added)
        assert all(message.content == "[interrupted: outcome unknown]" for message in added)
        assert again.log.recover() == []


def test_an_open_call_that_never_began_is_told_from_one_that_did(store: Store, session: Session) -> None:
    session.log.append([calling("done", "begun", "asked about", "behind it")])
    session.log.save_begun(["done", "begun"])
    session.log.append([result("done")])
    session.close()
    with store.open_session(session.info.id) as again:
        assert {entry.message.tool_call_id: entry.message.content for entry in again.recovered} == {
            "begun": "[interrupted: outcome unknown]",
            "asked about": "[not run: nca ended before it began]",
            "behind it": "[not run: nca ended before it began]",
        }
        assert again.log.partial() is None
        again.log.append([calling("next")])
        again.log.save_partial("Nobody noted what has begun")
        assert again.log.recover()[0].message.content == "[interrupted: outcome unknown]"


def test_a_reader_recovers_nothing(store: Store, session: Session) -> None:
    session.log.append([calling("a")])
    session.close()
    with store.open_session(session.info.id, read_only=True) as reader:
        assert len(reader.log.entries()) == 1
        with pytest.raises(StoreError, match="reading only"):
            reader.log.append(said("no"))
        with pytest.raises(StoreError, match="reading only"):
            reader.log.recover()


def test_a_message_that_cannot_be_read_is_named(path: Path, store: Store, session: Session) -> None:
    session.log.append(said("one"))
    connection = connect(path)
    connection.execute(
        "INSERT INTO messages (session, seq, at, role, body) VALUES (1, 2, 0, 'user', '{\"role\":7,\"x\":1}')"
    )
    connection.close()
    assert session.log.entries()[1].message.text == "[message 2 is damaged; 16 bytes]"


def test_the_title_is_what_the_person_said_first(session: Session) -> None:
    session.log.append([Message("system", "rules"), Message("user", "made by nca", source="nca")])
    assert session.info.title == ""
    session.log.append(said("  fix\n\tthe   bug  " + "x" * 500))
    assert session.info.title.startswith("fix the bug xxx")
    assert len(session.info.title) == 120
    session.log.append(said("another"))
    assert session.info.title.startswith("fix the bug")
    assert session.info.messages == 4


def test_a_message_that_is_no_part_of_the_conversation_gives_no_title(store: Store) -> None:
    with store.create(directory="/w", model="m") as session:
        session.log.append([*said("my password"), *said("/btw"), *said("the question")])
        without = put_aside(View(), [(1, 2)])
        session.views.commit(without, CompactionRecord(trigger=BESIDE))
        assert session.info.title == "the question"
        assert store.fork(session.info.id).title == "(fork) the question"
        session.views.commit(put_aside(without, [(3, 3)]), CompactionRecord(trigger=REWIND))
        assert session.info.title == ""
        session.log.append(said("another one"))
        assert session.info.title == "another one"
        session.views.commit(View(), CompactionRecord(trigger=REDO))
        assert session.info.title == "my password"


def test_a_closed_session_takes_nothing_more(session: Session) -> None:
    session.close()
    session.close()
    with pytest.raises(StoreError, match="closed"):
        session.log.append(said("late"))
