"""The locations of the settings files."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from nca.config.paths import data_dir, project_config_file, user_config_file
from nca.errors import ConfigError


def test_nca_home_moves_both(tmp_path: Path) -> None:
    env = {"NCA_HOME": str(tmp_path), "XDG_CONFIG_HOME": "/elsewhere", "XDG_DATA_HOME": "/elsewhere"}
    assert user_config_file(env) == tmp_path / "config.toml"
    assert data_dir(env) == tmp_path / "data"
    assert user_config_file({"NCA_HOME": "relative"}).is_absolute()
    assert user_config_file({"NCA_HOME": "~/x", "HOME": "/h"}) == Path("/h/x/config.toml")
    with pytest.raises(ConfigError, match="NCA_HOME"):
        data_dir({"NCA_HOME": "a\0"})


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="the platform has a custom of its own")
def test_the_usual_places() -> None:
    env = {"HOME": "/h", "NCA_HOME": "", "XDG_CONFIG_HOME": "relative is ignored"}
    assert user_config_file(env) == Path("/h/.config/nca/config.toml")
    assert data_dir(env) == Path("/h/.local/share/nca")
    env = {"HOME": "/h", "XDG_CONFIG_HOME": "/c", "XDG_DATA_HOME": "/d"}
    assert user_config_file(env) == Path("/c/nca/config.toml")
    assert data_dir(env) == Path("/d/nca")
    assert user_config_file({}).is_absolute()


def test_the_projects_file() -> None:
    assert project_config_file(Path("/p")) == Path("/p/.nca/config.toml")
