"""Python's garbage collector, paused where many objects are made and no garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused(*, is_long: bool = True) -> Iterator[None]:
    """Pause the garbage collector: its passes over many objects that all stay cost more than they could free.

    is_long  False: it is not worth it
    """
    was_enabled = is_long and gc.isenabled()
    if was_enabled:
        gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
