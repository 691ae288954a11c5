"""The preview of a session: its end and its size."""

from __future__ import annotations

import pytest

from nca.errors import SessionNotFound
from nca.messages import Message
from nca.sessions import SessionPreview, Store
from tests.sessions.samples import calling, result, said


def test_the_last_words_of_both_sides(store: Store) -> None:
    with store.create(directory="/", model="m") as session:
        assert store.preview(session.info.id) == SessionPreview("", "", 0)
        session.log.append(said("first", "one", "second", "two"))
        session.log.append([Message("user", "third \x1b[2J"), calling("a"), result("a", "a long result" * 100)])
        preview = store.preview(session.info.id)
    # Steps of a turn that have no text are passed over; the text is as it was stored.
    assert (preview.asked, preview.answered) == ("third \x1b[2J", "two")
    assert preview.size_bytes > 1_300


def test_a_message_that_cannot_be_read_is_passed_over(store: Store) -> None:
    with store.create(directory="/", model="m") as session:
        session.log.append(said("first", "one"))
        name = session.info.id
    with store._database.transaction() as connection:
        connection.execute("INSERT INTO messages (session, seq, at, role, body) VALUES (1, 3, 1, 'user', '')")
    assert store.preview(name).asked == "first"
    with pytest.raises(SessionNotFound):
        store.preview("nonesuch")
