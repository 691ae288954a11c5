"""write_file and edit_file on real files: what they change, keep and refuse."""

from __future__ import annotations

import codecs
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.file_history import Recorder
from nca.messages import ToolCall
from nca.tools.files.edit import Edit, EditFile, WriteFile
from nca.tools.files.read import ReadFile
from nca.tools.files.reading_rules import MAX_CHANGED_BYTES, FilesRead
from nca.tools.files.workspace import Workspace
from nca.tools.tool import ToolError, ToolOutcome
from nca.tools.toolbox import Toolbox


class Tools:
    def __init__(self, root: Path) -> None:
        workspace, files_read = Workspace(root), FilesRead()
        self.root = root
        self.files_read = files_read
        self.reader, self.writer = ReadFile(workspace, files_read), WriteFile(workspace, files_read)
        self.editor = EditFile(workspace, files_read)

    async def edit(self, name: str, old: str, new: str, *, everywhere: bool = False) -> ToolOutcome:
        return await self.editor.call(name, old, new, everywhere)

    async def after(self, raw: bytes, old: str, new: str, *, everywhere: bool = False) -> bytes:
        """What is in a file that held `raw` when it was read and edited."""
        (self.root / "f").write_bytes(raw)
        await self.reader.call("f")
        await self.edit("f", old, new, everywhere=everywhere)
        return (self.root / "f").read_bytes()


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    return Tools(tmp_path)


async def test_a_new_file_needs_no_reading_and_makes_its_folders(tools: Tools) -> None:
    outcome = await tools.writer.call("src/deep/a.py", "x = 1\ny = 2\n")
    assert (tools.root / "src/deep/a.py").read_text() == "x = 1\ny = 2\n"
    assert outcome.text == "[created src/deep/a.py: 2 lines]"
    assert outcome.summary == "new file, +2 −0"
    assert outcome.diff == "--- /dev/null\n+++ b/src/deep/a.py\n@@ -0,0 +1,2 @@\n+x = 1\n+y = 2"
    # What one has written oneself is known.
    await tools.edit("src/deep/a.py", "x = 1", "x = 3")
    await tools.writer.call("src/deep/a.py", "")
    assert (tools.root / "src/deep/a.py").read_bytes() == b""
    assert not [path for path in (tools.root / "src/deep").iterdir() if path.name != "a.py"]


async def test_an_edit_replaces_exactly_and_shows_its_diff(tools: Tools) -> None:
    (tools.root / "a.py").write_text("def f():\n    return 1\n\n\ndef g():\n    return 2\n")
    await tools.reader.call("a.py")
    outcome = await tools.edit("a.py", "    return 1\n", "    x = 1\n    return x\n")
    assert (tools.root / "a.py").read_text() == "def f():\n    x = 1\n    return x\n\n\ndef g():\n    return 2\n"
    assert outcome.text == "[edited a.py: line 2]"
    assert outcome.summary == "+2 −1"
    assert outcome.diff.split("\n")[:6] == [
        "--- a/a.py",
        "+++ b/a.py",
        "@@ -1,5 +1,6 @@",
        " def f():",
        "-    return 1",
        "+    x = 1",
    ]


CLASS = "class A:\n    def f(self):\n        return 1\n\n    def h(self):\n        return 3\n"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "    def f(self):\n        return 1\n",
            "def f(self):\n    return 2\n",
            "[edited a.py: line 2]\n[line 2 is now indented less than the text that it replaces:]\n"
            "class A:\ndef f(self):\n    return 2\n\n    def h(self):",
        ),
        (
            "return 1",
            "return 1\n\ndef g(self):\n    return 2",
            "[edited a.py: line 3]\n[line 5 is now indented less than the text that it replaces:]\n"
            "class A:\n    def f(self):\n        return 1\n\ndef g(self):\n    return 2\n\n    def h(self):",
        ),
        (
            "    def h(self):",
            "        def h(self):",
            "[edited a.py: line 5]\n[line 5 is now indented more than the text that it replaces:]\n"
            "class A:\n    def f(self):\n        return 1\n\n        def h(self):\n        return 3\n",
        ),
        ("    def f(self):\n        return 1\n", "    def f(self):\n        return 2\n", "[edited a.py: line 2]"),
        ("return 1", "if self:\n            return 1\n        return 2", "[edited a.py: line 3]"),
        ("    def f(self):\n        return 1\n\n", "", "[edited a.py: line 2]"),
    ],
)
async def test_another_indentation_is_shown_with_the_lines_around_it(
    tools: Tools, old: str, new: str, said: str
) -> None:
    (tools.root / "a.py").write_text(CLASS)
    assert (await tools.edit("a.py", old, new)).text == said.partition(":]\n")[0] + "]" * (":]" in said)
    (tools.root / "a.py").write_text(CLASS)
    await tools.reader.call("a.py")
    assert (await tools.edit("a.py", old, new)).text == said
    (tools.root / "a.py").write_text(CLASS.replace("\n", "\r\n"), newline="")
    await tools.reader.call("a.py")
    assert (await tools.edit("a.py", old, new)).text == said


