"""No project decides the settings in [tools]: what runs, for how long, and with which variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from nca.config.layers import defaults, load
from nca.config.projects import TrustRequest
from nca.config.schema import KEYS

COMMANDS = {
    "tools.timeout_seconds": "86400",
    "tools.max_timeout_seconds": "86400",
    "tools.sandbox": '"bwrap"',
    "tools.environment": '["MY_TOKEN"]',
}


@pytest.mark.parametrize("key", COMMANDS)
def test_a_project_sets_none_of_it_even_where_it_is_trusted(key: str, tmp_path: Path) -> None:
    assert KEYS[key].user_only
    home, project = tmp_path / "home", tmp_path / "project"
    (project / ".nca").mkdir(parents=True)
    home.mkdir()
    line = f"[tools]\n{key.removeprefix('tools.')} = {COMMANDS[key]}\n"
    (project / ".nca" / "config.toml").write_text(line)

    def trusts(would_act: TrustRequest) -> bool:
        return True

    loaded = load(project=project, env={"NCA_HOME": str(home)}, trusts=trusts)
    assert loaded.value(key) == defaults().value(key)
    assert any(key in note for note in loaded.notes)
    (home / "config.toml").write_text(line)
    assert load(project=project, env={"NCA_HOME": str(home)}, trusts=trusts).value(key) != defaults().value(key)
