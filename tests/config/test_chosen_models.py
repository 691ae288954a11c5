"""What was chosen with /model is remembered for each project, and stands below what the person wrote."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from nca.config.layers import load
from nca.config.paths import data_dir
from nca.config.projects import MODELS_FILE, MOST_PROJECTS, ChosenModel, ChosenModels

CHOSEN = ChosenModel("openai/gpt-4.1", "high", "2026-11-22")


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"NCA_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}


def test_each_directory_has_its_own_choice_until_it_is_forgotten(env: dict[str, str], tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    (tmp_path / "link").symlink_to(one)
    choices = ChosenModels(env)
    assert choices.of(one) is None
    choices.record(one, CHOSEN)
    choices.record(two, ChosenModel("mistral/small"))
    assert ChosenModels(env).of(tmp_path / "link") == CHOSEN
    assert choices.of(two) == ChosenModel("mistral/small")
    assert stat.S_IMODE((data_dir(env) / MODELS_FILE).stat().st_mode) == 0o600
    choices.forget(one)
    assert (choices.of(one), choices.of(two)) == (None, ChosenModel("mistral/small"))


def test_the_directories_that_were_used_last_are_kept(env: dict[str, str], tmp_path: Path) -> None:
    rows = {f"/old/{number}": {"name": "a/b"} for number in range(MOST_PROJECTS)}
    data_dir(env).mkdir(parents=True)
    (data_dir(env) / MODELS_FILE).write_text(json.dumps({"projects": rows}))
    ChosenModels(env).record(tmp_path, CHOSEN)
    assert ChosenModels(env).of(Path("/old/0")) is None
    assert ChosenModels(env).of(Path("/old/1")) == ChosenModel("a/b")
    assert ChosenModels(env).of(tmp_path) == CHOSEN


@pytest.mark.parametrize(
    "row",
    [{}, [], "a/b", {"name": ""}, {"name": 3}, {"name": "x" * 999}, {"name": "a/b", "level": None}, {"name": " \x00"}],
)
def test_a_damaged_row_or_file_is_no_choice(env: dict[str, str], tmp_path: Path, row: object) -> None:
    data_dir(env).mkdir(parents=True)
    file = data_dir(env) / MODELS_FILE
    for content in (json.dumps({"projects": {str(tmp_path): row}}), json.dumps({"projects": row}), "{", "[" * 9999):
        file.write_text(content)
        assert ChosenModels(env).of(tmp_path) is None
    ChosenModels(env).record(tmp_path, CHOSEN)
    assert ChosenModels(env).of(tmp_path) == CHOSEN


def test_it_stands_above_the_profile_and_below_what_the_person_wrote(env: dict[str, str], tmp_path: Path) -> None:
    loaded = load(project=None, env=env, chosen=CHOSEN)
    assert (loaded.settings.model.name, loaded.settings.model.reasoning) == ("openai/gpt-4.1", "high")
    assert loaded.origin("model.name") == "/model here on 2026-11-22"
    assert loaded.has_chosen_model
    configured = loaded.without_chosen_model()
    assert (configured.settings.model.name, configured.settings.model.reasoning) == ("", "auto")
    assert configured.settings == load(project=None, env=env).settings

    assert (
        load(project=None, env={**env, "NCA_MODEL__REASONING": "low"}, chosen=CHOSEN).settings.model.reasoning == "low"
    )
    flagged = load(project=None, env=env, flags={"model.name": "a/flag"}, chosen=CHOSEN)
    named = load(project=None, env={**env, "NCA_MODEL__NAME": "a/variable"}, chosen=CHOSEN)
    user_file = tmp_path / "home" / "config.toml"
    user_file.parent.mkdir(exist_ok=True)
    user_file.write_text('[model]\nname = "a/file"\n')
    written = load(project=None, env=env, chosen=CHOSEN)
    for one, name in ((flagged, "a/flag"), (named, "a/variable"), (written, "a/file")):
        assert (one.settings.model.name, one.settings.model.reasoning, one.has_chosen_model) == (name, "auto", False)


def test_a_project_cannot_choose(env: dict[str, str], tmp_path: Path) -> None:
    project = tmp_path / "project"
    for folder in (project, project / ".nca", project / ".nca" / "data"):
        folder.mkdir(exist_ok=True)
        (folder / MODELS_FILE).write_text(json.dumps({"projects": {str(project): {"name": "evil/model"}}}))
    assert ChosenModels(env).of(project) is None
