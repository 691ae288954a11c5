"""grep and glob on real files: what they find, what they leave out, and that they always end."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.tools.files.workspace import Workspace
from nca.tools.grep_and_glob import MAX_FILES, Glob, Grep, _matches, hidden_note, share_out
from nca.tools.programs import find_program
from nca.tools.search_worker import SearchRequest, search
from nca.tools.tool import ToolError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {
        "a.py": "import os\nneedle = 1\n",
        "b.ts": "const needle = 2\n",
        "src/c.py": "x\ny\nneedle\n",
        "src/deep/d.tsx": "needle\n",
        "node_modules/x.js": "needle\n",
        ".git/config": "needle\n",
        "build/out.py": "needle\n",
        "src/keep.log": "needle\n",
        "src/drop.log": "needle\n",
        "src/local/e.py": "needle\n",
        ".gitignore": "build/\n*.log\n",
        "src/.gitignore": "!keep.log\n/local\n\\\n!\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


async def grep(root: Path, pattern: str, path: str = ".", glob: str = "", max_results: int = 100) -> str:
    return (await Grep(Workspace(root)).call(pattern, path, glob, max_results)).text


def found(text: str) -> list[str]:
    return [line.split(":")[0] for line in text.splitlines()]


async def test_lines_with_path_and_number_and_gitignore_honoured(root: Path) -> None:
    text = await grep(root, r"needle\b")
    assert text.splitlines() == [
        "a.py:2:needle = 1",
        "b.ts:1:const needle = 2",
        "src/c.py:3:needle",
        "src/keep.log:1:needle",
        "src/deep/d.tsx:1:needle",
    ]
    assert (await Grep(Workspace(root)).call("needle")).summary == "5 matches"
    assert (await Grep(Workspace(root)).call("import")).summary == "1 match"


async def test_a_folder_named_as_the_ignore_file_ignores_nothing(root: Path) -> None:
    (root / "src/.gitignore").unlink()
    (root / "src/.gitignore").mkdir()
    assert found(await grep(root, "needle", "src")) == ["src/c.py", "src/deep/d.tsx", "src/local/e.py"]


async def test_what_is_named_itself_is_searched_even_if_ignored(root: Path) -> None:
    assert found(await grep(root, "needle", "build")) == ["build/out.py"]
    assert found(await grep(root, "needle", "build/out.py")) == ["build/out.py"]
    assert found(await grep(root, "needle", "src")) == ["src/c.py", "src/keep.log", "src/deep/d.tsx"]
    assert found(await grep(root, "needle", "src/local")) == ["src/local/e.py"]


@pytest.mark.parametrize(
    ("glob", "names"),
    [
        ("*.py", ["a.py", "src/c.py"]),
        ("src/**/*.tsx", ["src/deep/d.tsx"]),
        ("*.{ts,tsx}", ["b.ts", "src/deep/d.tsx"]),
        ("./a.*", ["a.py"]),
    ],
)
async def test_globs(root: Path, glob: str, names: list[str]) -> None:
    assert found(await grep(root, "needle", glob=glob)) == names


async def test_results_are_bounded_and_say_so(root: Path) -> None:
    text = await grep(root, "needle", max_results=2)
    hidden = "src/c.py 1, src/keep.log 1, src/deep/d.tsx 1"
    assert text.endswith(f"\n[3 more matches not shown: {hidden}; search one file, or raise max_results]")
    assert len(text.splitlines()) == 3
    assert "not shown" not in await grep(root, "needle", max_results=5)
    assert await grep(root, "nowhere at all") == "[no matches in 7 files]"


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(", "invalid pattern at column 1: missing ), unterminated subpattern"),
        ("a**", "invalid pattern at column 3: multiple repeat"),
        ("", "the pattern is empty"),
        ("(" * 5000 + ")" * 5000, "invalid pattern"),
        ("a{99999999999999}", "invalid pattern: too large"),
    ],
)
async def test_a_bad_pattern_is_one_line(root: Path, pattern: str, words: str) -> None:
    with pytest.raises(ToolError) as caught:
        await grep(root, pattern)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_a_bad_path_is_one_line(root: Path) -> None:
    with pytest.raises(ToolError, match="no file or directory nothing"):
        await grep(root, "x", "nothing")
    with pytest.raises(ToolError, match="outside of the working directory"):
        await grep(root, "x", "..")
    with pytest.raises(ToolError):
        await grep(root, "x", glob="!")


async def test_a_pattern_that_would_take_years_is_stopped(root: Path) -> None:
    (root / "z.txt").write_text("a" * 1000 + "\n")
    (root / "y.txt").write_text("aab\n")
    outcome = await Grep(Workspace(root), deadline_seconds=0.1).call("(a+)+b", glob="[yz].txt")
    assert outcome.text.startswith("y.txt:1:aab\n[the search took too long and was stopped")


async def test_a_cancelled_search_leaves_no_process(root: Path) -> None:
    (root / "z.txt").write_text("a" * 1000 + "\n")
    before = children()
    task = asyncio.create_task(grep(root, "(a+)+$x", "z.txt"))
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    # A child that was left behind would be reported here, or as an unclosed transport.
    assert children() <= before


def children() -> set[str]:
    """The processes that this one has started, as far as the system tells."""
    return {pid for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()}


async def test_a_file_with_many_matches_hides_no_other_file(root: Path) -> None:
    (root / "big.py").write_text("needle\n" * 500)
    (root / "src/some.py").write_text("needle\n" * 30)
    (root / "src/.gitignore").write_text("!keep.log\n/local\n")
    for program in {None, RIPGREP}:
        outcome = await Grep(Workspace(root), Path(program) if program else None).call("needle")
        *lines, note = outcome.text.splitlines()
        assert sorted(set(found("\n".join(lines)))) == [
            "a.py",
            "b.ts",
            "big.py",
            "src/c.py",
            "src/deep/d.tsx",
            "src/keep.log",
            "src/some.py",
        ]
        assert len(lines) == 100
        assert note == "[435 more matches not shown: big.py 435; search one file, or raise max_results]"
        assert "src/some.py:30:needle" in lines
        assert outcome.summary == "100 of 535 matches"
        outcome = await Grep(Workspace(root), Path(program) if program else None).call("needle", max_results=20)
        assert "[at least 180 more matches not shown: big.py" in outcome.text
        assert outcome.summary == "20 of at least 200 matches"


def test_a_search_that_stops_with_as_many_as_may_be_shown_says_that_there_may_be_more() -> None:
    outcome = _matches([{"path": "a.py", "line": 1, "text": "needle"}, {"end": "results", "hidden": {}}])
    assert outcome.text == "a.py:1:needle\n[there may be more matches; narrow the search or raise max_results]"


@given(st.lists(st.integers(1, 40), max_size=30), st.integers(1, 100))
def test_no_file_shows_less_so_that_another_shows_more(counts: list[int], most: int) -> None:
    files = [str(place) for place, count in enumerate(counts) for _ in range(count)]
    chosen, hidden = share_out(files, most)
    assert len(chosen) == min(most, len(files))
    assert chosen == sorted(set(chosen))
    shown = Counter(files[place] for place in chosen)
    assert {file: shown[file] + hidden.get(file, 0) for file in set(files)} == Counter(files)
    fullest = max(shown.values(), default=0)
    assert all(shown[file] >= fullest - 1 for file in hidden)
    assert all(files[place] != files[place - 1] or place - 1 in chosen for place in chosen if place)


async def test_weird_files(root: Path) -> None:
    (root / "binary").write_bytes(b"needle\0")
    (root / "latin").write_bytes(b"caf\xe9 needle\r\n")
    (root / "long").write_bytes(b"needle" + b"x" * 5_000_000 + b"needle\nneedle\n")
    (root / "late").write_text("x" * 2500 + "needle\n")
    (root / "middle").write_text("x" * 1000 + "needle" + "x" * 500 + "\n")
    (root / os.fsdecode(b"n\xe9")).write_text("needle")
    (root / "link").symlink_to(root / "a.py")
    (root / "loop").symlink_to(root)
    os.mkfifo(root / "pipe")
    lines = (await grep(root, "needle", max_results=50)).splitlines()
    assert "latin:1:caf\ufffd needle" in lines
    assert "long:2:needle" in lines
    assert "n\\udce9:1:needle" in lines
    assert not any(line.startswith(("binary", "link", "loop", "late", "pipe")) for line in lines)
    (middle,) = [line for line in lines if line.startswith("middle:1:…")]
    assert "needle" in middle
    assert len(middle) < 330
    assert lines[-1] == "[2 long lines were searched only in their first 2,000 characters]"


async def test_without_any_match_a_stopped_search_is_an_error(root: Path) -> None:
    with pytest.raises(ToolError, match="took too long"):
        await Grep(Workspace(root), deadline_seconds=-1.0).call("needle")


def test_the_search_stops_by_itself_at_its_deadline(root: Path) -> None:
    records = list(search(SearchRequest(str(root), ".", "needle", "", 100, -1.0)))
    assert records == [{"end": "deadline", "files": 1, "long_lines": 0}]


def test_the_search_in_this_process_is_the_same(root: Path) -> None:
    records = list(search(SearchRequest(str(root), "src", "needle", "*.py", 100, 60.0)))
    assert records == [
        {"path": "src/c.py", "line": 3, "text": "needle"},
        {"end": "done", "files": 1, "long_lines": 0},
    ]


async def test_the_search_gets_no_keys_and_nothing_of_the_project_to_import(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("pathspec.py", "json.py", "re.py", "sitecustomize.py"):
        (root / name).write_text(f"open({str(root / 'imported')!r}, 'w')\n")
    monkeypatch.setenv("PYTHONPATH", str(root))
    monkeypatch.setenv("PYTHONSTARTUP", str(root / "json.py"))
    monkeypatch.chdir(root)
    assert found(await grep(root, "needle", "a.py")) == ["a.py"]
    assert not (root / "imported").exists()


async def glob(root: Path, pattern: str, path: str = ".") -> list[str]:
    return (await Glob(Workspace(root)).call(pattern, path)).text.splitlines()


async def test_glob_finds_the_newest_first(root: Path) -> None:
    for number, name in enumerate(("src/c.py", "a.py", "b.ts")):
        os.utime(root / name, (1_000 + number, 1_000 + number))
    assert await glob(root, "*.py") == ["a.py", "src/c.py"]
    assert await glob(root, "*.{py,ts}") == ["b.ts", "a.py", "src/c.py"]
    assert await glob(root, "deep/*", "src") == ["src/deep/d.tsx"]
    assert await glob(root, "*.py", "build") == ["build/out.py"]
    assert await glob(root, "a.py", "a.py") == ["a.py"]
    assert await glob(root, "*.nothing") == ["[no file matches *.nothing]"]
    outcome = await Glob(Workspace(root)).call("*.py")
    assert outcome.summary == "2 files"
    assert Glob(Workspace(root)).summarize({"pattern": "*.py"}) == "glob *.py in ."


async def test_glob_is_bounded_and_says_so(root: Path) -> None:
    for number in range(MAX_FILES + 5):
        (root / f"{number}.txt").touch()
    lines = await glob(root, "*.txt")
    assert len(lines) == MAX_FILES + 1
    assert lines[-1] == "[5 older files are not shown; narrow the pattern]"
    with pytest.raises(ToolError, match="is not a pattern"):
        await glob(root, "!x")
    with pytest.raises(ToolError, match="no file or directory"):
        await glob(root, "*", "nothing")
    with pytest.raises(ToolError, match="took too long"):
        await Glob(Workspace(root), deadline_seconds=-1.0).call("*.txt")


RIPGREP = shutil.which("rg", path=f"{os.environ.get('PATH', '')}{os.pathsep}{Path(sys.executable).parent}")


@pytest.mark.skipif(RIPGREP is None, reason="ripgrep is not installed (pip install ripgrep)")
@pytest.mark.parametrize(
    ("pattern", "path", "glob"),
    [
        ("needle", ".", ""),
        (r"needle\b", ".", "*.py"),
        ("needle", ".", "*.{ts,tsx}"),
        ("needle", ".", "src/**/*.tsx"),
        ("needle", "src", ""),
        ("needle", "build", ""),
        ("needle", "a.py", ""),
        ("(?i)NEEDLE", ".", ""),
        (r"^needle$", ".", ""),
        (r"(?<=const )needle", ".", ""),
        (r"(n)eedle.*\1?", ".", ""),
        ("nowhere", ".", ""),
    ],
)
@pytest.mark.parametrize("is_repository", [True, False])
async def test_ripgrep_finds_the_same(root: Path, pattern: str, path: str, glob: str, is_repository: bool) -> None:
    (root / ".hidden").write_text("needle\n")
    (root / "binary").write_bytes(b"needle\0")
    (root / "windows").write_bytes(b"needle\r\n")
    (root / "latin").write_bytes(b"caf\xe9 needle\n")
    (root / "wide").write_text("x" * 1_500 + "needle" + "y" * 300 + "\n")
    (root / ".ignore").write_text("a.py\n")
    (root / os.fsdecode(b"n\xe9")).write_text("needle")
    (root.parent / ".gitignore").write_text("*\n")
    (root / "src/.gitignore").write_text("!keep.log\n/local\n")
    if not is_repository:
        shutil.rmtree(root / ".git")
    assert RIPGREP is not None
    workspace = Workspace(root)
    one = await Grep(workspace).call(pattern, path, glob)
    other = await Grep(workspace, Path(RIPGREP)).call(pattern, path, glob)
    assert sorted(other.text.splitlines()) == sorted(one.text.splitlines()) or "[no matches" in one.text
    assert other.summary == one.summary


@pytest.mark.skipif(RIPGREP is None, reason="ripgrep is not installed (pip install ripgrep)")
async def test_ripgrep_is_bounded_and_a_long_line_is_shown_around_its_match(root: Path) -> None:
    assert RIPGREP is not None
    tool = Grep(Workspace(root), Path(RIPGREP))
    (root / "long").write_bytes(b"a" * 3_000_000 + b"NEEDLE" + b"b" * 3_000_000 + b"\nNEEDLE\n")
    (first, second) = (await tool.call("NEEDLE", "long")).text.splitlines()
    assert first.startswith("long:1:…a")
    assert "NEEDLE" in first
    assert len(first) < 320
    assert second == "long:2:NEEDLE"
    text = (await tool.call("needle", max_results=2)).text
    assert text.splitlines()[-1].startswith("[5 more matches not shown: src/c.py 1, ")
    with pytest.raises(ToolError, match="invalid pattern"):
        await tool.call("(")
    with pytest.raises(ToolError, match="took too long"):
        await Grep(Workspace(root), Path(RIPGREP), deadline_seconds=0.0).call("needle")


async def test_a_program_that_is_no_ripgrep_is_not_missed(root: Path) -> None:
    for program in (Path("/nowhere/rg"), Path(sys.executable), root / "a.py"):
        assert found((await Grep(Workspace(root), program).call("needle", "a.py")).text) == ["a.py"]


def test_only_the_persons_own_ripgrep_is_used(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = root / "bin" / "rg"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert find_program("rg", str(program.parent), outside=root) is None
    assert find_program("rg", str(program.parent), outside=root / "src") == program
    monkeypatch.chdir(program.parent)
    for path in ("", ".", "../bin"):
        assert find_program("rg", path, outside=root / "src") is None


@given(st.lists(st.integers(1, 50), min_size=1, max_size=12), st.booleans())
def test_of_what_is_not_shown_the_files_with_the_most_are_named(counts: list[int], is_all: bool) -> None:
    said = hidden_note({f"{place}.py": count for place, count in enumerate(counts)}, is_all=is_all)
    named = [int(count) for count in re.findall(r"\.py (\d+)", said)]
    assert named == sorted(counts, reverse=True)[: len(named)]
    assert len(named) == min(5, len(counts))
    assert ("at least" in said) != is_all
