"""Which commands run without asking: those that provably only read."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from nca.tools.files.workspace import Workspace
from nca.tools.shell.read_only_commands import read_only_argv
from nca.tools.shell.read_only_git import only_harmless_keys
from tests.tools.shell_strings import HARMLESS, SLY

ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
CONFIG = """
[core]
\trepositoryformatversion = 0
\tfilemode = true
[remote "origin"]
\turl = https://example.com/x.git
\tfetch = +refs/heads/*:refs/remotes/origin/*
; a comment
[branch "main"]
\tremote = origin
[user]
\tname = "Me"
"""


def git(root: Path, *arguments: str) -> None:
    who = ("-c", "user.name=me", "-c", "user.email=me@example.com", "-c", "init.defaultBranch=main")
    subprocess.run(("git", *who, *arguments), cwd=root, env=ENVIRONMENT, check=True, capture_output=True)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("reading").resolve()
    root = place / "root"
    for folder in (root / "src", root / "sub", place / "beside"):
        folder.mkdir(parents=True)
    (place / "secret.txt").write_text("secret")
    (place / "beside" / "secret.txt").write_text("secret")
    (root / "notes.txt").write_text("hello world\n" * 5)
    (root / "src" / "a.py").write_text("hello\n")
    for name in ("--output=x", "-delete", "-exec"):
        (root / name).write_text("")
    (root / "outside").symlink_to(place / "beside")
    (root / "key").symlink_to(place / "secret.txt")
    git(root, "init", "-q")
    git(root, "add", "notes.txt", "src")
    git(root, "commit", "-q", "-m", "first")
    git(root, "commit", "-q", "--allow-empty", "-m", "second")
    return root


def argv(command: str, root: Path, directory: Path | None = None, env: Mapping[str, str] = ENVIRONMENT) -> object:
    workspace = Workspace(root)
    return read_only_argv(command, workspace=workspace, directory=directory or workspace.root, environment=env)


def test_the_corpus_is_large_and_of_its_own() -> None:
    assert len(set(SLY)) >= 600
    assert not set(SLY) & set(HARMLESS)


@pytest.mark.parametrize("command", SLY, ids=lambda command: ascii(command)[1:50])
def test_nothing_slips_past(command: str, root: Path) -> None:
    assert argv(command, root) is None


@pytest.mark.parametrize("command", HARMLESS)
def test_what_plainly_reads_runs_and_says_what_a_shell_would(command: str, root: Path) -> None:
    words = argv(command, root)
    assert isinstance(words, tuple)
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    ours = subprocess.run(words, cwd=root, env=ENVIRONMENT, capture_output=True, stdin=subprocess.DEVNULL)
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before
    shell = subprocess.run(
        ["bash", "-c", command], cwd=root, env=ENVIRONMENT, capture_output=True, stdin=subprocess.DEVNULL
    )
    assert (ours.stdout, ours.returncode) == (shell.stdout, shell.returncode)


@given(
    st.sampled_from(HARMLESS),
    st.text(st.sampled_from(";&|<>$`(){}[]*?!#~\\\"'\n\r\t\0 =./-"), min_size=1, max_size=6),
    st.integers(0, 40),
)
@hypothesis_settings(max_examples=1_000, deadline=None)
def test_signs_put_into_a_harmless_command_do_not_change_its_words(
    root: Path, command: str, signs: str, place: int
) -> None:
    """Whatever still runs has the words that any shell would see, and git's own options before them."""
    changed = command[:place] + signs + command[place:]
    words = argv(changed, root)
    if isinstance(words, tuple):
        said = [word for word in shlex.split(changed)[1:] if word != "--no-pager"]
        assert list(words[len(words) - len(said) :]) == said or words[0].endswith("git")
        assert set(said) <= set(words)


def test_judged_from_where_the_last_command_went(root: Path) -> None:
    assert argv("cat ../notes.txt", root, root / "sub") is not None
    assert argv("cat ../../secret.txt", root, root / "sub") is None
    assert argv("ls", root, root.parent) is None
    assert argv("ls", root, root / "outside") is None


def test_no_program_of_the_project_passes_for_another(root: Path, tmp_path: Path) -> None:
    evil = root / "sub" / "ls"
    evil.write_text("#!/bin/sh\ntouch pwned\n")
    evil.chmod(0o755)
    linked = tmp_path / "bin"
    linked.mkdir()
    (linked / "ls").symlink_to(evil)
    try:
        for path in (f"{root}/sub:{ENVIRONMENT['PATH']}", f"{linked}:{ENVIRONMENT['PATH']}"):
            assert argv("ls", root, env={"PATH": path}) is None
        for path in (f".:{ENVIRONMENT['PATH']}", f":{ENVIRONMENT['PATH']}", f"sub:{ENVIRONMENT['PATH']}"):
            found = argv("ls", root, root / "sub", env={"PATH": path})
            assert isinstance(found, tuple)
            assert not found[0].startswith(str(root))
        assert argv("ls", root, env={}) is None
    finally:
        evil.unlink()


HOSTILE = {
    "a file monitor": "[core]\n\tfsmonitor = touch pwned\n",
    "a pager": "[core]\n\tpager = touch pwned\n",
    "hooks": "[core]\n\thooksPath = .\n",
    "another work tree": "[core]\n\tworktree = /\n",
    "a filter": '[filter "x"]\n\tclean = touch pwned\n',
    "a driver for diffs": '[diff "x"]\n\ttextconv = touch pwned\n',
    "another diff": "[diff]\n\texternal = touch pwned\n",
    "signatures": "[log]\n\tshowSignature = true\n[gpg]\n\tprogram = ./evil\n",
    "an include": "[include]\n\tpath = ../evil\n",
    "a condition": '[includeIf "gitdir:/"]\n\tpath = ../evil\n',
    "lazy objects": '[remote "origin"]\n\tpromisor = true\n\turl = ext::touch pwned\n',
    "an alias": "[alias]\n\tstatus = !touch pwned\n",
    "a key behind its section": "[core] fsmonitor = touch pwned\n",
    "a key behind its section, closed": "[core] fsmonitor = touch pwned #]\n",
    "a key behind a part": '[remote "x"] uploadpack = "touch pwned"]\n',
    "a part with a quote": '[remote "x\\"] a"]\n\turl = x\n',
    "a line that goes on": "[core]\n\tbare = false \\\n\tfsmonitor = x\n",
    "capitals": "[CORE]\n\tFsMonitor = touch pwned\n",
    "no value": "[core]\n\tfsmonitor\n",
    "carriage returns": "[core]\r\tfsmonitor = touch pwned\n",
    "a mark of byte order": "\ufeff[core]\n\tfsmonitor = x\n",
    "the old form": "[filter.x]\n\tclean = touch pwned\n",
    "nothing known": "[nobody]\n\tknows = 1\n",
    "a key before any section": "fsmonitor = x\n",
    "other blanks": "[core]\n\u00a0fsmonitor = x\n",
}


@pytest.mark.parametrize("trick", HOSTILE)
def test_a_repository_that_names_programs_is_asked_about(trick: str, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "a").write_text("a")
    assert argv("git status", tmp_path) is not None
    config = tmp_path / ".git" / "config"
    config.write_text(config.read_text() + HOSTILE[trick], newline="")
    assert argv("git status", tmp_path) is None
    assert argv("git log", tmp_path) is None
    assert not only_harmless_keys(HOSTILE[trick].encode())


def test_a_usual_configuration_is_no_reason_to_ask() -> None:
    assert only_harmless_keys(CONFIG.encode())
    assert only_harmless_keys(CONFIG.replace("\n", "\r\n").encode())
    assert only_harmless_keys(b"")
    assert not only_harmless_keys(b"\xff\xfe")


def test_a_monitor_that_slipped_in_would_not_run(tmp_path: Path) -> None:
    """Between the judgement and the run: the options given to git hold by themselves."""
    git(tmp_path, "init", "-q")
    words = argv("git status", tmp_path)
    assert isinstance(words, tuple)
    for key, value in (
        ("core.fsmonitor", "touch pwned;"),
        ("core.pager", "touch pwned"),
        ("diff.external", "touch pwned"),
    ):
        git(tmp_path, "config", key, value)
    unguarded = subprocess.run(("git", "status"), cwd=tmp_path, env=ENVIRONMENT, capture_output=True)
    assert (tmp_path / "pwned").exists(), unguarded
    (tmp_path / "pwned").unlink()
    subprocess.run(words, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, check=True)
    assert not (tmp_path / "pwned").exists()


def test_only_a_whole_repository_of_the_project(tmp_path: Path) -> None:
    above = tmp_path / "above"
    root = above / "root"
    root.mkdir(parents=True)
    assert argv("git status", root) is None
    git(above, "init", "-q")
    assert argv("git status", root) is None, "it reads what is beside the project"
    assert argv("git status", above, root) is not None

    git(root, "init", "-q")
    assert argv("git status", root) is not None
    (root / ".gitmodules").write_text("")
    assert argv("git status", root) is None
    assert argv("git log", root) is not None
    repository = root / ".git"
    for name in ("commondir", "config.worktree", "objects/info/alternates"):
        (repository / name).write_text("x")
        assert argv("git log", root) is None
        (repository / name).unlink()
    (repository / "index").symlink_to("/etc/passwd")
    assert argv("git log", root) is None
    (repository / "index").unlink()
    (repository / "config").unlink()
    assert argv("git log", root) is None

    repository.rename(tmp_path / "elsewhere")
    repository.symlink_to(tmp_path / "elsewhere")
    assert argv("git log", root) is None
    repository.unlink()
    repository.write_text(f"gitdir: {tmp_path / 'elsewhere'}\n")
    assert argv("git log", root) is None
    repository.unlink()
    for name in ("objects", "refs"):
        (root / name).mkdir()
    (root / "HEAD").write_text("ref: refs/heads/main\n")
    assert argv("git log", above, root) is None, "git would take the folder itself for a repository"
