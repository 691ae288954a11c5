"""Stages of installed packages: found by name, loaded when needed, refused clearly."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import nca
from nca.config.extensions import load_stage, registered_stages
from nca.config.layers import load

CODE = """
class Halve:
    def should_compact(self, messages, token_count):
        return token_count > 10

    def compact(self, messages):
        return messages[len(messages) // 2 :]

    def token_estimate(self, messages):
        return len(messages)


halve = Halve()


def make():
    return Halve()


def broken():
    raise RuntimeError("out of order")


nothing = 5
"""
ENTRIES = """
[nca.stages]
halve = nca_test_stages:Halve
halved = nca_test_stages:halve
made = nca_test_stages:make
broken = nca_test_stages:broken
missing = nca_test_stages:Absent
nothing = nca_test_stages:nothing
"""
ROWS = [{"role": "user", "content": f"Question {number} " + "why " * 60} for number in range(40)]


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package as an installer leaves it: a module, and its metadata beside it."""
    (tmp_path / "nca_test_stages.py").write_text(CODE)
    metadata = tmp_path / "nca_test_stages-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: nca-test-stages\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("nca_test_stages", None)


def test_names_are_found_without_loading_code() -> None:
    assert registered_stages() == ("broken", "halve", "halved", "made", "missing", "nothing")
    assert "nca_test_stages" not in sys.modules


@pytest.mark.parametrize("name", ["halve", "halved", "made"])
def test_an_entry_is_a_stage_or_gives_one(name: str) -> None:
    assert isinstance(load_stage(name), nca.Strategy)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("unknown", "no installed package registers the stage unknown; registered: broken, halve"),
        ("broken", "the stage broken (nca_test_stages:broken) cannot be loaded: RuntimeError: out of order"),
        ("missing", "the stage missing (nca_test_stages:Absent) cannot be loaded: AttributeError"),
        ("nothing", "the stage nothing (nca_test_stages:nothing)"),
    ],
)
def test_what_cannot_be_loaded_says_why(name: str, said: str) -> None:
    with pytest.raises(nca.ConfigError) as refused:
        load_stage(name)
    assert said in str(refused.value)


def test_a_stage_of_a_package_takes_part() -> None:
    result = nca.compact(ROWS, context_window=4_000, stages=["halve"])
    assert result.stages_used == ("halve",)
    assert len(result.messages) == 20
    assert result.messages == ROWS[20:]
    assert result.items[0] == {"type": "marker", "id": result.items[0]["id"], "ranges": ((1, 20),), "text": ""}


def test_one_that_cannot_be_loaded_is_an_error_of_the_call() -> None:
    with pytest.raises(nca.ConfigError, match="the stage broken"):
        nca.compact(ROWS, context_window=4_000, stages=["broken"])


def test_an_unknown_name_is_refused_with_the_valid_ones() -> None:
    with pytest.raises(nca.ConfigError) as refused:
        nca.compact(ROWS, stages=["prune", "halv"])
    said = str(refused.value)
    assert "stages = 'prune, halv' is not valid; valid: a list of prune, deduplicate, summarize" in said
    assert "registered: broken, halve, halved, made, missing, nothing" in said
    with pytest.raises(nca.ConfigError, match="each at most once"):
        nca.compact(ROWS, stages=["halve", "halve"])


def test_aliases_of_built_in_stages_stay() -> None:
    settings = nca.load_settings(project=None, env={"NCA_CONTEXT__STAGES": "clear_results, halve, sliding_window"})
    assert settings.settings.context.stages == ("prune", "halve", "truncate")


def test_a_project_s_own_file_may_not_choose_one(tmp_path: Path) -> None:
    file = tmp_path / ".nca" / "config.toml"
    file.parent.mkdir()
    file.write_text('[context]\nstages = ["prune", "halve"]\n')
    with pytest.raises(nca.ConfigError, match=r"only your own file may name a stage of a package \(halve\)"):
        load(project=tmp_path, env={"NCA_HOME": str(tmp_path / "home")})
    file.write_text('[context]\nstages = ["truncate"]\n')
    loaded = load(project=tmp_path, env={"NCA_HOME": str(tmp_path / "home")}, trusts=lambda what: True)
    assert loaded.settings.context.stages == ("truncate",)
