from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOM_BYTES = 256 * 1024 * 1024


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """In memory where the system has that: a kill says nothing about what a disk keeps, and waits for none."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK) or shutil.disk_usage(memory).free < ROOM_BYTES:
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as path:
        yield Path(path)
