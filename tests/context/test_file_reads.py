"""Which calls read or write which lines of a file: from arguments, never from prose."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.context.file_reads import PATH_KEYS, FileUse, arguments_of, file_use, file_uses, only_reads, path_of, texts_in
from nca.messages import Message, ToolCall
from tests.context.logs import history_of, logs
from tests.context.samples import assistant, call, calling, result, some, step, user


def use(name: str, **arguments: Any) -> FileUse | None:
    return file_use(call("a", name, **arguments))


@pytest.mark.parametrize("key", PATH_KEYS)
def test_the_path_comes_from_any_of_the_usual_arguments(key: str) -> None:
    assert use("read_file", **{key: " ./src//a/../b.py "}) == FileUse(0, "src/b.py", is_write=False)


def test_a_page_whose_lines_have_no_number_that_can_be_is_none() -> None:
    pages = [f"[a.py: lines 1-{last}; 3 in all]\nx" for last in ("2", "9" * 5_000)]
    log = [message for place, page in enumerate(pages) for message in step(f"c{place}", page, path="a.py")]
    assert [use.last_line for use in file_uses(history_of(log).entries)] == [2, None]


def test_arguments_of_any_depth_have_values() -> None:
    arguments: Any = ["last"]
    for depth in range(50_000):
        arguments = {"deeper": arguments, "depth": depth} if depth % 2 else [depth, arguments]
    values = list(texts_in(arguments))
    assert len(values) == 50_001
    assert values.count("last") == 1


@pytest.mark.parametrize(("path", "normal"), [("a\\b.py", "a/b.py"), ("/x/./y", "/x/y"), ("", ""), ("  ", "")])
def test_paths_are_normalised(path: str, normal: str) -> None:
    assert path_of({"path": path}) == normal


@pytest.mark.parametrize("name", ["read_file", "Read", "view", "view_file", "fs.read", "cat", "open_file", "readFile"])
def test_readers(name: str) -> None:
    found = use(name, path="a.py")
    assert found is not None
    assert not found.is_write


@pytest.mark.parametrize("name", ["write_file", "edit_file", "Edit", "apply_patch", "delete_file", "MultiEdit", "move"])
def test_writers(name: str) -> None:
    found = use(name, path="a.py")
    assert found is not None
    assert found.is_write


@pytest.mark.parametrize(
    ("name", "is_known"),
    [
        ("search_flights", True),
        ("getUser", True),
        ("mcp__shop__list_orders", True),
        ("get_brand_name", True),
        ("book_flight", False),
        ("search_and_book", False),
        ("search_and_replace", False),
        ("findAndModify", False),
        ("list.and.delete", False),
    ],
)
def test_a_tool_that_only_reads_is_known_by_its_name_unless_that_joins_two_actions(name: str, is_known: bool) -> None:
    assert only_reads(call("a", name, user="7")) is is_known


@pytest.mark.parametrize(
    ("command", "is_write"), [("view", False), ("create", True), ("str_replace", True), ("insert", True)]
)
@pytest.mark.parametrize("name", ["str_replace_editor", "str_replace_based_edit_tool", "text_editor"])
def test_an_editor_with_commands_reads_when_it_views(name: str, command: str, is_write: bool) -> None:
    if name == "text_editor" and command != "view":
        name = "str_replace_editor"
    found = use(name, command=command, path="a.py")
    assert found is not None
    assert found.is_write == is_write


@pytest.mark.parametrize(
    ("name", "arguments"), [("shell", {"command": "cat a.py"}), ("grep", {"path": "src"}), ("read_file", {"url": "x"})]
)
def test_other_tools_use_no_file(name: str, arguments: dict[str, Any]) -> None:
    assert use(name, **arguments) is None


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({}, (1, None)),
        ({"offset": 10}, (10, None)),
        ({"offset": 0, "limit": 5}, (1, 5)),
        ({"offset": 10, "limit": 20}, (10, 29)),
        ({"start_line": 3, "end_line": 9}, (3, 9)),
        ({"view_range": [5, 9]}, (5, 9)),
        ({"view_range": [5, -1]}, (5, None)),
        ({"view_range": ["x", None]}, (1, None)),
        ({"view_range": [1]}, (1, None)),
        ({"limit": True}, (1, None)),
    ],
)
def test_ranges(arguments: dict[str, Any], lines: tuple[int, int | None]) -> None:
    found = use("view", path="a.py", **arguments)
    assert found is not None
    assert (found.first_line, found.last_line) == lines


Lines = tuple[int, int | None]
spans = st.tuples(st.integers(1, 9), st.one_of(st.none(), st.integers(1, 9))).filter(lambda s: not s[1] or s[0] <= s[1])


@given(spans, spans)
def test_a_read_covers_another_where_it_shows_all_its_lines(one: Lines, two: Lines) -> None:
    def lines(span: Lines) -> set[int]:
        return set(range(span[0], (span[1] or 99) + 1))

    first, second = FileUse(1, "a", False, *one), FileUse(2, "a", False, *two)
    assert first.covers(second) == (lines(one) >= lines(two))


@pytest.mark.parametrize("arguments", ["", "null", "[]", "{", "[" * 5_000, '{"path": 1e400}'])
def test_arguments_that_are_no_object_are_empty(arguments: str) -> None:
    assert arguments_of(ToolCall("a", "read_file", arguments)) == {}


@some
@given(logs())
def test_uses_stand_where_they_are_said_to(messages: list[Message]) -> None:
    history = history_of(messages)
    for found in file_uses(history.entries):
        message = history.message(found.seq)
        assert message.role == ("assistant" if found.is_write else "tool")
        assert found.is_write or not message.is_error


def test_failed_reads_and_prose_are_no_reads() -> None:
    log = [
        user("I read src/a.py"),
        assistant('{"path": "src/a.py"}'),
        *step("a", "no such file", path="src/a.py", is_error=True),
        *step("b", "text", path="src/a.py"),
        calling(call("c", "write_file", path="src/a.py", content="x")),
        result("c"),
        result("b", "again"),
    ]
    assert list(file_uses(history_of(log).entries)) == [
        FileUse(6, "src/a.py", is_write=False),
        FileUse(7, "src/a.py", is_write=True),
    ]


@pytest.mark.parametrize(
    ("text", "lines", "is_partial"),
    [
        ("all of it", (1, None), False),
        ("[a.py: lines 1-2000 of 4,310; continue with offset=2001]\ntext", (1, 2_000), False),
        ("[a.py: lines 1-3; line 3 is longer than shown; the rest of it was left out]\ntext", (1, 3), True),
        ("text\n[Output truncated from 90000 bytes to 51200 bytes]", (1, None), True),
        ("text\n[File truncated from 90000 bytes to 51200 bytes]", (1, None), True),
    ],
)
def test_a_result_that_says_what_it_shows_is_believed(text: str, lines: Lines, is_partial: bool) -> None:
    (found,) = file_uses(history_of([user(), *step("a", text, path="a.py")]).entries)
    assert (found.first_line, found.last_line, found.is_partial) == (*lines, is_partial)


def test_a_partial_read_covers_only_the_same_question() -> None:
    cut = FileUse(9, "a", False, is_partial=True)
    assert cut.covers(FileUse(1, "a", False))
    assert not cut.covers(FileUse(1, "a", False, 5, 9))
