"""A text file keeps its bytes: encoding, byte-order mark, line ends, and what an editor holds of it."""

from __future__ import annotations

import codecs
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.safe_files import open_folder
from nca.tools.files.text_file import (
    TextFile,
    as_in_editor,
    can_save,
    is_binary,
    is_unsaved,
    says_the_same,
    write_file,
)
from nca.tools.tool import ToolError

MARKS = {"utf-8": codecs.BOM_UTF8, "utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}
LINES = st.lists(st.sampled_from(["a", "é", "日本", "", "x" * 9]), max_size=6)
ENDS = st.sampled_from(["\n", "\r\n"])


@given(st.binary(max_size=60).filter(lambda raw: b"\0" not in raw))
def test_any_bytes_come_back_as_they_were(raw: bytes) -> None:
    try:
        file = TextFile.of(raw, "x")
    except ToolError:
        assert raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        return
    assert file.encode(file.text) == raw


@pytest.mark.parametrize("codec", list(MARKS))
@given(LINES, ENDS)
def test_a_mark_says_the_encoding_and_stays(codec: str, lines: list[str], end: str) -> None:
    raw = MARKS[codec] + end.join(lines).encode(codec)
    file = TextFile.of(raw, "x")
    assert (file.text, file.codec, file.mark) == (end.join(lines), codec, MARKS[codec])
    assert file.encode("ü") == MARKS[codec] + "ü".encode(codec)
    assert not is_binary(raw)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"a\0b", r"x is a binary file \(3 bytes\)"),
        (codecs.BOM_UTF16_LE + b"a", "x is not valid utf-16-le"),
        (codecs.BOM_UTF16_BE + b"\0a\0\0", "x is a binary file"),
    ],
)
def test_what_is_no_text_is_refused(raw: bytes, says: str) -> None:
    with pytest.raises(ToolError, match=says):
        TextFile.of(raw, "x")


@pytest.mark.parametrize(("place", "is_found"), [(0, True), (8_191, True), (8_192, False)])
def test_only_the_beginning_says_that_a_file_is_binary(place: int, is_found: bool) -> None:
    assert is_binary(b"a" * place + b"\0") == is_found
    assert not is_binary(b"a" * 9_000)


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("", "\n"),
        ("a\n", "\n"),
        ("a\r\n", "\r\n"),
        ("a\r\nb\n", "\n"),
        ("a\r\nb\r\nc\n", "\r\n"),
        ("a\nb\r\nc\n", "\n"),
    ],
)
def test_the_line_end_of_most_lines_is_the_file_s(text: str, end: str) -> None:
    file = TextFile(text)
    assert file.line_end == end
    assert file.with_own_line_ends("1\n2") == f"1{end}2"
    assert file.with_own_line_ends("1\r\n2\n") == "1\r\n2\n"


@given(LINES, ENDS, ENDS, st.booleans(), st.booleans())
def test_texts_that_differ_in_line_ends_and_a_mark_say_the_same(
    lines: list[str], one: str, other: str, has_mark: bool, is_longer: bool
) -> None:
    first, second = one.join(lines), ("\ufeff" if has_mark else "") + other.join(lines) + ("!" if is_longer else "")
    assert says_the_same(first, second) != is_longer
    assert says_the_same(second, first) != is_longer


@pytest.mark.parametrize(
    ("raw", "after", "can"),
    [
        (None, "new", True),
        (None, "\udc80", False),
        (b"old", "new", True),
        (b"old", "\udcff", False),
        (codecs.BOM_UTF8 + b"old", "new", False),
        (codecs.BOM_UTF16_LE, "new", False),
    ],
)
def test_an_editor_saves_what_comes_back_as_the_same_bytes(raw: bytes | None, after: str, can: bool) -> None:
    assert can_save(None if raw is None else TextFile.of(raw, "x"), after) == can


class Editor:
    """It has one text of every file."""

    def __init__(self, text: str | None) -> None:
        self.text = text

    def read(self, *paths: Path) -> dict[Path, str]:
        return {} if self.text is None else dict.fromkeys(paths, self.text)

    def write(self, path: Path, text: str) -> bool:
        raise AssertionError("nothing is written here")


@pytest.mark.parametrize(
    ("raw", "held", "shown"),
    [
        (b"a\r\nb\r\n", None, None),
        (b"a\r\nb\r\n", "a\nb\n", None),
        (codecs.BOM_UTF8 + b"a", "a", None),
        (b"a\0", "b", None),
        (b"a\r\nb\r\n", "a\nc\n", b"a\r\nc\r\n"),
        (codecs.BOM_UTF8 + b"a\n", "\ufeffb\n", codecs.BOM_UTF8 + b"b\n"),
        (codecs.BOM_UTF16_LE + "é".encode("utf-16-le"), "ü", codecs.BOM_UTF16_LE + "ü".encode("utf-16-le")),
        (b"a", "\ud800", "\ufffd".encode()),
    ],
)
def test_what_an_editor_has_not_saved_is_read_in_the_file_s_own_encoding(
    raw: bytes, held: str | None, shown: bytes | None, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_bytes(raw)
    with as_in_editor(path.open("rb"), path, Editor(held)) as file:
        assert file.read() == (raw if shown is None else shown)
        assert is_unsaved(os.fstat(file.fileno())) == (shown is not None)
    assert path.read_bytes() == raw


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o444])
def test_a_replaced_file_keeps_its_mode_and_a_new_one_replaces_none(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(mode)
    before = path.stat()
    with open_folder(str(tmp_path), ()) as folder:
        write_file(folder, "file", b"new", before)
        assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", mode)
        assert path.stat().st_uid == before.st_uid
        with pytest.raises(FileExistsError):
            write_file(folder, "file", b"newer", None)
        write_file(folder, "other", b"first", None)
    assert (path.read_bytes(), (tmp_path / "other").read_bytes()) == (b"new", b"first")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "other"]
    assert (tmp_path / "other").stat().st_nlink == 1
