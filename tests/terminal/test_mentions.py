"""Files behind an @."""

from __future__ import annotations

from pathlib import Path

import pytest

from nca.terminal.mentions import FileFinder, mention_before


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in (
        "README.md",
        "src/parse.py",
        "src/deep/er/parse_more.py",
        ".git/config",
        "with space.txt",
        "docs/p.md",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    return tmp_path


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
    ],
)
def test_what_is_a_mention(text: str, mention: str | None) -> None:
    assert mention_before(text) == mention


def test_beginnings_come_first_then_names_then_parts_then_letters(project: Path) -> None:
    finder = FileFinder(project)
    assert finder.find("src/p")[0] == "src/parse.py"
    assert finder.find("parse") == ["src/parse.py", "src/deep/er/parse_more.py"]
    assert finder.find("RSE_M") == ["src/deep/er/parse_more.py"]
    assert "src/parse.py" in finder.find("spy")
    assert finder.find("zzz") == []


def test_what_is_left_out_and_what_is_quoted(project: Path) -> None:
    found = FileFinder(project).find("")
    assert "README.md" in found
    assert not any(".git/" in path for path in found)
    assert '"with space.txt"' in found
    assert FileFinder(project).find('"with') == ['"with space.txt"']


def test_paths_outside_are_completed_by_folder(project: Path) -> None:
    finder = FileFinder(project / "src")
    assert f"{project}/README.md" in finder.find(f"{project}/READ")
    assert f"{project}/docs/" in finder.find(f"{project}/do")
    assert finder.find("/no/such/folder/x") == []
