"""Finding files for `@`."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from nca.terminal.input.file_finder import FileFinder
from nca.tools.search_worker import walk


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in (
        "README.md",
        "src/parse.py",
        "src/deep/er/parse_more.py",
        "src/trace.log",
        ".git/config",
        ".env",
        ".github/workflows/ci.yml",
        "build/parse.o",
        "with space.txt",
        "my dir/inner.txt",
        "docs/p.md",
        "naïve.txt",
        "bad\x1b[31mname",
        'q"uote',
        "hidden\u202eorder",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    (tmp_path / ".gitignore").write_text("build/\n")
    (tmp_path / "src/.gitignore").write_text("*.log\n")
    (tmp_path / "LINK.md").symlink_to("README.md")
    return tmp_path


def test_beginnings_come_first_then_names_then_parts_then_letters(project: Path) -> None:
    finder = FileFinder(project)
    assert finder.find("src/p") == ["src/parse.py", "src/deep/", "src/deep/er/", "src/deep/er/parse_more.py"]
    assert finder.find("parse") == ["src/parse.py", "src/deep/er/parse_more.py"]
    assert finder.find("RSE_M") == ["src/deep/er/parse_more.py"]
    assert "src/parse.py" in finder.find("spy")
    assert finder.find("src") == ["src/", "src/deep/", "src/parse.py", "src/deep/er/", "src/deep/er/parse_more.py"]
    assert finder.find("zzz") == []


def test_the_same_letters_in_another_order_of_typing_find_the_same(project: Path) -> None:
    finder = FileFinder(project)
    grown = [finder.find("parse_more"[:length]) for length in range(1, 11)]
    assert grown == [FileFinder(project).find("parse_more"[:length]) for length in range(1, 11)]
    assert finder.find(".g") == FileFinder(project).find(".g")


def test_what_is_left_out_and_what_is_quoted(project: Path) -> None:
    found = FileFinder(project).find("")
    assert found[:6] == ["docs/", '"my dir/', "naïve.txt", "README.md", "src/", '"with space.txt"']
    for name in (".git", ".env", "build", "trace", "bad", "uote", "order"):
        assert not any(name in path for path in found)
    assert FileFinder(project).find('"with') == ['"with space.txt"']
    assert FileFinder(project).find('"my dir/') == ['"my dir/inner.txt"']
    assert FileFinder(project).find("nai\u0308ve") == ["naïve.txt"]


def test_names_with_a_dot_are_for_who_types_the_dot(project: Path) -> None:
    finder = FileFinder(project)
    assert ".env" in finder.find(".e")
    assert finder.find("env") == []
    assert finder.find(".github/")[0] == ".github/workflows/"
    assert ".git/" not in finder.find(".git")


def test_what_the_walk_leaves_out_is_completed_by_its_beginning(project: Path) -> None:
    finder = FileFinder(project)
    assert finder.find("LIN")[0] == "LINK.md"
    assert finder.find("build/")[0] == "build/parse.o"
    assert finder.find("bu")[0] == "build/"


def test_paths_outside_are_completed_by_folder(project: Path) -> None:
    finder = FileFinder(project / "src")
    assert f"{project}/README.md" in finder.find(f"{project}/READ")
    assert f"{project}/docs/" in finder.find(f"{project}/do")
    assert finder.find(f"{project}/")[0] == f"{project}/LINK.md"
    assert f"{project}/.env" in finder.find(f"{project}/.e")
    assert finder.find("../READ") == []
    for nothing in ("/no/such/folder/x", "~nobody-of-this-name/x", "/\0/x", "/" + "x" * 5_000 + "/y"):
        assert finder.find(nothing) == []
    assert FileFinder(project).find("..") == ["../"]


def test_a_tree_of_any_size_is_walked_to_a_bound(tmp_path: Path) -> None:
    for folder in ("a", "b/deep"):
        (tmp_path / folder).mkdir(parents=True)
        for number in range(25):
            (tmp_path / folder / f"{number:02}.txt").touch()
    finder = FileFinder(tmp_path, max_files=30)
    assert len(finder.find("a/")) == 25
    assert finder.find("deep/24") == []


def test_the_nearest_files_come_first(project: Path) -> None:
    names = [found.name for found in walk(str(project), ".", nearest_first=True)]
    assert [name.count("/") for name in names] == sorted(name.count("/") for name in names)
    assert sorted(names) == sorted(found.name for found in walk(str(project), "."))


def test_new_files_are_seen_and_an_unreadable_folder_is_none(project: Path) -> None:
    finder = FileFinder(project)
    assert finder.find("later") == []
    (project / "later.txt").touch()
    assert finder.find("later.t") == ["later.txt"]
    assert FileFinder(project / "missing").find("") == []


async def test_the_event_loop_goes_on_while_files_are_looked_for(project: Path) -> None:
    os.mkfifo(project / "pipe")
    finder = FileFinder(project)
    first, second = await asyncio.gather(finder.find_soon("src/p"), finder.find_soon("READ"))
    assert first[0] == "src/parse.py"
    assert second == ["README.md"]
    asked = asyncio.create_task(finder.find_soon("parse"))
    await asyncio.sleep(0)
    asked.cancel()
    assert (await finder.find_soon("parse"))[0] == "src/parse.py"


def test_who_does_not_wait_gets_nothing(project: Path) -> None:
    finder = FileFinder(project)
    with finder._ranking:  # A slow search: without this one, a quick thread may have the answer in time.
        assert finder.find("src/p", wait_seconds=0) == []
    assert finder.find("src/p") != []
