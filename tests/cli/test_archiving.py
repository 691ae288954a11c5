"""What a start archives: nothing that nobody asked for, and then what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nca.cli.startup import open_store
from nca.config.loaded import defaults
from nca.events import Notice
from nca.messages import Entry
from nca.sessions import Store, transfer
from nca.sessions.transfer import new_copy
from nca.testing.provider import Provider
from nca.transcripts.archives import archived, restore
from tests.cli.command import keys
from tests.sessions.samples import said
from tests.testing.forks import forked

COUNT = 1_000
DAY = 86_400


def test_1_000_sessions_and_a_clock_400_days_ahead(tmp_path: Path, provider: Provider) -> None:
    """The sessions were used on 400 days, and the last of these is 400 days ago."""
    path = tmp_path / "nca" / "data" / "sessions.db"
    with Store.open(path) as store, store._database.transaction() as connection:
        for number in range(COUNT):
            copy = new_copy([Entry(1, said(f"question {number}")[0])], directory="/", model="m")
            transfer.write(store._database, connection, f"{number:08x}", copy)
        sql = "UPDATE sessions SET updated_at = updated_at - ? + (number - 1) / 2.5 * ?"
        connection.execute(sql, (800 * DAY, DAY))
    key: Any = keys(provider)
    project = tmp_path / ".nca"
    project.mkdir()
    (project / "config.toml").write_text('profile = "neurolink"\n[session]\nmax_sessions = 1\nretention_days = 1\n')
    assert "Archived" not in forked("run", "hello", "--profile", "cowagent", home=tmp_path, **key).stderr
    with Store.open(path) as store:
        assert len(store.list(None)) == COUNT + 1
        assert archived(store) == []
    done = forked("run", "hello", home=tmp_path, NCA_SESSION__MAX_SESSIONS="989", **key)
    assert done.returncode == 0
    assert (
        "Archived 12 old sessions (session.retention_days 0, max_sessions 989): 00000000 “question 0”, "
        "00000001 “question 1”, 00000002 “question 2”, 9 more. `nca sessions restore ID` brings one back."
    ) in " ".join(done.stderr.split())
    with Store.open(path) as store:
        found = {one.path.stem for one in archived(store)}
        assert found == {f"{number:08x}" for number in range(12)}
        for session_id in found:
            restore(store, session_id)
        assert len(store.list(None)) == COUNT + 2


def test_why_old_sessions_stay_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCA_HOME", str(tmp_path))
    path = tmp_path / "data" / "sessions.db"
    with Store.open(path) as store:
        for number in range(3):
            store.add(new_copy([Entry(1, said(f"question {number}")[0])], directory="/", model="m"))
    (path.parent / "archives").write_text("no folder")
    told: list[Any] = []
    loaded = defaults().with_values({"session.max_sessions": 2}, "the test")
    with open_store(loaded, told.append, is_new=True) as store:
        assert len(store.list()) == 3
    [notice] = [event.message for event in told if isinstance(event, Notice)]
    assert notice.startswith("Old sessions (session.retention_days 0, max_sessions 2) could not be archived: ")
