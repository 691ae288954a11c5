"""A settings file as a document: the line of each key, the place of each mistake, its limits, values in a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nca.config.document import MAX_BYTES, MAX_DEPTH, leaves, read_document, shown_name, shown_path, shown_value
from nca.errors import ConfigError

TEXT = """\
top = 1

[context]
auto = "off"
"quoted name" = 2
prune.keep_results = 3

  [ models . "a.b" ]
name = 'x'

[[hooks]]
event = "one"
[[hooks]]
event = "two"
[context.more]
deep = true
"""
LINES = {
    ("top",): 1,
    ("context",): 3,
    ("context", "auto"): 4,
    ("context", "quoted name"): 5,
    ("context", "prune", "keep_results"): 6,
    ("models", "a.b"): 8,
    ("models", "a.b", "name"): 9,
    ("hooks",): 11,
    ("hooks", "1"): 11,
    ("hooks", "1", "event"): 12,
    ("hooks", "2"): 13,
    ("hooks", "2", "event"): 14,
    ("context", "more"): 15,
    ("context", "more", "deep"): 16,
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def test_each_key_has_the_line_of_its_own_and_of_the_nearest_table_around_it(file: Path) -> None:
    file.write_text(TEXT)
    document = read_document(file)
    assert document is not None
    assert dict(document.lines) == LINES
    for path, line in LINES.items():
        assert document.place(path) == f"{file}:{line}"
    assert document.place(("context", "prune", "other")) == f"{file}:3"
    assert document.place(("hooks",), "2", "other") == f"{file}:13"
    assert document.place(("nothing",)) == str(file)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[context\n", ":1:9: Expected ']' at the end of a table declaration."),
        ("a = 1\nb = ?\n", ":2:5: Invalid value."),
        ("a = 'x", ':1:7: Expected "\'" at the end of the file.'),
        ("a = 1\nb = 'x", ':2:7: Expected "\'" at the end of the file.'),
        ("a = 1\nb =", ":2:4: Invalid value at the end of the file."),
    ],
)
def test_a_mistake_has_its_line_and_column_also_at_the_end(file: Path, text: str, place: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError) as refused:
        read_document(file)
    assert refused.value.message == f"{file}{place}"


@pytest.mark.parametrize(("size", "is_read"), [(MAX_BYTES - 1, True), (MAX_BYTES, True), (MAX_BYTES + 1, False)])
def test_a_file_is_read_up_to_the_limit(file: Path, size: int, is_read: bool) -> None:
    file.write_bytes(b"#" * size)
    if is_read:
        document = read_document(file)
        assert document is not None
        assert document.data == {}
        return
    with pytest.raises(ConfigError, match="larger than 1 MiB"):
        read_document(file)


def test_bytes_that_are_no_text_are_counted_from_1(file: Path) -> None:
    file.write_bytes(b"a = 1\n\xff")
    with pytest.raises(ConfigError, match=r"not UTF-8 text \(byte 7\)"):
        read_document(file)


def test_no_file_is_no_document(file: Path) -> None:
    assert read_document(file) is None
    file.write_text("")
    assert read_document(file / "below") is None


def nested(depth: int) -> dict[str, Any]:
    return {"a": nested(depth - 1)} if depth else {"a": 1}


def test_leaves_are_values_empty_tables_and_tables_that_count_as_one(file: Path) -> None:
    data = {"a": {"b": 1, "c": {}, "d": {"e": 2}}, "f": [{"g": 3}]}
    assert list(leaves(data, file)) == [(("a", "b"), 1), (("a", "c"), {}), (("a", "d", "e"), 2), (("f",), [{"g": 3}])]
    assert (("a", "d"), {"e": 2}) in list(leaves(data, file, whole=[("a", "d")]))
    assert [len(path) for path, _ in leaves(nested(MAX_DEPTH - 1), file)] == [MAX_DEPTH]
    with pytest.raises(ConfigError, match="nested too deeply"):
        list(leaves(nested(MAX_DEPTH), file))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (True, "true"),
        (False, "false"),
        (1, "1"),
        ("x", "'x'"),
        ("é", "'é'"),
        ("\x1b", "'\\x1b'"),
        ([1, "a"], "[1, 'a']"),
        ("x" * 78, "'" + "x" * 78 + "'"),
        ("x" * 79, "'" + "x" * 78 + "…"),
    ],
)
def test_a_refused_value_is_one_short_line(value: Any, shown: str) -> None:
    assert shown_value(value) == shown


def test_a_number_of_too_many_digits_is_not_shown() -> None:
    assert shown_value(10**5_000) == "(too long to show)"


@pytest.mark.parametrize(
    ("name", "shown"),
    [("a", "a"), ("x" * 80, "x" * 80), ("x" * 81, "x" * 79 + "…"), ("a\nb", "a\\nb"), ("é", "é")],
)
def test_a_name_is_cut_and_safe_to_print(name: str, shown: str) -> None:
    assert shown_name(name) == shown
    assert shown_path(Path(name)) == (name if name.isprintable() else shown)
