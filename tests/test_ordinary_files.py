"""Only ordinary files are opened, and opening anything else neither waits nor leaves a descriptor open."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nca.safe_files import open_folder, open_ordinary


def test_a_pipe_and_a_folder_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    before = set(Path("/dev/fd").iterdir())
    for name in ("pipe", "."):
        with pytest.raises(OSError, match="not an ordinary file"):
            open_ordinary(tmp_path / name)
    assert set(Path("/dev/fd").iterdir()) == before


def test_a_link_is_followed_only_where_it_may_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to("file")
    with open_ordinary(tmp_path / "link") as file:
        assert file.read() == b"text"
    with pytest.raises(OSError, match="links"):
        open_ordinary(tmp_path / "link", follows_links=False)


def test_what_is_appended_to_a_new_file_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "new"
    for part in (b"one ", b"two"):
        with open_ordinary(path, "ab") as file:
            file.write(part)
    assert path.read_bytes() == b"one two"
    assert path.stat().st_mode & 0o777 == 0o600


def test_folders_are_made_only_where_that_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), open_folder(str(tmp_path), ("a", "b")):
        pass
    assert not (tmp_path / "a").exists()
    with open_folder(str(tmp_path), ("a", "b"), create=True):
        assert (tmp_path / "a" / "b").is_dir()