async def test_several_places_only_where_it_is_said(tools: Tools) -> None:
    (tools.root / "f").write_text("a\nb\na\na\n")
    await tools.reader.call("f")
    with pytest.raises(ToolError, match=r"old_text occurs 3 times in f \(lines 1, 3, 4\); give more of the lines"):
        await tools.edit("f", "a", "c")
    outcome = await tools.edit("f", "a", "c", everywhere=True)
    assert outcome.text == "[edited f: 3 places]"
    assert (tools.root / "f").read_text() == "c\nb\nc\nc\n"


async def test_several_edits_are_made_in_order_all_or_none(tools: Tools) -> None:
    (tools.root / "f").write_text("a\nb\nc\nb\n")
    await tools.reader.call("f")
    more = [{"old_text": "x\nb", "new_text": "y\nb"}, {"old_text": "b", "new_text": "d", "replace_all": True}]
    arguments = {"path": "f", "old_text": "a", "new_text": "x", "more_edits": more}
    assert tools.editor.approval(arguments).diff.endswith("\n-a\n-b\n+y\n+d\n c\n-b\n+d")
    outcome = await tools.editor.run(arguments)
    assert (tools.root / "f").read_text() == "y\nd\nc\nd\n"
    assert outcome.text == "[edited f: line 1; line 1; 2 places]"
    assert outcome.summary == "+3 −3"
    wrong = {"path": "f", "old_text": "y", "new_text": "z", "more_edits": [{"old_text": "b", "new_text": "q"}]}
    with pytest.raises(ToolError, match="nothing is changed, because of edit 2 of 2: old_text is not in f"):
        await tools.editor.run(wrong)
    undone = {"path": "f", "old_text": "y", "new_text": "z", "more_edits": [{"old_text": "z", "new_text": "y"}]}
    with pytest.raises(ToolError, match="the edits leave f as it is"):
        await tools.editor.run(undone)
    assert (tools.root / "f").read_text() == "y\nd\nc\nd\n"


async def test_white_space_at_line_ends_is_forgiven_and_said(tools: Tools) -> None:
    assert await tools.after(b"a  \nb\t\nc\n", "a\nb\n", "x\ny\n") == b"x\ny\nc\n"
    assert await tools.after(b"a\nb\nc\n", "a \nb ", "x\ny") == b"x\ny\nc\n"
    # Line ends of the file stay, also where it has both kinds.
    assert await tools.after(b"a \r\nb\r\nc\n", "a\nb\nc", "x\ny\nc") == b"x\r\ny\r\nc\n"
    assert await tools.after(b"a\nb\nc\n", "a\r\nb", "x\r\ny") == b"x\ny\nc\n"
    # What ends with white space ends with the line.
    assert await tools.after(b"ab\na\t\n", "a  ", "x") == b"ab\nx\n"
    (tools.root / "f").write_text("a \nb\na\t\nb\n")
    await tools.reader.call("f")
    with pytest.raises(ToolError, match=r"white space at line ends it is there 2 times \(lines 1, 3\); give more"):
        await tools.edit("f", "a\nb", "c", everywhere=True)
    outcome = await tools.edit("f", "b\na\nb", "c")
    assert outcome.text == "[edited f: line 2, matched but for white space at line ends]"
    assert (tools.root / "f").read_text() == "a \nc\n"
    with pytest.raises(ToolError, match="line 2 of f already reads so"):
        await tools.edit("f", "c \n", "c\n")


