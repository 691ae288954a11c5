"""What a command shows without naming it: as git itself does."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from nca.tools.programs import word_set
from nca.tools.shell.command_words import table
from nca.tools.shell.shown_files import shown_by_git

SECRET = "blue-elephant"
VALUES = {
    "--max-count=": "2",
    "--unified=": "3",
    "--format=": "%h",
    "--pretty=": "%h",
    "--diff-filter=": "M",
    "--abbrev=": "8",
}
OPTIONS = sorted(
    word + VALUES.get(word, "")
    for word in word_set(table()["git"]["reads"]["log show diff"])
    if not word.endswith("=") or word in VALUES
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of two commits and a change, with the secret in a file in each."""
    root = tmp_path_factory.mktemp("repository")

    def git(*words: str) -> None:
        who = ("-c", "user.name=n", "-c", "user.email=a@b.c")
        subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)

    git("init", "-q")
    for name in ("src", "conf", "src/deep"):
        (root / name).mkdir()
    for number in range(3):
        for name in ("conf/secret", "src/a.py", "src/deep/b.py", "top.txt"):
            (root / name).write_text(f"{SECRET if name == 'conf/secret' else name} {number}\n")
        if number < 2:
            git("add", "-A")
            git("commit", "-qm", f"commit {number}")
    return root


def output(command: str, root: Path) -> str:
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "GIT_PAGER": "cat"}
    return subprocess.run(shlex.split(command), cwd=root, env=env, capture_output=True, text=True).stdout


@given(
    st.sampled_from(["log", "diff", "show"]),
    st.lists(st.sampled_from(OPTIONS), max_size=3),
    st.sampled_from(["", " HEAD"]),
)
@hypothesis_settings(max_examples=60, deadline=None)
def test_whatever_the_options_are_what_git_shows_is_known(root: Path, name: str, options: list[str], end: str) -> None:
    command = " ".join(["git", name, *options]) + end
    if SECRET in output(command, root):
        assert shown_by_git(command, root) == (str(root),)


@pytest.mark.parametrize(
    ("command", "places"),
    [
        ("git diff", "."),
        ("git --no-pager diff HEAD~1", "."),
        ("git -C conf diff", "."),
        ("git diff | head -5; git status", "."),
        ("git log -p -S elephant", "."),
        ("git log -3 -U1", "."),
        ("git show HEAD", "."),
        ("git show --stat HEAD", "."),  # of a blob it would show the lines
        ("git show HEAD:conf/secret src", "."),
        ("git stash show -p", "."),
        ("git cat-file -p HEAD:conf/secret", "."),
        ("git diff -- src", "src"),
        ("git log -p src conf", "src conf"),
        ("git diff src '*.env'", "."),
        ("git diff src ':/'", "."),
        ("git diff -- src/a.py", ""),
        ("git log -p HEAD -- src/a.py top.txt", ""),
        ("git show HEAD:src/a.py", ""),
        ("git log --oneline -5", ""),
        ("git log --stat --grep=x", ""),
        ("git diff --stat HEAD", ""),
        ("git diff --name-only", ""),
        ("git diff --stat -p", "."),
        ("git log --cc", "."),
        ("git status; git branch -a; git stash list; git stash", ""),
        ("git", ""),
        ("echo git diff", ""),
    ],
)
def test_the_places_of_what_git_shows(root: Path, command: str, places: str) -> None:
    assert shown_by_git(command, root) == tuple(os.path.normpath(root / place) for place in places.split())


def test_a_path_in_a_revision_begins_at_the_top(root: Path) -> None:
    assert shown_by_git("git show HEAD:conf/secret", root / "src") == (str(root),)
    assert shown_by_git("git diff -- deep", root / "src") == (f"{root}/src/deep",)
    assert shown_by_git("git diff", root.parent) == (str(root.parent),)
