"""The suite that each store passes, on each store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from nca.sessions import Store
from tests.postgres import Cluster
from tests.sessions.store_suite import StoreSuite


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


class TestOnDisk(StoreSuite):
    @pytest.fixture
    def open_store(self, path: Path, stack: ExitStack) -> Callable[[], Store]:
        return lambda: stack.enter_context(Store.open(path))


class TestInMemory(StoreSuite):
    @pytest.fixture
    def open_store(self, stack: ExitStack) -> Callable[[], Store]:
        store = stack.enter_context(Store.open(None))
        return lambda: store


class TestPostgres(StoreSuite):
    @pytest.fixture
    def open_store(self, cluster: Cluster, stack: ExitStack) -> Callable[[], Store]:
        url = cluster.new_database()
        return lambda: stack.enter_context(Store.open(None, url=url))
