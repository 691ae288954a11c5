"""A session that another machine has open, in a store that both share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from nca.errors import SessionLocked
from nca.sessions import Store
from nca.terminal.panels.session_loader import KeyChoice, SessionToOpen, resolve_lock
from tests.postgres import Cluster
from tests.sessions.store_suite import made, said


async def test_it_can_be_taken_over(cluster: Cluster) -> None:
    url = cluster.new_database()
    asked: list[tuple[str, Sequence[KeyChoice]]] = []

    async def take(question: str, choices: Sequence[KeyChoice]) -> str:
        asked.append((question, choices))
        return "t"

    with Store.open(None, url=url) as there, Store.open(None, url=url) as here:
        session = made(there, "one")
        found = await resolve_lock(here, session.info, take)
        assert found
        assert (found.session, found.read_only) == (session.info, False)
        assert "already open in process" in asked[0][0]
        assert [key for key, _ in asked[0][1]] == ["r", "f", "t"]
        with here.open_session(session.info.id) as mine:
            mine.log.append(said("two"))
            with pytest.raises(SessionLocked, match="was taken over in process"):
                session.log.append(said("lost"))


async def test_a_file_is_not_taken_over(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("data") / "sessions.db"
    asked: list[str] = []

    async def cancel(question: str, choices: Sequence[KeyChoice]) -> str:
        asked.extend(key for key, _ in choices)
        return ""

    with Store.open(path) as there, Store.open(path) as here:
        session = made(there, "one")
        assert await resolve_lock(here, session.info, cancel) is None
        assert asked == ["r", "f"]


async def test_it_can_be_read_or_copied(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with Store.open(path) as there, Store.open(path) as here:
        info = made(there, "one").info

        async def read(question: str, choices: Sequence[KeyChoice]) -> str:
            return "r"

        async def fork(question: str, choices: Sequence[KeyChoice]) -> str:
            return "f"

        found = await resolve_lock(here, info, read)
        assert found == SessionToOpen(info, read_only=True)
        copied = await resolve_lock(here, info, fork)
        assert copied
        assert copied.session
        assert (copied.session.id == info.id, copied.read_only) == (False, False)


async def test_it_is_opened_for_writing_once_the_other_has_left(tmp_path: Path) -> None:
    """The person may take long to answer."""
    path = tmp_path / "sessions.db"
    with Store.open(path) as there, Store.open(path) as here:
        session = made(there, "one")

        async def read(question: str, choices: Sequence[KeyChoice]) -> str:
            session.close()
            return "r"

        assert await resolve_lock(here, session.info, read) == SessionToOpen(session.info, is_freed=True)
