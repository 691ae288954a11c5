"""The chat in every environment: TERM, pipe, locale, colour and size. `make endings` tries all 800."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.terminal.matrix import Spot, problems, spots

IS_WHOLE = bool(os.environ.get("NCA_MATRIX"))
AT_ONCE = 3
pytestmark = pytest.mark.timeout(0 if IS_WHOLE else 600)


def few() -> Iterator[Spot]:
    """Each value of each kind at least once, and what is the most unlike the usual."""
    yield Spot("xterm-256color", "none", True, "ascii", (24, 80))
    yield Spot("screen", "none", False, "C.UTF-8", (1, 1))
    yield Spot("bogus", "none", False, "ja_JP.eucJP", (2, 5))
    yield Spot("xterm-256color", "none", False, "C", (200, 500))
    yield Spot("dumb", "none", False, "ascii", (24, 3))
    yield Spot("xterm-256color", "in", True, "C.UTF-8", (24, 80))
    yield Spot("screen", "out", False, "ascii", (2, 5))
    yield Spot("", "both", False, "ja_JP.eucJP", (24, 80))


def test_a_chat_in_every_place() -> None:
    tried = list(spots() if IS_WHOLE else few())
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = list(pool.map(problems, tried))
    assert [f"{spot}: {problem}" for spot, wrong in zip(tried, found, strict=True) for problem in wrong] == []