async def test_line_ends_and_marks_stay(tools: Tools) -> None:
    assert await tools.after(b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz") == b"x\r\ny\r\nz\r\nc\r\n"
    assert await tools.after(b"a\r\nb\r\n", "b", "x\ny") == b"a\r\nx\r\ny\r\n"
    assert await tools.after(b"a\r\nb\r\n", "a\r\nb", "x\r\ny") == b"x\r\ny\r\n"
    # A file of both kinds: what is not touched stays.
    assert await tools.after(b"a\nb\r\nc\n", "c\n", "d\n") == b"a\nb\r\nd\n"
    assert await tools.after(codecs.BOM_UTF8 + b"a\n", "a", "\xe9") == codecs.BOM_UTF8 + "é\n".encode()
    assert await tools.after("a\nb\n".encode("utf-16"), "b", "é") == "a\né\n".encode("utf-16")
    # Bytes that are no UTF-8 go back as they came.
    assert await tools.after(b"caf\xe9\nb\n", "b", "c") == b"caf\xe9\nc\n"
    await tools.writer.call("f", "neu")
    assert (tools.root / "f").read_bytes() == b"neu"
    (tools.root / "f").write_bytes(codecs.BOM_UTF8 + b"a\r\nb\r\n")
    await tools.reader.call("f")
    await tools.writer.call("f", "x\ny\n")
    assert (tools.root / "f").read_bytes() == codecs.BOM_UTF8 + b"x\r\ny\r\n"


async def test_the_mode_stays_and_a_new_file_has_the_usual_one(tools: Tools) -> None:
    script = tools.root / "run.sh"
    script.write_text("echo 1\n")
    script.chmod(0o750)
    await tools.reader.call("run.sh")
    await tools.edit("run.sh", "1", "2")
    assert stat.S_IMODE(script.stat().st_mode) == 0o750
    old = os.umask(0o027)
    try:
        await tools.writer.call("new", "x")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tools.root / "new").stat().st_mode) == 0o640
    script.chmod(0o444)
    with pytest.raises(ToolError, match=r"run.sh is read-only"):
        await tools.edit("run.sh", "2", "3")


