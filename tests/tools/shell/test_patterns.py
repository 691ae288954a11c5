"""Patterns in commands: nca finds the names that bash finds, and nothing but them is judged and run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from nca.config.schema import ToolSettings
from nca.context.admission import Limits
from nca.tools.files.reading_rules import FilesRead
from nca.tools.files.workspace import Workspace
from nca.tools.shell.command_words import plain_words
from nca.tools.shell.known_commands import read_only_argv
from nca.tools.shell.patterns import without_patterns
from nca.tools.shell.runner import CommandRunner
from nca.tools.shell.tool import Shell

NAMES = (
    "a",
    "ab",
    "a b",
    "aab",
    "b.a",
    "-b",
    "--a=b",
    "-",
    ".a",
    "a'b",
    "*",
    "a*",
    "[a]",
    "a\\b",
    '"',
    "~",
    "=a",
    "Ab",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose folder `a` has such names, and `b` a folder and a link out of the project."""
    folder = tmp_path_factory.mktemp("patterns").resolve() / "project"
    (folder / "a").mkdir(parents=True)
    (folder / "b" / "a").mkdir(parents=True)
    for name in NAMES:
        (folder / "a" / name).write_text("inside\n")
    (folder.parent / "secret").write_text("secret\n")
    (folder / "b" / "link").symlink_to("../../secret")
    return folder


def named(command: str, root: Path, folder: str = "") -> str:
    return without_patterns(command, workspace=Workspace(root), directory=root / folder)


def argv(command: str, root: Path) -> tuple[str, ...] | None:
    return read_only_argv(command, workspace=Workspace(root), directory=root, environment={"PATH": os.environ["PATH"]})


@given(
    st.lists(st.text(st.sampled_from("aabb*** -./='\"[]?~!\\"), max_size=7), max_size=3),
    st.sampled_from([("", "a/"), ("a", ""), ("a", "./"), ("b", "../a/")]),
)
@example(["*"], ("", "a/"))
@example(["*a", "a*", "a*b", "*a*b*", "'*'", "'a*'*", "../b/*", "../b/../a/*b"], ("", "a/"))
@example(["*a", "a*", "a*b", "a*b*", "'*'", "'a*'*", "../b/*", "../b/../a/*b"], ("a", ""))
@hypothesis_settings(max_examples=200, deadline=None)
def test_the_names_are_those_that_bash_finds(folder: Path, words: list[str], where: tuple[str, str]) -> None:
    directory, prefix = where
    command = " ".join(("printf %s,", *(f"{prefix}{word}" for word in words)))
    found = plain_words(named(command, folder, directory))
    if found is not None:
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
        bash = ["bash", "--norc", "-c", command]
        said = subprocess.run(bash, cwd=folder / directory, env=environment, capture_output=True, text=True).stdout
        assert said == ("".join(f"{word}," for word in found[2:]) or ",")


def test_a_name_that_could_be_taken_for_an_option_is_not_understood(folder: Path) -> None:
    names = ("a", "a b", "a'b", "a*", "a\\b", "aab", "ab")
    assert plain_words(named("cat a*", folder, "a")) == ("cat", *names)
    assert argv("cat a*", folder / "a") is not None
    for command in ("cat *", "cat *b", "cat -- *", "cat x *=b"):
        assert named(command, folder, "a") == command, command
        assert argv(command, folder / "a") is None, command


def test_every_name_is_a_word_of_its_own_whatever_it_is(folder: Path) -> None:
    visible = sorted(name for name in NAMES if name[0] != ".")
    assert plain_words(named("cat a/* x", folder)) == ("cat", *(f"a/{name}" for name in visible), "x")
    words = argv("cat a/*", folder)
    assert words is not None
    assert subprocess.run(words, cwd=folder, capture_output=True, text=True).stdout == "inside\n" * len(visible)
    assert argv("cat a/* | wc -l; ls a/*b 2>/dev/null && grep -c side a/a*", folder) is not None
    assert argv(f"cd {folder} && cat {folder}/a/*", folder) is not None


