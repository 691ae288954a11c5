"""The branch of a directory, read as git writes it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from nca.agent.instruction_files import branch_of


def git(folder: Path, *arguments: str) -> None:
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True, env={**os.environ, **who})


def test_a_branch_a_work_tree_and_a_commit(tmp_path: Path) -> None:
    main, tree = tmp_path / "main", tmp_path / "tree"
    main.mkdir()
    assert branch_of(main) == ""
    git(main, "init", "-q", "-b", "topic/x")
    assert branch_of(main) == "topic/x"
    git(main, "commit", "-q", "--allow-empty", "-m", "First")
    git(main, "worktree", "add", "-q", "-b", "other", str(tree))
    (tree / "deep").mkdir()
    assert branch_of(tree / "deep") == "other"
    git(main, "checkout", "-q", "--detach")
    short = subprocess.run(["git", "-C", str(main), "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    assert branch_of(main) == short.stdout[:7]


def test_what_is_no_repository_has_no_branch(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: /nowhere\n")
    assert branch_of(tmp_path) == ""
    (tmp_path / ".git").unlink()
    os.mkfifo(tmp_path / ".git")
    assert branch_of(tmp_path) == ""