async def test_a_hard_link_outside_is_not_written_through(
    tools: Tools, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other") / "keys"
    other.write_text("mine\n")
    os.link(other, tools.root / "f")
    await tools.reader.call("f")
    approval = tools.editor.approval({"path": "f", "old_text": "mine", "new_text": "yours"})
    assert approval.warning == "f has another name (a hard link), which keeps the old content."
    await tools.edit("f", "mine", "yours")
    assert other.read_text() == "mine\n"
    assert tools.editor.approval({"path": "f", "old_text": "yours", "new_text": "mine"}).warning == ""


async def test_a_file_that_was_not_read_is_changed_where_the_old_text_is_there_exactly_once(tools: Tools) -> None:
    path = tools.root / "f"
    path.write_text("one\ntwo  \ntwo\nthree \n")
    outcome = await tools.editor.call("f", "one", "1", more_edits=[Edit("three ", "3")])
    assert outcome.text == "[edited f: line 1; line 4]"
    assert path.read_text() == "1\ntwo  \ntwo\n3\n"
    why = "f was not read since the session was opened; read it first"
    for old in ("two", "two\ntwo", "missing"):
        with pytest.raises(ToolError, match=f"^{why}: old_text is not there exactly, once$") as raised:
            await tools.edit("f", old, "x")
        assert not raised.value.excerpt
    with pytest.raises(ToolError, match=f"^{why}$"):
        await tools.edit("f", "3", "4", everywhere=True)
    with pytest.raises(ToolError, match=f"^{why}$"):
        await tools.editor.call("f", "3", "4", more_edits=[Edit("1", "2", True)])
    with pytest.raises(ToolError, match=f"^{why}$"):
        await tools.writer.call("f", "all else is gone")
    assert path.read_text() == "1\ntwo  \ntwo\n3\n"


async def test_all_of_a_file_is_replaced_once_all_of_its_lines_were_shown(tools: Tools) -> None:
    path = tools.root / "f"
    path.write_text("".join(f"line {number}\n" for number in range(1, 101)))

    async def refused(lines: str) -> None:
        why = f"^f was read only in part: read {lines} too, or use edit_file$"
        with pytest.raises(ToolError, match=why) as raised:
            await tools.writer.call("f", "new\n")
        assert raised.value.asks_to_read

    await tools.reader.call("f", 1, 1)
    await refused("lines 2-100")
    await tools.reader.call("f", 41, 10)
    await tools.reader.call("f", 90)
    await refused("lines 2-40, 51-89")
    await tools.reader.call("f", 51, 39)
    await tools.reader.call("f", 3, 50)
    await refused("line 2")
    tools.files_read.forget()
    await tools.reader.call("f", 2, 1)
    tools.files_read.recall()
    await tools.writer.call("f", "new\n")
    await tools.edit("f", "new", "one\ntwo")
    await tools.writer.call("f", "three\nfour\n")
    path.write_text("three\nfive\n")
    await tools.reader.call("f", 2)
    await tools.edit("f", "five", "six\nseven")
    await refused("lines 1-3")


async def test_a_line_that_is_never_shown_whole_and_an_empty_file_can_be_replaced(tools: Tools) -> None:
    for content in ("", "x" * 2_000_000, "x" * 2_000_000 + "\n\n"):
        (tools.root / "f").write_text(content)
        for line in range(1, 2 + content.count("\n")):
            with suppress(ToolError):  # there is no line behind the last newline
                await tools.reader.call("f", line)
        await tools.writer.call("f", "new\n")


@given(st.integers(1, 12), st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), max_size=6))
def test_the_lines_that_were_not_shown(lines: int, pages: list[tuple[int, int]]) -> None:
    files_read, path, shown = FilesRead(), Path("/f"), set[int]()
    files_read.note_page(path, b"old", lines, 1, lines)
    for first, last in [(lines + 1, lines), *pages]:
        page = (first, min(last, lines))
        files_read.note_page(path, b"new", lines, *page)
        shown |= set(range(page[0], page[1] + 1))
    gaps = files_read.unseen(path)
    assert {line for first, last in gaps for line in range(first, last + 1)} == set(range(1, lines + 1)) - shown
    assert all(one[1] + 1 < other[0] for one, other in pairwise(gaps))
    files_read.note(path, b"new")
    files_read.note_page(path, b"new", lines, 1, 1)
    assert files_read.unseen(path) == [], "all was read before"


async def test_what_was_read_before_the_conversation_went_back_is_as_if_it_was_not(tools: Tools) -> None:
    (tools.root / "f").write_text("one\n")
    await tools.reader.call("f")
    tools.files_read.forget()
    await tools.edit("f", "one", "two")
    assert (tools.root / "f").read_text() == "two\n"
    with pytest.raises(ToolError, match=r"^f was read before the conversation went back; read it again$"):
        await tools.writer.call("f", "three")
    await tools.reader.call("f")
    await tools.writer.call("f", "three")
    assert (tools.root / "f").read_text() == "three"


async def test_what_was_read_counts_again_when_the_conversation_is_where_it_was(tools: Tools) -> None:
    for name in ("f", "g"):
        (tools.root / name).write_text("one\n")
        await tools.reader.call(name)
    tools.files_read.forget()
    tools.files_read.forget()
    (tools.root / "g").write_text("changed\n")
    tools.files_read.recall()
    tools.files_read.recall()
    await tools.writer.call("f", "two")
    with pytest.raises(ToolError, match=r"^g has changed since it was read; read it again$"):
        await tools.writer.call("g", "two")


async def test_what_the_person_saw_is_what_is_written(tools: Tools) -> None:
    path = tools.root / "f"
    path.write_text("one\ntwo\n")
    arguments = {"path": "f", "old_text": "one", "new_text": "1"}
    assert tools.editor.approval(arguments).diff.endswith("-one\n+1\n two")
    path.write_text("one\nanother\n")
    with pytest.raises(ToolError, match="f has changed just now; read it again"):
        await tools.editor.run(arguments)
    assert path.read_text() == "one\nanother\n"
    assert not (await tools.editor.run(arguments)).is_error


