"""A file holds the old content or the new, even if the process is killed while writing."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from nca.safe_files import open_folder
from nca.tools.files.text_file import write_file
from tests.testing.forks import standing_code

KILLS = 30
SIZE = 4 << 20
_WRITER = """
import os, sys
from nca.tools.files.text_file import write_file
from nca.safe_files import open_folder
root, size = sys.argv[1], int(sys.argv[2])
print(os.getpid(), flush=True)
with open_folder(root, []) as folder:
    for round in range(1_000_000):
        write_file(folder, "f", bytes([65 + round % 26]) * size, folder.stat("f"))
"""


def test_killed_while_writing_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"A" * SIZE)
    path.chmod(0o604)
    generator = random.Random(5)
    seen = set()
    for _ in range(KILLS):
        process = subprocess.Popen(standing_code(_WRITER, str(tmp_path), str(SIZE)), stdout=subprocess.PIPE)
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        time.sleep(generator.uniform(0, 0.1))
        os.kill(pid, signal.SIGKILL)
        process.communicate()
        content = path.read_bytes()
        assert len(content) == SIZE
        assert len(set(content)) == 1
        assert path.stat().st_mode & 0o777 == 0o604
        seen.add(content[:1])
    # It was really writing.
    assert len(seen) > 1


def test_what_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    with open_folder(str(tmp_path), []) as folder:
        with pytest.raises(FileExistsError):
            write_file(folder, "f", b"new", None)
        (tmp_path / "folder").mkdir()
        with pytest.raises(OSError):
            write_file(folder, "folder", b"new", folder.stat("f"))
        with pytest.raises(OSError):
            write_file(folder, "n" * 300, b"new", None)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f", "folder"]
    assert (tmp_path / "f").read_text() == "old"
