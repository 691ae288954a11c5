"""Saving a setting keeps the rest of the file, and leaves an unreadable file alone."""

from __future__ import annotations

import stat
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from nca.config.overrides import UNSET
from nca.config.saving import save_value
from nca.errors import ConfigError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / ".nca" / "config.toml"


def read(file: Path) -> object:
    return tomllib.loads(file.read_text())


def test_a_new_file_is_made_and_only_it(file: Path) -> None:
    assert save_value(file, "context.compact_threshold", "70%") == "context.compact_threshold"
    assert read(file) == {"context": {"compact_threshold": 0.7}}
    assert [one.name for one in file.parent.iterdir()] == ["config.toml"]


def test_other_keys_stay_even_unknown_ones(file: Path) -> None:
    file.parent.mkdir()
    file.write_text('later = "x"\n[context.prune]\nkeep_results = 3\n[for."a/*".context]\nauto = "off"\n')
    save_value(file, "context.stages", "prune,truncate")
    save_value(file, "context.prune.keep_results", "4")
    assert read(file) == {
        "later": "x",
        "context": {"prune": {"keep_results": 4}, "stages": ["prune", "truncate"]},
        "for": {"a/*": {"context": {"auto": "off"}}},
    }


def test_comments_and_the_order_stay(file: Path) -> None:
    file.parent.mkdir()
    commented = "# mine\n[agent]\nmax_steps = 3 # few\n\n# below\n[terminal]\nplain = true\n"
    file.write_text(commented)
    save_value(file, "agent.max_steps", 4)
    save_value(file, "agent.system_prompt", "x")
    save_value(file, "agent.system_prompt", UNSET)
    assert file.read_text() == commented.replace("3", "4")
    assert [one.name for one in file.parent.iterdir()] == ["config.toml"]


def test_a_comment_that_goes_with_its_setting_is_kept_in_a_copy_once(file: Path) -> None:
    file.parent.mkdir()
    commented = "[agent]\nmax_steps = 3 # few\n"
    file.write_text(commented)
    save_value(file, "agent.max_steps", UNSET)
    assert (file.parent / "config.toml.bak").read_text() == commented
    for _ in range(2):
        file.write_text("[agent]\nmax_steps = 6 # again\n")
        save_value(file, "agent.max_steps", UNSET)
    assert (file.parent / "config.toml.bak").read_text() == commented
    assert (file.parent / "config.toml.bak2").read_text() == "[agent]\nmax_steps = 6 # again\n"
    assert not (file.parent / "config.toml.bak3").exists()


@pytest.mark.parametrize("raw", [b"[broken", b"\xff", b"context = 5\n"])
def test_a_file_that_cannot_be_used_is_left_alone(file: Path, raw: bytes) -> None:
    file.parent.mkdir()
    file.write_bytes(raw)
    with pytest.raises(ConfigError):
        save_value(file, "context.auto", "off")
    assert file.read_bytes() == raw
    assert [one.name for one in file.parent.iterdir()] == ["config.toml"]


def test_bad_names_and_values_write_nothing(file: Path) -> None:
    for name, value in (("context.auto", "x"), ("contxt.auto", "on"), ("context", "x"), ("model.api_base", "http://x")):
        with pytest.raises(ConfigError):
            save_value(file, name, value)
    assert not file.exists()


def test_the_users_own_file_may_hold_more_and_be_a_link(tmp_path: Path, file: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text("")
    real.chmod(0o600)
    file.parent.mkdir()
    file.symlink_to(real)
    save_value(file, "model.api_base", "http://x", is_users_own=True)
    assert file.is_symlink()
    assert read(real) == {"model": {"api_base": "http://x"}}
    assert stat.S_IMODE(real.stat().st_mode) == 0o600


def test_a_seeds_name_is_saved_under_the_canonical_one(file: Path) -> None:
    assert save_value(file, "memory.context.auto_summarize_threshold", 60) == "context.idle_threshold"
    save_value(file, "enablePrune", "false")
    save_value(file, "enableTruncate", "false")
    save_value(file, "agent.summarization_model", "m")
    save_value(file, "agent.summarization_provider", "p")
    assert read(file) == {
        "context": {"idle_threshold": 0.6, "stages": ["deduplicate", "summarize"]},
        "model": {"summarizer": "p/m"},
    }


def test_a_folder_in_the_way_is_one_line(tmp_path: Path) -> None:
    (tmp_path / ".nca").write_text("a file")
    with pytest.raises(ConfigError, match="cannot be written"):
        save_value(tmp_path / ".nca" / "config.toml", "context.auto", "off")


@hypothesis_settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_any_text_reads_back(file: Path, text: str) -> None:
    save_value(file, "agent.system_prompt", text)
    assert read(file) == {"agent": {"system_prompt": text}}


def test_a_file_in_which_nothing_is_left_goes_unless_it_is_a_link(tmp_path: Path, file: Path) -> None:
    save_value(file, "context.auto", "off")
    save_value(file, "context.auto", UNSET)
    assert not file.exists()
    real = tmp_path / "dotfiles.toml"
    real.write_text("# mine\n[context]\nauto = 'off'\n")
    save_value(real, "context.auto", UNSET)
    assert real.read_text() == "# mine\n"
    real.write_text("[context]\nauto = 'off'\n")
    file.symlink_to(real)
    save_value(file, "context.auto", UNSET, is_users_own=True)
    assert (file.is_symlink(), real.read_text()) == (True, "")


def test_unset_takes_a_setting_out_and_leaves_the_rest(file: Path) -> None:
    assert save_value(file, "context.auto", UNSET) == "context.auto"
    assert not file.exists()
    save_value(file, "context.prune.keep_results", 3)
    save_value(file, "context.auto", "off")
    save_value(file, "profile", "neuron")
    save_value(file, "context.prune.keep_results", UNSET)
    save_value(file, "profile", UNSET)
    save_value(file, "terminal.keys", UNSET)
    assert read(file) == {"context": {"auto": "off"}}
    with pytest.raises(ConfigError, match="no setting"):
        save_value(file, "context.nothing", UNSET)
