"""read_file and list_directory on real files: ranges, sizes, encodings, links, and things that are no files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nca.context.admission import Limits, admit_output
from nca.tools.files.read import MAX_BYTES, ListDirectory, ReadFile
from nca.tools.files.workspace import Workspace
from nca.tools.tool import ToolError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    return root


WIDE = Limits(max_bytes=2 * MAX_BYTES, max_lines=3_000)


async def read(root: Path, path: str, offset: int = 1, limit: int = 2000, *, limits: Limits = WIDE) -> str:
    outcome = await ReadFile(Workspace(root), limits=lambda: limits).call(path, offset, limit)
    assert not outcome.is_error
    return outcome.text


async def listed(root: Path, path: str = ".") -> str:
    return (await ListDirectory(Workspace(root)).call(path)).text


async def refused(root: Path, path: str, offset: int = 1) -> str:
    with pytest.raises(ToolError) as caught:
        await ReadFile(Workspace(root)).call(path, offset)
    assert "\n" not in str(caught.value)
    return str(caught.value)


async def test_a_whole_file_comes_as_it_is(root: Path) -> None:
    (root / "a.txt").write_bytes("één\r\ntwo\n\nlast".encode())
    assert await read(root, "a.txt") == "één\r\ntwo\n\nlast"
    assert await read(root, str(root / "a.txt")) == "één\r\ntwo\n\nlast"
    outcome = await ReadFile(Workspace(root)).call("a.txt")
    assert outcome.summary == "4 lines"
    (root / "one").write_text("x\n")
    assert (await ReadFile(Workspace(root)).call("one")).summary == "1 line"
    assert (await ReadFile(Workspace(root)).call("a.txt", offset=2, limit=2)).summary == "lines 2–3 of 4"


async def test_a_range_says_so_in_its_first_line_and_where_to_go_on_in_its_last(root: Path) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "n.txt").write_text("".join(f"line {number}\n" for number in range(1, 11)))
    head = "[sub/n.txt: lines {}]\n"
    first = head.format("1-2 of 10") + "line 1\nline 2\n[continue with offset=3]"
    assert await read(root, "sub/n.txt", 1, 2) == first
    assert await read(root, "sub/../sub/n.txt", 9, 5) == head.format("9-10 of 10") + "line 9\nline 10\n"
    assert await read(root, "sub/n.txt", -5, 0) == head.format("1-1 of 10") + "line 1\n[continue with offset=2]"
    assert await refused(root, "sub/n.txt", 11) == "sub/n.txt has 10 lines; line 11 is past its end"


async def test_a_large_file_is_read_only_as_far_as_needed(root: Path) -> None:
    with (root / "big").open("wb") as file:
        file.write(b"first\nsecond\n" + b"more\n" * 2000)
        # A hole: the file is a terabyte long and takes no room.
        file.truncate(1 << 40)
    assert await read(root, "big", 2, 1) == "[big: lines 2-2]\nsecond\n[continue with offset=3]"


async def test_a_huge_single_line_is_cut_and_says_so(root: Path) -> None:
    (root / "line").write_bytes(b"x" * (MAX_BYTES * 50))
    text = await read(root, "line")
    assert text.startswith("[line: lines 1-1; line 1 is longer than shown; the rest of it was left out")
    assert len(text) < MAX_BYTES + 200
    # A cut in the middle of a character shows no broken one.
    (root / "wide").write_text("é" * MAX_BYTES + "\nnext\n")
    (root / "wide").write_bytes(b"x" + (root / "wide").read_bytes())
    text = await read(root, "wide")
    assert "\ufffd" not in text
    assert text.startswith("[wide: lines 1-1 of 2; line 1 is longer than shown")
    assert await read(root, "wide", 2) == "[wide: lines 2-2 of 2]\nnext\n"


async def test_many_lines_stop_at_the_size_limit(root: Path) -> None:
    (root / "many").write_bytes((b"y" * 1023 + b"\n") * 2000)
    text = await read(root, "many")
    last = MAX_BYTES // 1024 - 1
    assert text.startswith(f"[many: lines 1-{last} of 2,000]\n")
    assert text.endswith(f"y\n[no more fit; continue with offset={last + 1}]")
    assert len(text) < MAX_BYTES + 200


async def test_encodings(root: Path) -> None:
    (root / "bom").write_bytes(b"\xef\xbb\xbfx\n")
    assert await read(root, "bom") == "x\n"
    (root / "latin").write_bytes(b"caf\xe9\n")
    assert await read(root, "latin") == "[latin: not UTF-8: what could not be decoded is shown as \ufffd]\ncaf\ufffd\n"
    (root / "utf16").write_bytes("hé\nzwei\n".encode("utf-16"))
    assert await read(root, "utf16") == "hé\nzwei\n"
    assert await read(root, "utf16", 2, 1) == "[utf16: lines 2-2 of 2]\nzwei\n"
    (root / "honest").write_text("\ufffd\n")
    assert await read(root, "honest") == "\ufffd\n"
    (root / "empty").write_bytes(b"")
    assert await read(root, "empty") == "[empty is empty]"


async def test_a_directory_that_is_read_is_listed(root: Path) -> None:
    (root / "src").mkdir()
    (root / "src" / "a.py").write_text("1\n")
    assert await read(root, ".") == await listed(root, ".")
    assert await read(root, "src", 3, 1) == await listed(root, "src") == "a.py  2 bytes"
    assert "outside" in await refused(root, "..")


async def test_what_is_no_text_file(root: Path) -> None:
    (root / "binary").write_bytes(b"\x7fELF\0\0")
    assert await refused(root, "binary") == "binary is a binary file (6 bytes)"
    assert await refused(root, "missing") == "there is no file missing"
    assert await refused(root, "Binary") == "there is no file Binary (there is binary)"
    assert await refused(root, "binary/x") == "there is no file binary/x"
    assert await refused(root, "") == "'' is not a path"
    assert await refused(root, "a\0b") == "'a\\x00b' is not a path"
    assert "cannot be read" in await refused(root, "n" * 5000)
    assert "\x1b" not in await refused(root, "\x1b[2J")
    assert "\ud800" not in await refused(root, "\ud800")
    os.mkfifo(root / "pipe")
    assert await refused(root, "pipe") == "pipe is not an ordinary file"


async def test_nothing_outside_of_the_root(root: Path) -> None:
    outside = root.parent / "project-secret"
    outside.mkdir()
    (outside / "key").write_text("secret")
    (root / "inside.txt").write_text("fine")
    (root / "link").symlink_to(outside / "key")
    (root / "folder").symlink_to(outside)
    (root / "loop").symlink_to(root / "loop")
    (root / "good").symlink_to(root / "inside.txt")
    for name in ("../project-secret/key", str(outside / "key"), "link", "folder/key", "folder/../key", "/etc/passwd"):
        said = await refused(root, name)
        assert said.startswith(f"{name} is outside of the working directory (")
        assert "tools.readable" in said
    assert "loop" in await refused(root, "loop")
    assert await read(root, "good") == "fine"
    with pytest.raises(ToolError, match="outside"):
        await listed(root, "folder")
    with pytest.raises(ToolError, match="outside"):
        await listed(root, "..")


async def test_the_root_itself_may_be_a_link(root: Path) -> None:
    (root / "a").write_text("x")
    alias = root.parent / "alias"
    alias.symlink_to(root)
    assert await read(alias, "a") == "x"


async def test_a_listing(root: Path) -> None:
    (root / "b.txt").write_text("x" * 1234)
    (root / "a").mkdir()
    (root / "link").symlink_to("b.txt")
    os.mkfifo(root / "pipe")
    assert await listed(root) == "a/\nb.txt  1,234 bytes\nlink -> b.txt\npipe  (special file)"
    assert await listed(root, "a") == "[a is empty]"
    for name, words in (("b.txt", "is a file"), ("none", "there is no directory"), ("", "is not a path")):
        with pytest.raises(ToolError, match=words):
            await listed(root, name)


async def test_a_long_listing_says_how_many_more(root: Path) -> None:
    for number in range(612):
        (root / f"{number:04}").touch()
    outcome = await ListDirectory(Workspace(root)).call(".")
    lines = outcome.text.splitlines()
    assert len(lines) == 501
    assert lines[-1] == "[112 more entries are not shown]"
    assert outcome.summary == "612 entries"


async def test_a_page_ends_with_a_whole_line_within_the_limits_of_a_result(root: Path) -> None:
    (root / "long").write_text("".join(f"line {number}, and more of it\n" for number in range(1, 641)))
    limits, offset, joined = Limits(max_bytes=6_000, max_lines=100), 1, ""
    while True:
        text = await read(root, "long", offset, limits=limits)
        assert not admit_output(text, max_bytes=6_000, max_lines=100).is_cut
        body = text.split("\n", 1)[1]
        body, _, note = body.rpartition("[") if "continue with" in body else (body, "", "")
        joined += body
        if not note:
            break
        offset = int(note.removesuffix("]").rpartition("offset=")[2])
    assert joined == (root / "long").read_text()


class Typing:
    """An editor that has all files open, none of them saved."""

    def read(self, *paths: Path) -> dict[Path, str]:
        return dict.fromkeys(paths, "typed")

    def write(self, path: Path, text: str) -> bool:
        return False


async def test_files_that_nca_names_can_be_read_and_no_others_outside(root: Path, tmp_path: Path) -> None:
    outputs = tmp_path / "outputs" / "1a2b3c4d"
    outputs.mkdir(parents=True)
    (outputs / "3.txt").write_text("the whole output\n")
    (tmp_path / "secret").write_text("no\n")
    (outputs / "4.txt").symlink_to(tmp_path / "secret")
    (root / "own").write_text("saved")
    workspace = Workspace(root, readable=lambda: (outputs.parent,), open_files=Typing())
    # Of the project's files the editor's text counts, of no other's.
    assert (await ReadFile(workspace).call(str(outputs / "3.txt"))).text == "the whole output\n"
    assert (await ReadFile(workspace).call("own")).text == "typed"
    for name in (str(tmp_path / "secret"), str(outputs / "4.txt"), str(outputs / ".." / ".." / "secret")):
        with pytest.raises(ToolError, match="outside of the working directory"):
            await ReadFile(workspace).call(name)
    with pytest.raises(ToolError, match="outside of the working directory"):
        workspace.resolve_to_write(str(outputs / "3.txt"))
