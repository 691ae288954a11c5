from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nca.sessions.store import Store
from tests.file_history.room import Room


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "home" / "sessions.db") as store:
        yield store


@pytest.fixture
def room(tmp_path: Path, store: Store) -> Room:
    return Room(tmp_path / "work", store)
