"""Atomic writes: the new content or the old, never a part, and nothing left behind."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from nca.safe_files import write_atomically


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_is_private_and_an_old_one_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"one")
    assert (path.read_bytes(), mode(path)) == (b"one", 0o600)
    path.chmod(0o644)
    write_atomically(path, b"two")
    assert (path.read_bytes(), mode(path)) == (b"two", 0o600)
    assert list(tmp_path.iterdir()) == [path]


def test_the_permissions_of_a_file_can_be_kept(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one")
    path.chmod(0o640)
    write_atomically(path, b"two", mode=None)
    assert (path.read_bytes(), mode(path)) == (b"two", 0o640)


def test_a_failed_write_changes_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "in the way"
    (folder / "inner").mkdir(parents=True)
    with pytest.raises(OSError):
        write_atomically(folder, b"one")
    assert list(tmp_path.iterdir()) == [folder]
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "missing" / "file", b"one")
