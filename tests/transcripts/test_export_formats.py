"""The format of an exported session, and the file that it is written to."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nca.errors import NcaError, UsageError
from nca.transcripts.export_formats import format_of, write_private


@pytest.mark.parametrize(
    ("asked", "file", "chosen"),
    [
        ([], "-", "markdown"),
        ([], "talk", "markdown"),
        ([], "talk.MD", "markdown"),
        ([], "talk.json", "json"),
        ([], "a.pdf/talk.htm", "html"),
        ([], "talk.txt", "markdown"),
        (["md"], "talk.v2", "markdown"),
        (["html"], "talk.json", "html"),
        (["json", "json"], "talk.pdf", "json"),
        (["md"], "talk", "markdown"),
        (["MD", "markdown", ".md"], "talk.html", "markdown"),
        (["htm"], "-", "html"),
    ],
)
def test_what_was_asked_for_else_what_the_name_says(asked: list[str], file: str, chosen: str) -> None:
    assert format_of(asked, file) == chosen


@pytest.mark.parametrize(
    ("asked", "file", "says"),
    [
        ([], "talk.pdf", r"talk\.pdf: nca does not write \.pdf files; valid: \.md, .*\.txt"),
        ([], "talk.xyz", r"talk\.xyz: nca does not write \.xyz files"),
        (["html", "json"], "talk", "exclude each other"),
        (["docx"], "talk", "'docx' is not valid; valid: markdown, json, jsonl, html"),
    ],
)
def test_what_cannot_be_written_is_refused_with_what_can(asked: list[str], file: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        format_of(asked, file)


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


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        read = pool.submit(pipe.read_bytes)
        write_private(pipe, b"one")
        assert read.result() == b"one"
    assert pipe.is_fifo()


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(NcaError, match="cannot be written"):
        write_private(tmp_path / "no" / "such" / "folder.json", b"")
    with pytest.raises(UsageError, match="already exists"):
        write_private(tmp_path, b"", overwrites=True)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="already exists"):
        write_private(tmp_path / "link", b"")