@pytest.mark.parametrize(
    "command",
    [
        *(
            "cat c*",
            "cat -- c*",
            "cat -a*",
            "cat -*/x",
            "cat --x=a/*",
            "grep -ea/* x",
            "cat */a",
            "cat a/**",
            "cat **/a",
        ),
        *(
            "cat a/.*",
            "cat a/nothing*",
            "cat nowhere/*",
            "cat a/*/",
            "cat /*",
            "cat /etc/*",
            "cat ../*",
            "cat a/../../*",
        ),
        *(
            "cat a/{a,b}*",
            "cat a/[!-]*",
            "cat a/[a]*",
            "cat a/?*",
            "cat a/!(b)*",
            "cat a/*(a)",
            "cat a/\\**",
            "cat ~/*",
        ),
        *(
            'cat "$PWD"/a/*',
            "cat $PWD/a/*",
            "cat a/* > x",
            "cat a/* & rm x",
            "a/*",
            "a/* x",
            "cat a/*$(rm x)",
            "cat 'a/*",
        ),
    ],
)
def test_what_is_not_understood_stays_as_it_is(command: str, folder: Path) -> None:
    assert named(command, folder) == command
    assert argv(command, folder) is None


@pytest.mark.parametrize(
    "command",
    [
        *(
            "cat b/*",
            "cat b/l*",
            "ls b/*",
            "grep -r x b/*",
            "cat a/a; cat b/*",
            "diff a/a b/l*",
            "head -3 ./b/*k",
        ),
        *("rm a/*", "sort a/*", "sed -i s/a/b/ a/*", "sed -n 1e a/*", "tee a/*", "cat a/* | tee x", "cd b && cat a/*"),
        *("cat a/* && touch x", "python a/*", "find a/* -delete", "git log --output=a/*", "X=a/* ls", "cat a/*\nrm x"),
    ],
)
def test_the_names_are_judged_as_if_they_had_been_typed(command: str, folder: Path) -> None:
    assert argv(command, folder) is None


def test_names_that_could_not_be_typed_are_asked_about(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for name in ("é", "a\nb", "a\x1bb", "a\tb", os.fsdecode(b"a\xff")):
        (tmp_path / "a" / name).write_text("")
        assert argv("ls a/*", tmp_path) is None, ascii(name)
        assert argv("echo a/*", tmp_path) is None, ascii(name)
        (tmp_path / "a" / name).unlink()
    (tmp_path / "a" / "a").write_text("")
    assert argv("ls a/*", tmp_path) is not None
    for number in range(1_000):
        (tmp_path / "a" / str(number)).write_text("")
    assert argv("ls a/*", tmp_path) is None
    assert argv("ls a/a*", tmp_path) is not None
    for number in range(1_000, 5_000):
        (tmp_path / "a" / str(number)).write_text("")
    assert argv("ls a/a*", tmp_path) is None


def test_what_comes_after_the_judgement_is_not_read(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    (root / "a" / "a").write_text("inside\n")
    (tmp_path / "secret").write_text("secret\n")
    commands = [argv(command, root) for command in ("cat a/*", "cat a/*; true")]
    (root / "a" / "b").symlink_to(tmp_path / "secret")
    assert argv("cat a/*", root) is None
    for words in commands:
        assert words is not None
        assert subprocess.run(words, cwd=root, capture_output=True, text=True).stdout == "inside\n"


async def test_a_file_that_a_pattern_names_was_read_and_can_be_denied(tmp_path: Path) -> None:
    files_read = FilesRead()
    shell = Shell(CommandRunner(tmp_path, settings=ToolSettings, limits=Limits), files_read=files_read)
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "x.py").write_text("x\n")
    approval = shell.approval({"command": "grep -r x a/*"})
    assert {f"{tmp_path}/a/x.py", f"{tmp_path}/a/b"} <= set(approval.parts)
    assert approval.searched == (f"{tmp_path}/a/b",)
    assert "cat a/x.py" in shell.approval({"command": "cat a/*.py"}).commands
    assert (await shell.run({"command": "cat a/*.py"})).text == "x"
    assert files_read.is_current(tmp_path / "a" / "x.py", b"x\n")
