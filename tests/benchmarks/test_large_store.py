"""The store that the benchmark of large stores makes is what it says, and its first message is answered."""

from __future__ import annotations

from pathlib import Path

from benchmarks.large_store import first_message, make
from nca.sessions import Store


def test_a_small_one(tmp_path: Path) -> None:
    session = make(tmp_path, 3, 700)
    with Store.open(tmp_path / "data" / "sessions.db") as store:
        assert sorted(info.messages for info in store.list()) == [4, 4, 700]
        assert store.find(session).messages == 700
    found = first_message(tmp_path, session)
    assert found["first_message"] > 0
    with Store.open(tmp_path / "data" / "sessions.db") as store:
        assert store.find(session).messages > 701
