"""Permission rules in the person's own file: adding and removing one keeps everything else."""

from __future__ import annotations

from pathlib import Path

import pytest

from nca.config.layers import load
from nca.config.permission_rules import ALLOW, DENY, add_rule, remove_rule
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
