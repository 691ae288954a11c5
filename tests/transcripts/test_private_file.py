"""Private files: readable by their owner only, written completely or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from nca.errors import NcaError, UsageError
from nca.transcripts.private_file import write_private


def test_it_is_private_and_replaces_only_when_asked(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    write_private(file, b"one")
    assert file.stat().st_mode & 0o777 == 0o600
    with pytest.raises(UsageError, match=r"already exists; nothing was written.* --force"):
        write_private(file, b"two")
    assert file.read_bytes() == b"one"
    file.chmod(0o644)
    write_private(file, b"two", overwrites=True)
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"two", 0o600)
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(NcaError, match="cannot be written"):
        write_private(tmp_path / "no" / "such" / "folder.json", b"")
    with pytest.raises(UsageError, match="already exists"):
        write_private(tmp_path, b"", overwrites=True)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="already exists"):
        write_private(tmp_path / "link", b"")
