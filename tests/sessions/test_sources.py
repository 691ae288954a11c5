"""Who said a message is stored with it; sessions of an older nca keep what it knew."""

from __future__ import annotations

from pathlib import Path

from nca.messages import Message, TextPart
from nca.sessions import Store
from nca.sessions.database import Database, connect
from nca.sessions.sql import MIGRATIONS, SAID
from tests.sessions.test_kinds import old_database

BODIES = (
    '{"role":"user","content":"Read the flag {\\"is_synthetic\\":true} in it."}',
    '{"role":"user","content":"[a hook says: wait]","is_synthetic":true}',
    '{"role":"user","content":[{"type":"text","text":"Go on","extra":{},"is_synthetic":false},'
    '{"type":"text","text":"<reminder>x</reminder>","extra":{},"is_synthetic":true}]}',
)


def test_a_session_of_an_older_nca_keeps_what_nca_wrote(path: Path) -> None:
    old_database(path, 8)
    database = Database(connect(path), path)
    with database.transaction() as connection:
        for seq, body in enumerate(BODIES, 2):
            connection.execute(
                "INSERT INTO messages (session, seq, at, role, body) VALUES (1, ?, 1, 'user', ?)", (seq, body)
            )
    database.close()
    with Store.open(path) as store, store.open_session("old00001") as session:
        assert [entry.message for entry in session.log.entries(2)] == [
            Message("user", 'Read the flag {"is_synthetic":true} in it.'),
            Message("user", "[a hook says: wait]", source="nca"),
            Message("user", (TextPart("Go on"), TextPart("<reminder>x</reminder>", source="nca"))),
        ]
        assert session.log.said(4) == (3, 4)
        assert store.search("flag")[0].seq == 2
        # The log is append-only as before.
        session.log.append([Message("user", "Typed", source="typed")])
        assert session.log.entries(5)[0].message.source == "typed"


def test_the_index_of_what_was_said_has_its_condition_in_the_same_words() -> None:
    script = " ".join(MIGRATIONS[8].split())
    assert f"WHERE {SAID};" in script
