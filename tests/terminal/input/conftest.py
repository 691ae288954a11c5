"""A terminal of the tests' own."""

from __future__ import annotations

import os
import sys
import tty
from collections.abc import Iterator

import pytest
from prompt_toolkit.input.typeahead import get_typeahead

from nca.terminal.input.keyboard import Keyboard


@pytest.fixture(scope="module")
def keyboard() -> Iterator[Keyboard]:
    """A keyboard that nobody reads."""
    master, slave = os.openpty()
    tty.setraw(slave)
    with os.fdopen(slave) as terminal, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", terminal)
        keyboard = Keyboard()
        get_typeahead(keyboard)  # of another test's terminal with this number
        yield keyboard
    os.close(master)
