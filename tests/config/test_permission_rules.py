"""Permission rules in the person's own file: adding and removing one keeps everything else."""

from __future__ import annotations

from pathlib import Path

import pytest

from nca.config.layers import load
from nca.config.saving import ALLOW, DENY, add_rule, remove_rule
from nca.config.tables import PermissionRule
from nca.errors import ConfigError

MAKE, TEST = PermissionRule("shell", "make", "/work"), PermissionRule("shell", "pytest", "/work")


def test_rules_come_and_go_and_the_rest_stays(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[agent]\nmax_steps = 7\n")
    add_rule(file, ALLOW, MAKE)
    add_rule(file, ALLOW, TEST)
    add_rule(file, ALLOW, MAKE)
    add_rule(file, DENY, PermissionRule("*", "~/.ssh/**"))
    loaded = load(project=None, env={"NCA_HOME": str(tmp_path)})
    assert loaded.value(ALLOW) == (MAKE, TEST)
    assert loaded.settings.agent.max_steps == 7
    assert remove_rule(file, ALLOW, MAKE)
    assert not remove_rule(file, ALLOW, MAKE)
    loaded = load(project=None, env={"NCA_HOME": str(tmp_path)})
    assert loaded.value(ALLOW) == (TEST,)
    assert loaded.value(DENY) == (PermissionRule("*", "~/.ssh/**"),)


def test_a_linked_file_stays_where_it_is(tmp_path: Path) -> None:
    file, kept = tmp_path / "config.toml", tmp_path / "dotfiles" / "nca.toml"
    kept.parent.mkdir()
    kept.write_text("[agent]\nmax_steps = 7\n")
    file.symlink_to(kept)
    for rule in (MAKE, TEST):
        add_rule(file, ALLOW, rule)
        assert (file.is_symlink(), rule.subject in kept.read_text()) == (True, True)
    assert remove_rule(file, ALLOW, MAKE)
    assert (file.is_symlink(), MAKE.subject in kept.read_text()) == (True, False)


def test_the_file_is_made_where_there_is_none(tmp_path: Path) -> None:
    add_rule(tmp_path / "new" / "config.toml", ALLOW, MAKE)
    assert "make" in (tmp_path / "new" / "config.toml").read_text()


@pytest.mark.parametrize("text", ["[", "permissions = 5\n", '[[permissions.allow]]\nsubject = "x"\n'])
def test_a_file_that_cannot_be_read_is_left_alone(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(ConfigError):
        add_rule(file, ALLOW, MAKE)
    assert file.read_text() == text


def test_a_project_s_file_sets_no_rule(tmp_path: Path) -> None:
    file = tmp_path / ".nca" / "config.toml"
    add_rule(file, ALLOW, MAKE)
    loaded = load(project=tmp_path, env={"NCA_HOME": str(tmp_path / "home")})
    assert loaded.value(ALLOW) == ()
    assert "permissions.allow was ignored" in loaded.notes[0]


@pytest.mark.parametrize("field", ["paths", "pattern"])
def test_patterns_deny_and_ask_but_never_allow(tmp_path: Path, field: str) -> None:
    file = tmp_path / "config.toml"
    row = f'tool = "shell"\n{field} = "a*"\n'
    file.write_text(f"[[permissions.deny]]\n{row}[[permissions.ask]]\n{row}")
    loaded = load(project=None, env={"NCA_HOME": str(tmp_path)})
    paths, pattern = ("a*", "") if field == "paths" else ("", "a*")
    wanted = (PermissionRule("shell", paths=paths, pattern=pattern),)
    assert loaded.settings.permissions.deny == loaded.settings.permissions.ask == wanted
    file.write_text(f"[[permissions.allow]]\n{row}")
    with pytest.raises(ConfigError, match=rf"config\.toml:3: .*{field} is for permissions\.deny and permissions\.ask"):
        load(project=None, env={"NCA_HOME": str(tmp_path)})
    file.write_text('[[permissions.deny]]\ntool = "shell"\nsubject = "a"\npaths = "b"\n')
    with pytest.raises(ConfigError, match="only one of subject, paths and pattern"):
        load(project=None, env={"NCA_HOME": str(tmp_path)})


@pytest.mark.parametrize(
    ("tool", "subject"),
    [("shell", "*"), ("shell", "src/*.py"), ("shell", "src/"), ("write_file", "src/"), ("fetch_url", "*.example.com")],
)
def test_a_rule_that_could_allow_nothing_is_an_error_with_its_line(tmp_path: Path, tool: str, subject: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f'[[permissions.allow]]\ntool = "{tool}"\nsubject = "{subject}"\n')
    with pytest.raises(ConfigError, match=r"config\.toml:3: .* could allow nothing"):
        load(project=None, env={"NCA_HOME": str(tmp_path)})
    file.write_text("")
    with pytest.raises(ConfigError, match="could allow nothing"):
        add_rule(file, ALLOW, PermissionRule(tool, subject))
    assert file.read_text() == ""
