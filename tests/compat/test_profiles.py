"""Profiles: a layer directly above the defaults, whoever sets it, that contains only data."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from nca.config.layers import load
from nca.config.loaded import LoadedSettings, defaults, profile
from nca.config.paths import project_config_file
from nca.config.saving import save_value
from nca.config.schema import KEYS, PROFILES, PruneSettings, SummarizeSettings
from nca.context.stages.prune import CLEARED
from nca.context.summary import HEADER
from nca.errors import ConfigError


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for folder in ("home", "project/.nca"):
        (tmp_path / folder).mkdir(parents=True)
    return tmp_path / "project"


def load_in(project: Path, env: dict[str, str] | None = None, **more: Any) -> LoadedSettings:
    more = {"trusts": lambda what: True, **more}
    return load(project=project, env={"NCA_HOME": str(project.parent / "home"), **(env or {})}, **more)


def test_there_is_one_for_each_seed_and_each_value_is_what_its_setting_accepts() -> None:
    files = resources.files("nca.config.profiles").iterdir()
    assert {file.name for file in files} == {f"{name}.toml" for name in PROFILES}
    for name in PROFILES:
        for key, value in profile(name).items():
            assert KEYS[key].value_type.read(value) == value
            assert key.split(".")[0] in ("context", "memory", "agent", "session") or key in (
                "model.output_ratio",
                "model.max_reserve_tokens",
            )
            # A project may name a profile: of these it gets nothing by that (tests/config/test_layers.py).
            assert not KEYS[key].user_only or key in ("session.max_sessions", "session.retention_days")


def test_the_default_texts_are_the_engines() -> None:
    assert PruneSettings().placeholder == CLEARED
    assert SummarizeSettings().header == HEADER


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_sets_exactly_its_values_and_says_so(project: Path, name: str) -> None:
    loaded = load_in(project, {"NCA_PROFILE": name})
    assert loaded.origin("profile") == "environment NCA_PROFILE"
    for key in KEYS:
        if key in profile(name):
            assert (loaded.value(key), loaded.origin(key)) == (profile(name)[key], f"profile {name}")
        elif key != "profile":
            assert (loaded.value(key), loaded.origin(key)) == (KEYS[key].default, "default")


def test_everything_else_is_stronger(project: Path) -> None:
    project_config_file(project).write_text(
        'profile = "cowagent"\n[context]\nmax_turns = 7\n[for."x/*".context]\nmax_tokens = 9_000\n'
    )
    loaded = load_in(project, {"NCA_AGENT__MAX_STEPS": "3"}, flags={"context.compact_threshold": 0.5})
    assert loaded.value("context.max_turns") == 7
    assert loaded.value("agent.max_steps") == 3
    assert loaded.value("context.compact_threshold") == 0.5
    assert (loaded.value("context.max_tokens"), loaded.origin("context.max_tokens")) == (50_000, "profile cowagent")
    assert loaded.for_model("x/y").value("context.max_tokens") == 9_000
    assert loaded.value("session.restore") == "text"


def test_the_latest_layer_names_the_profile(project: Path) -> None:
    (project.parent / "home" / "config.toml").write_text('profile = "nca"\n')
    assert load_in(project).origin("context.max_tokens") == "profile nca"
    project_config_file(project).write_text('profile = "cowagent"\n')
    assert load_in(project).value("context.max_tokens") == 50_000
    env = {"NCA_PROFILE": "Neuron"}
    assert load_in(project, env).value("context.compact_tokens") == 100_000
    loaded = load_in(project, env, flags={"profile": "nexora"})
    assert loaded.origin("profile") == "flag --profile"
    assert loaded.value("context.stages") == ("summarize",)
    chat = loaded.with_value("profile", "cowagent", "set in this chat")
    assert (chat.value("context.max_turns"), chat.origin("context.max_turns")) == (20, "profile cowagent")
    assert chat.value("context.keep_recent_ratio") == 1.0
    assert chat.with_value("profile", "none", "set in this chat").settings == defaults().settings
    with pytest.raises(ConfigError, match="valid: one of none, nca, neurolink, cowagent, neuron, nexora"):
        loaded.with_value("profile", "cow", "set in this chat")


def test_a_switch_starts_from_the_profiles_stages(project: Path) -> None:
    file = project_config_file(project)
    file.write_text("[contextCompaction]\nenablePruning = true\n")
    assert load_in(project, {"NCA_PROFILE": "nexora"}).value("context.stages") == ("prune", "summarize")
    both = {"enableTruncate": True, "profile": "nexora"}
    assert defaults().with_values(both, "the call").value("context.stages") == ("summarize", "truncate")
    file.write_text('profile = "neuron"\n')
    save_value(file, "enablePrune", False)
    assert load_in(project).value("context.stages") == ("summarize", "truncate")


def test_settings_grouped_as_a_program_groups_them() -> None:
    nested = {"conversationMemory": {"enabled": False, "contextCompaction": {"threshold": 0.7}}, "agent": {}}
    loaded = defaults().with_values(nested, "the call")
    assert loaded.value("context.compact_threshold") == 0.7
    assert not loaded.settings.session.persist
    with pytest.raises(ConfigError, match=r"There is no setting contextCompaction\.treshold"):
        defaults().with_values({"contextCompaction": {"treshold": 1}}, "the call")