async def test_an_edit_that_the_person_refused_stands_in_the_way_of_no_other(tools: Tools) -> None:
    path = tools.root / "f"
    path.write_text("one\ntwo\n")
    tools.editor.approval({"path": "f", "old_text": "one", "new_text": "refused"})
    await tools.editor.run({"path": "f", "old_text": "two", "new_text": "2"})
    assert path.read_text() == "one\n2\n"


async def test_a_file_that_has_changed_since_it_was_read_is_read_again(tools: Tools) -> None:
    path = tools.root / "f"
    path.write_text("one\n")
    await tools.reader.call("f", 1, 1)
    facts = path.stat()
    path.write_text("ONE\n")
    # Of the same length, with the same time: only the content tells.
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    for attempt in (tools.edit("f", "ONE", "two"), tools.writer.call("f", "two")):
        with pytest.raises(ToolError, match="has changed since it was read; read it again"):
            await attempt
    assert path.read_text() == "ONE\n"
    await tools.reader.call("f")
    await tools.edit("f", "ONE", "two")
    path.unlink()
    # What is gone may be made anew; what another made meanwhile may not be written over.
    await tools.writer.call("f", "three")
    assert path.read_text() == "three"
    with pytest.raises(ToolError, match="there is no file gone; write_file creates one"):
        await tools.edit("gone", "a", "b")


class SavesMeanwhile(Recorder):
    """Another program saves the file when all is planned and nothing is written yet."""

    @contextmanager
    def edit(self, path: Path, content: bytes, tool: str, unsaved: bytes | None = None) -> Iterator[None]:
        path.write_text("mine\n")
        yield


async def test_what_is_saved_in_the_moment_before_the_change_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("one\n")
    editor = EditFile(Workspace(tmp_path), FilesRead(), SavesMeanwhile())
    with pytest.raises(ToolError, match="f has changed just now; read it again"):
        await editor.call("f", "one", "two")
    assert (tmp_path / "f").read_text() == "mine\n"


