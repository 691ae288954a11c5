"""Counts of words in a large index: of common words by the server's statistics, else from the oldest passages."""

from __future__ import annotations

from pathlib import Path

import pytest

from nca.messages import Message
from nca.sessions import Store
from nca.sessions.passages import COUNTED, MAX_PASSAGES
from nca.sessions.query import Phrase
from tests.postgres import Cluster

MESSAGES = COUNTED + 1_000
EVERYWHERE, BEGINNING, EVERY_THIRD, RARE, NOWHERE = (
    Phrase("walrus"),
    Phrase("walr", is_prefix=True),
    Phrase("zebra"),
    Phrase("x77x"),
    Phrase("nothing"),
)


@pytest.mark.parametrize("has_statistics", [False, True])
def test_how_many_passages_hold_a_word(cluster: Cluster, tmp_path: Path, has_statistics: bool) -> None:
    from nca.sessions.postgres.database import PostgresDatabase  # needs psycopg

    url = cluster.new_database()
    with Store.open(None, url=url) as store, store.create(directory="/", model="m") as session:
        texts = (f"walrus x{number}x" + " zebra" * (number % 3 == 0) for number in range(MESSAGES))
        session.log.append([Message("user", text) for text in texts])
    database = PostgresDatabase(url, None)
    if has_statistics:
        with database.transaction() as transaction:
            transaction.execute("ANALYZE passages")
    held = database.index.holding([EVERYWHERE, BEGINNING, EVERY_THIRD, RARE, NOWHERE])
    database.close()
    for phrase in (EVERYWHERE, BEGINNING):
        count, reach = held[phrase]
        assert count == COUNTED
        assert COUNTED * MESSAGES * MAX_PASSAGES / reach == pytest.approx(MESSAGES, rel=0.05)
    assert held[EVERY_THIRD][0] == pytest.approx(MESSAGES / 3, rel=0.05)
    assert (held[RARE][0], held[NOWHERE]) == (1, (0, 0))
