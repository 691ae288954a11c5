"""A pause of the garbage collector ends as it began."""

from __future__ import annotations

import gc

import pytest

from nca.messages import collector_paused


@pytest.mark.parametrize("is_enabled", [True, False])
def test_the_collector_is_afterwards_as_it_was_before(is_enabled: bool) -> None:
    (gc.enable if is_enabled else gc.disable)()
    try:
        with collector_paused():
            assert not gc.isenabled()
        assert gc.isenabled() is is_enabled
        with pytest.raises(ValueError, match="no-number"), collector_paused():
            int("no-number")
        assert gc.isenabled() is is_enabled
        with collector_paused(is_long=False):
            assert gc.isenabled() is is_enabled
    finally:
        gc.enable()