async def test_what_cannot_be_changed(tools: Tools) -> None:
    (tools.root / "binary").write_bytes(b"a\0b")
    (tools.root / "folder").mkdir()
    (tools.root / "large").write_bytes(b"x\n" * (MAX_CHANGED_BYTES // 2) + b"y")
    os.mkfifo(tools.root / "pipe")
    for name, words in (
        ("binary", "is a binary file"),
        ("folder", "is a directory"),
        ("large", "is too large to be changed"),
        ("pipe", "is not an ordinary file"),
        ("large/x", "cannot be written"),
        (".", "is a directory"),
    ):
        with pytest.raises(ToolError, match=words) as caught:
            await tools.writer.call(name, "x")
        assert "\n" not in str(caught.value)
    with pytest.raises(ToolError, match="holds a NUL"):
        await tools.writer.call("new", "a\0b")
    assert not (tools.root / "new").exists()


async def test_a_near_miss_in_a_file_that_is_not_utf_8_says_what_helps(tools: Tools) -> None:
    (tools.root / "f").write_bytes("name;price\ncafé;2,50\nthé;3\nplain;1\n".encode("cp1252"))
    await tools.reader.call("f")
    for old in ("café;2,50", "caf\ufffd;2,50", "name;price\ncafé;2,50", "zzzzzz"):
        with pytest.raises(ToolError, match="the file is not UTF-8") as caught:
            await tools.edit("f", old, "new")
        assert "read it again" not in str(caught.value)
    with pytest.raises(ToolError, match="line 4 is similar: plain;1; read it again"):
        await tools.edit("f", "plain;2", "new")
    # It says that text beside them can be replaced.
    await tools.edit("f", ";2,50", ";2,60")
    assert (tools.root / "f").read_bytes().decode("cp1252") == "name;price\ncafé;2,60\nthé;3\nplain;1\n"


async def test_no_utf_8_is_put_beside_bytes_of_another_encoding(tools: Tools) -> None:
    other, torn = "café;2\nplain;1\n".encode("cp1252"), "café;2\n".encode() + b"\xff\nplain;1\n"
    for name, content in (("other", other), ("torn", torn)):
        (tools.root / name).write_bytes(content)
        await tools.reader.call(name)
    with pytest.raises(ToolError, match="other is not UTF-8, so only ASCII text can be put into it; write_file"):
        await tools.edit("other", "plain;1", "naïve;1")
    assert (tools.root / "other").read_bytes() == other
    await tools.edit("torn", "plain;1", "naïve;1")
    assert (tools.root / "torn").read_bytes() == torn.replace(b"plain", "naïve".encode()), "UTF-8 with a wrong byte"
    await tools.writer.call("other", "café;2\nnaïve;1\n")
    assert (tools.root / "other").read_text("utf-8") == "café;2\nnaïve;1\n"


@pytest.mark.parametrize(
    ("text", "old", "words", "excerpt"),
    [
        (
            "def f():\n    return 1\n",
            "def f():\nreturn 1\n",
            "lines 1-2 differ from it only in indentation",
            "def f():\n    return 1",
        ),
        ("\tx = 1\n", "    x = 1", "lines 1-1 differ from it only in indentation", "\tx = 1"),
        ("a\nb\n\tc\nd\n", "b\nX\nd", "the closest is at line 2, where line 3 reads: c", "b\n\tc\nd"),
        ("a\nb", "b\nc", "the closest is at line 2, where line 3 reads: (the file's end)", "b"),
        (
            "x\n\tvalue = compute(1)\n",
            "y\nvalue = compute(2)",
            "line 2 is similar: value = compute(1); read it again",
            "x\n\tvalue = compute(1)",
        ),
        ("a\n", "something else entirely", "no line is similar; read it again", ""),
        ("a\n", "\n\n\n", "it is only white space", ""),
        ("a\n", "", "old_text is empty", ""),
    ],
)
async def test_a_near_miss_says_where_the_closest_lines_are_and_quotes_them(
    tools: Tools, text: str, old: str, words: str, excerpt: str
) -> None:
    (tools.root / "f").write_text(text)
    await tools.reader.call("f")
    with pytest.raises(ToolError) as caught:
        await tools.edit("f", old, "new")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.excerpt == excerpt
    assert (tools.root / "f").read_text() == text


async def test_the_model_gets_the_closest_lines_below_the_error_and_a_person_one_line(tools: Tools) -> None:
    (tools.root / "f").write_text("".join(f"\tline {number}\n" for number in range(40)))
    await tools.reader.call("f")
    old = "".join(f"line {number}\n" for number in range(30)) + "other\n"
    call = ToolCall("1", "edit_file", json.dumps({"path": "f", "old_text": old, "new_text": "x"}))
    outcome = await Toolbox([tools.editor]).run(call)
    first, *excerpt = outcome.text.split("\n")
    assert first == f"Error: {outcome.summary}"
    assert excerpt == [f"\tline {number}" for number in range(26, 31)]
    with pytest.raises(ToolError) as caught:
        Toolbox([tools.editor]).approval(call)
    assert caught.value.for_model() == outcome.text


async def test_a_near_miss_in_a_large_file_of_equal_lines_is_found(tools: Tools) -> None:
    (tools.root / "f").write_text("}\n" * 200_000 + "x\n")
    await tools.reader.call("f")
    with pytest.raises(ToolError, match="the closest is at line"):
        await tools.edit("f", "}\n" * 50 + "y", "new")


async def test_what_stands_for_a_key_never_takes_its_place(tools: Tools) -> None:
    (tools.root / ".env").write_text("A=1\nKEY=abc\n")
    await tools.reader.call(".env")
    for text in ("A=2\nKEY=[redacted]\n", "A=2\nKEY=[redacted OPENAI_API_KEY]\n"):
        with pytest.raises(ToolError, match="stands for a key that is not shown"):
            await tools.writer.call(".env", text)
    await tools.edit(".env", "A=1", "A=2")
    assert (tools.root / ".env").read_text() == "A=2\nKEY=abc\n"


async def test_an_approval_shows_what_will_really_happen_and_changes_nothing(tools: Tools) -> None:
    (tools.root / "f").write_text("one\n")
    await tools.reader.call("f")
    arguments = {"path": "./sub/../f", "old_text": "one", "new_text": "two"}
    approval = tools.editor.approval(arguments)
    assert approval.path == str(tools.root / "f")
    assert approval.diff == "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-one\n+two"
    assert approval.subject == "f"
    assert approval.warning == ""
    assert (tools.root / "f").read_text() == "one\n"
    assert tools.editor.needs(arguments) == "write"
    new = tools.writer.approval({"path": "new/x", "content": "a"})
    assert new.diff.endswith("+a\n\\ No newline at end of file")
    assert not (tools.root / "new").exists()
    for wrong in ({**arguments, "old_text": "three"}, {**arguments, "path": "../f"}):
        with pytest.raises(ToolError):
            tools.editor.approval(wrong)


async def test_an_approval_and_the_outcome_have_all_of_a_large_change(tools: Tools) -> None:
    content = "".join(f"line {number}\n" for number in range(6_000))
    assert tools.writer.approval({"path": "f", "content": content}).diff.count("\n+line") == 6_000
    assert (await tools.writer.call("f", content)).diff.count("\n+line") == 6_000


async def test_lone_surrogates_of_a_model_become_what_can_be_stored(tools: Tools) -> None:
    box = Toolbox([tools.writer])
    arguments = json.dumps({"path": "f", "content": "a\ud83d"})
    outcome = await box.run(ToolCall("1", "write_file", arguments))
    assert not outcome.is_error
    assert (tools.root / "f").read_text() == "a\ufffd"
    outcome.diff.encode()


class SmallModelsTools(Tools):
    """As a small model has them."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        workspace, files_read = Workspace(root), FilesRead()
        self.reader = ReadFile(workspace, files_read)
        self.editor = EditFile(workspace, files_read, is_small=lambda: True)

    async def put(self, name: str, code: str) -> ToolOutcome:
        return await self.editor.call(name, new_text=code)


@pytest.fixture
def small(tmp_path: Path) -> SmallModelsTools:
    return SmallModelsTools(tmp_path)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
async def test_a_small_model_gives_only_the_new_code(small: SmallModelsTools, end: str) -> None:
    text = end.join(["def f():", "    return 1", "", "", "def g():", "    return 2", ""])
    (small.root / "a.py").write_bytes(text.encode())
    await small.reader.call("a.py")
    outcome = await small.put("a.py", "def g():\n    return 3")
    assert (small.root / "a.py").read_bytes() == text.replace("2", "3").encode()
    assert outcome.text == "[edited a.py: g replaced]"
    assert outcome.summary == "+1 −1"
    # What it copies exactly is replaced exactly, as for any other model.
    assert (await small.edit("a.py", "return 3", "return 4")).text == "[edited a.py: line 6]"
    with pytest.raises(ToolError, match=r"there is no file b\.py; write_file creates one"):
        await small.put("b.py", "x = 1")
    (small.root / "c.py").write_text("x = 1\n")
    with pytest.raises(ToolError, match="was not read since the session was opened; read it first"):
        await small.put("c.py", "x = 2")


async def test_other_models_have_to_say_what_is_replaced(tools: Tools) -> None:
    (tools.root / "f").write_text("x = 1\n")
    await tools.reader.call("f")
    with pytest.raises(ToolError, match=r"missing argument old_text \(a string\)"):
        await tools.editor.call("f", new_text="x = 2")
    with pytest.raises(ToolError, match=r"missing argument new_text \(a string\)"):
        await tools.editor.call("f", "x = 1")
    assert tools.editor.parameters["required"] == ["path", "old_text", "new_text"]


async def test_lines_that_end_in_different_ways_are_left_alone(small: SmallModelsTools) -> None:
    (small.root / "a.py").write_bytes(b"x = 1\r\ny = 2\r\nz = 3\n")
    await small.reader.call("a.py")
    with pytest.raises(ToolError, match="end in different ways"):
        await small.put("a.py", "y = 3")
