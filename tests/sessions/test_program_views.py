"""The states of views that programs keep in the store: of two writers the first wins, and nothing is mixed."""

from __future__ import annotations

import json
from pathlib import Path

import apsw
import pytest

from nca.errors import StoreError, ViewInUse
from nca.sessions import Store
from tests.sessions.samples import said
from tests.sessions.test_kinds import old_database
from tests.sessions.test_together import complaints, let_go, start

WRITERS, SAVES = 4, 40
KEYS = ["user-1/1", "user-2/1"]

WRITER = """
import json, sys
from pathlib import Path
from nca.errors import ViewInUse
from nca.sessions import Store
with Store.open(Path(sys.argv[1])) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    for key in json.loads(sys.argv[2]):
        saved = 0
        while saved < int(sys.argv[3]):
            before = store.program_views.read(key)
            row = json.loads(before.body) if before else {"count": 0, "of": key}
            assert row["of"] == key, row
            try:
                store.program_views.save(key, json.dumps({**row, "count": row["count"] + 1}), before)
                saved += 1
            except ViewInUse:
                pass
"""


def body_of(store: Store, key: str) -> str:
    found = store.program_views.read(key)
    assert found is not None
    return found.body


def test_a_state_is_read_replaced_and_deleted(path: Path) -> None:
    with Store.open(path) as store:
        assert store.program_views.read("a") is None
        store.program_views.save("a", "one", None)
        store.program_views.save("b", "other", None)
        store.program_views.save("a", "two", store.program_views.read("a"))
    with Store.open(path) as store:
        assert [body_of(store, key) for key in ("a", "b")] == ["two", "other"]
        store.program_views.delete("a")
        store.program_views.delete("a")
        assert store.program_views.read("a") is None
        assert body_of(store, "b") == "other"
        assert store.list() == []


def test_whoever_read_an_older_state_saves_nothing(store: Store) -> None:
    views = store.program_views
    views.save("a", "one", None)
    first = views.read("a")
    views.save("a", "two", first)
    second = views.read("a")
    for stale in (None, first):
        with pytest.raises(ViewInUse, match=r"^Another request has fitted the conversation 'a' meanwhile\. Nothing"):
            views.save("a", "stale", stale)
    views.delete("a")
    with pytest.raises(ViewInUse):
        views.save("a", "stale", second)
    assert views.read("a") is None
    views.save("a", "two", None)
    with pytest.raises(ViewInUse):
        views.save("a", "stale", second)  # the same words, saved again, are another version
    assert body_of(store, "a") == "two"


def test_a_reader_saves_nothing(path: Path) -> None:
    with Store.open(path) as store:
        store.program_views.save("a", "one", None)
    with Store.open(path, read_only=True) as reader:
        assert body_of(reader, "a") == "one"
        with pytest.raises(StoreError, match="reading only"):
            reader.program_views.save("b", "x", None)
        with pytest.raises(StoreError, match="reading only"):
            reader.program_views.delete("a")


def test_many_processes_save_each_once(path: Path) -> None:
    writers = [start(WRITER, str(path), json.dumps(KEYS), str(SAVES)) for _ in range(WRITERS)]
    let_go(writers)
    assert complaints(writers) == []
    with Store.open(path, read_only=True) as store:
        for key in KEYS:
            assert json.loads(body_of(store, key)) == {"count": WRITERS * SAVES, "of": key}


def test_an_older_database_gets_the_table(path: Path) -> None:
    old_database(path, 10)
    with Store.open(path) as store:
        store.program_views.save("a", "one", None)
        assert body_of(store, "a") == "one"


def test_they_are_saved_from_a_damaged_database_and_are_no_session(path: Path) -> None:
    with Store.open(path) as store, store.create(directory="/", model="m") as session:
        session.log.append(said("a walrus"))
        store.program_views.save("a", json.dumps({"view": "x" * 20_000, "role": "user"}), None)
    connection = apsw.Connection(str(path))
    connection.execute("DROP TABLE learned")
    connection.close()
    with Store.open(path) as store:
        assert store.notes
        assert json.loads(body_of(store, "a"))["view"] == "x" * 20_000
        assert [info.messages for info in store.list()] == [1]


def test_they_count_in_the_sizes(store: Store) -> None:
    before = store.sizes().summaries
    store.program_views.save("a", "x" * 100_000, None)
    assert store.sizes().summaries - before >= 90_000, "a part of it is in the room that its page had already"
