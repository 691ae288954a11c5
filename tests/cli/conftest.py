"""Fixtures of tests that talk to a provider on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from nca.testing.provider import Provider
from tests.cli.command import WINDOW_TOKENS


@pytest.fixture
def provider() -> Iterator[Provider]:
    """It says what it was told."""

    def echo(request: dict[str, Any]) -> str:
        return f"You said: {request['messages'][-1]['content'][:40]}"

    with Provider(echo, window_tokens=WINDOW_TOKENS) as running:
        yield running
