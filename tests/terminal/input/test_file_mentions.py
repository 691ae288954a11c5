"""`@path` while it is typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from nca.agent.mentions import mentioned
from nca.terminal.input.file_finder import dropped_files, mention_before, written
from nca.words import words


@pytest.mark.parametrize(
    ("text", "mention"),
    [
        ("@", ""),
        ("look at @src/pa", "src/pa"),
        ("two\n@x", "x"),
        ("a@b", None),
        ("@a b", None),
        ("", None),
        ('@"with sp', '"with sp'),
        ('@"done" ', None),
        ("x " * 100_000 + "@end", "end"),
    ],
)
def test_what_is_a_mention(text: str, mention: str | None) -> None:
    assert mention_before(text) == mention


@pytest.mark.parametrize(
    "name", ["plain.py", "a b.txt", "it's;(odd).md", "what?", "naïve.txt", "日本.md", "~home", "x..."]
)
def test_what_is_written_means_the_file(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("x")
    assert mentioned(words(f"@{written(name)} and so on"), tmp_path) == [tmp_path / name]


def test_a_folder_in_quotes_can_be_typed_on() -> None:
    assert written("my dir/") == '"my dir/'
    assert written("src/") == "src/"


def test_a_dragged_file_is_a_mention(tmp_path: Path) -> None:
    picture, plain = tmp_path / "my picture.png", tmp_path / "a.py"
    for path in (picture, plain, tmp_path / 'q"uote'):
        path.write_text("x")
    escaped = str(picture).replace(" ", "\\ ")
    for pasted in (f"'{picture}' ", f'"{picture}"', escaped, f"file://{str(picture).replace(' ', '%20')}"):
        assert dropped_files(pasted, tmp_path) == '@"my picture.png" '
    assert dropped_files(f"{escaped} {plain}", tmp_path / "elsewhere") == f'@"{picture}" @{plain} '
    for other in (
        "words",
        f"look at {plain}",
        f"{plain} is wrong",
        str(tmp_path),
        str(tmp_path / "missing"),
        f"{plain}\n{plain}",
        "'/open quote",
        "/" * 20_000,
        str(tmp_path / 'q"uote'),
        "/\0",
    ):
        assert dropped_files(other, tmp_path) is None
