"""A rule that allows a command covers nothing that can do more."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from nca.tools.files.workspace import Workspace
from nca.tools.shell.command_rules import UNASKED, rule_names, rule_steps
from nca.tools.shell.command_words import table
from nca.tools.shell.known_commands import git_words
from tests.tools.shell_pairs import COVERED, UNCOVERED
from tests.tools.shell_strings import SLY

ENVIRONMENT = {"PATH": os.environ["PATH"]}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("rules").resolve()
    root = place / "root"
    (root / "tests").mkdir(parents=True)
    (place / "beside").mkdir()
    (root / "outside").symlink_to(place / "beside")
    (root / "key").symlink_to(place / "secret.txt")
    return root


def names(command: str, root: Path) -> tuple[str, ...]:
    return rule_names(command, workspace=Workspace(root), directory=root, environment=ENVIRONMENT)


def is_covered(allowed: str, later: str, root: Path) -> bool:
    """Whether the rule that is offered for the first command covers the second."""
    offered = names(allowed, root)[0]
    return offered in names(later, root) or offered == later


def test_the_corpus_is_large() -> None:
    assert len(set(UNCOVERED)) >= 800
    assert len({later for _, later in UNCOVERED}) >= 400


def test_no_rule_covers_what_can_do_more(root: Path) -> None:
    assert [(allowed, later) for allowed, later in UNCOVERED if is_covered(allowed, later, root)] == []


def test_a_rule_covers_what_is_meant(root: Path) -> None:
    assert [(allowed, later) for allowed, later in COVERED if not is_covered(allowed, later, root)] == []


def test_no_string_that_looks_harmless_is_covered_by_the_rule_for_another(root: Path) -> None:
    offered = [names(command, root)[0] for command in ("ls", "cat notes.txt", "git status", "grep -n a notes.txt")]
    covered = {
        (rule, sly) for sly in SLY for rule in offered if rule in names(sly, root) and sly.split() != rule.split()
    }
    assert covered == set()


def test_every_listed_command_has_its_reason_and_is_offered(root: Path) -> None:
    for known in table()["known"]:
        assert known["why"].endswith(".")
        for command in known["commands"]:
            assert names(command, root)[0] == command


def test_what_is_attached_to_an_option_of_git_counts_as_what_follows_it(tmp_path: Path) -> None:
    """`git log -Sword` reads as much as `git log -S word`, where that is listed."""
    reads = {name: words.split() for names, words in table()["git"]["reads"].items() for name in names.split()}
    options = ("-L", "-S", "-G")
    assert {option for words in reads.values() for option in words} > set(options)
    subprocess.run(["git", "init", "--quiet", "--template=", tmp_path], check=True)
    for name, listed in reads.items():
        for option in options:
            taken = git_words((name, f"{option}word"), root=tmp_path, directory=tmp_path)
            assert (taken is not None) == (option in listed and name != "stash"), (name, option)


def test_a_person_may_write_a_rule_for_any_arguments(root: Path) -> None:
    assert {"docker *", "docker compose *", "docker compose up *"} <= set(names("docker compose up", root))
    assert "docker compose *" in names("docker compose up | tail -3", root)
    assert "docker compose *" not in names("docker compose up; rm x", root)
    assert names("docker compose *", root) == ()


@pytest.mark.parametrize(
    "command", ["git commit; rm x", "git commit | ls", "git $(rm x)", "", "/bin/rm x", "X=1 git commit", "a" * 5_000]
)
def test_what_is_no_simple_command_has_no_rule(command: str, root: Path) -> None:
    assert names(command, root) == ()


@pytest.mark.parametrize(
    ("command", "offered"),
    [
        ("ls; cat notes.txt", {"ls": True, "cat notes.txt": True}),
        ("pytest -q | head -3 && ls", {"pytest": False, "ls": True}),
        # What a name means may have changed with the files: behind a command that acts, only the exact words count.
        ("pytest -q; pytest -x", {"pytest": False, "pytest -x": False}),
        ("make; cat notes.txt", {"make": False, "cat notes.txt": False}),
        ("make; ls && grep a; grep -e a", {"make": False, "ls": True, "grep a": True, "grep -e a": False}),
        ("make || echo $?", {"make": False, "": True}),
        ("make; echo $? | head", {}),
        ("make | head notes.txt; ls", {}),
        ("export A=b; make", {}),
        ("ls > x; make", {}),
        ("make", {}),
    ],
)
def test_of_a_list_each_command_has_its_own_rule_or_runs_unasked(
    command: str, offered: dict[str, bool], root: Path
) -> None:
    steps, _ = rule_steps(command, workspace=Workspace(root), directory=root, environment=ENVIRONMENT)
    assert {names[0]: UNASKED in names for names in steps} == offered


def test_a_program_above_the_directory_is_named_from_there(root: Path) -> None:
    def offered(command: str, directory: Path) -> tuple[str, ...]:
        return rule_names(command, workspace=Workspace(root), directory=directory, environment=ENVIRONMENT)

    command = f"{root}/bin/python -m pytest -q"
    assert offered(command, root / "tests") == offered("../bin/python -m pytest -q", root / "tests")
    assert offered(command, root)[0] == "bin/python -m pytest"
    (root / "linked").symlink_to(root / "tests")
    assert offered(command, root / "linked") == ()


def test_a_planted_filter_is_no_filter(root: Path) -> None:
    planted = root / "bin"
    planted.mkdir()
    (planted / "head").write_text("#!/bin/sh\n")
    (planted / "head").chmod(0o755)
    path = {"PATH": f"{planted}:{ENVIRONMENT['PATH']}"}
    assert rule_names("pytest | head", workspace=Workspace(root), directory=root, environment=path) == ()
