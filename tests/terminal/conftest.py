"""Fixtures of tests in a pseudo-terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.terminal.tty import Tty, chats


@pytest.fixture
def start() -> Iterator[Callable[..., Tty]]:
    """Starts a chat and waits for its prompt; ended with the test."""
    with chats() as begin:
        yield begin
