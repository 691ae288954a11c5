"""A real store in a directory of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nca.sessions import Session, Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a store goes; nothing is there yet."""
    return tmp_path / "data" / "sessions.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with Store.open(path) as store:
        yield store


@pytest.fixture
def session(store: Store) -> Session:
    return store.create(directory="/work", model="openai/gpt-4.1")
