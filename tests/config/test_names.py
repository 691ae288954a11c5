"""Names from other programs reach their setting wherever settings are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nca.compat.names import FOREIGN_NAMES
from nca.config.layers import defaults, load
from nca.config.overrides import _BY_NAME, _plain, canonical, nearest
from nca.config.schema import KEYS
from nca.errors import ConfigError

_TABLE: list[tuple[str, Any, str, Any]] = [
    ("memory.context.context_window_target", 64_000, "context.max_tokens", 64_000),
    ("agent_max_context_tokens", 80_000, "context.max_tokens", 80_000),
    ("memory.context.max_retained_messages", 100, "context.max_messages", 100),
    ("memory.context.auto_summarize_threshold", 80, "context.idle_threshold", 0.8),
    ("memory.context.auto_summarize_threshold", 1, "context.idle_threshold", 0.01),
    ("memory.context.enable_auto_summarize", False, "context.auto", "off"),
    ("contextCompaction.enabled", False, "context.auto", "off"),
    ("contextCompaction.threshold", 0.7, "context.compact_threshold", 0.7),
    ("agent.summarization_threshold", 0.9, "context.compact_threshold", 0.9),
    ("agent_max_context_turns", 30, "context.max_turns", 30),
    ("agent_max_steps", 9, "agent.max_steps", 9),
    ("agent.summarization_preserve_turns", 10, "context.preserve_turns", 10),
    ("contextCompaction.enablePruning", False, "context.stages", ("deduplicate", "summarize", "truncate")),
    ("enablePrune", False, "context.stages", ("deduplicate", "summarize", "truncate")),
    ("contextCompaction.enableDeduplication", False, "context.stages", ("prune", "summarize", "truncate")),
    ("conversationMemory.enableSummarization", False, "context.stages", ("prune", "deduplicate", "truncate")),
    ("contextCompaction.enableSlidingWindow", False, "context.stages", ("prune", "deduplicate", "summarize")),
    ("contextCompaction.enableSlidingWindow", True, "context.stages", KEYS["context.stages"].default),
    ("contextCompaction.maxToolOutputBytes", 1024, "context.admission.max_bytes", 1024),
    ("contextCompaction.maxToolOutputLines", 99, "context.admission.max_lines", 99),
    ("contextCompaction.fileReadBudgetPercent", 0.5, "context.admission.file_ratio", 0.5),
    ("pruneProtectTokens", 30_000, "context.prune.protect_tokens", 30_000),
    ("pruneMinimumSavings", 10_000, "context.prune.minimum_savings_tokens", 10_000),
    ("pruneProtectedTools", ["skill", "x"], "context.prune.protected_tools", ("skill", "x")),
    ("keepRecentRatio", 0.2, "context.keep_recent_ratio", 0.2),
    ("truncationFraction", 0.25, "context.truncate.fraction", 0.25),
    ("conversationMemory.enabled", False, "session.persist", False),
    ("summarizationModel", "gemini-2.5-flash", "model.summarizer", "gemini-2.5-flash"),
    ("permissions.mode", "plan", "agent.permission", "plan"),
]


@pytest.mark.parametrize(("name", "raw", "key", "value"), _TABLE)
def test_each_seed_name_in_the_chat_in_toml_and_in_the_environment(
    name: str, raw: Any, key: str, value: Any, tmp_path: Path
) -> None:
    chat = defaults().with_value(name, raw, "set in this chat")
    assert chat.value(key) == value
    assert chat.notes == (f"{name} is {key} in nca.",)

    text = f"{name} = {str(raw).lower() if isinstance(raw, bool) else repr(raw)}\n"
    file = tmp_path / "config.toml"
    file.write_text(text)
    toml = load(project=None, env={"NCA_HOME": str(tmp_path)})
    assert toml.value(key) == value
    assert toml.notes == (f"{file}:1: {name} is {key} in nca.",)
    file.unlink()

    variable = f"NCA_{name.upper().replace('.', '__')}"
    written = ",".join(raw) if isinstance(raw, list) else str(raw)
    env = load(project=None, env={"NCA_HOME": str(tmp_path), variable: written})
    assert env.value(key) == value
    assert env.origin(key) == f"environment {variable}"


def test_the_seeds_own_samples_load(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(
        "[memory.context]\ncontext_window_target = 32000\nmax_retained_messages = 50\n"
        "auto_summarize_threshold = 75\nenable_auto_summarize = true\n"
        "[conversationMemory]\nenabled = true\nenableSummarization = true\n"
        "[conversationMemory.contextCompaction]\nenabled = true\nthreshold = 0.8\nenablePruning = true\n"
        "enableDeduplication = true\nenableSlidingWindow = true\nmaxToolOutputBytes = 51200\n"
        "maxToolOutputLines = 2000\nfileReadBudgetPercent = 0.6\n"
        "[agent]\nsummarization_threshold = 0.80\nsummarization_preserve_turns = 5\n"
        'summarization_provider = "cerebras"\nsummarization_model = "llama3.1-8b"\n'
    )
    loaded = load(project=None, env={"NCA_HOME": str(tmp_path)})
    assert loaded.settings.model.summarizer == "cerebras/llama3.1-8b"
    assert loaded.settings.context.max_tokens == 32_000
    changed = {key for key in KEYS if loaded.value(key) != KEYS[key].default}
    # A threshold of 75 is a number of its own: it does not follow the compaction threshold as the default does.
    changed_context = {"max_tokens", "max_messages", "idle_threshold", "compact_threshold", "preserve_turns"}
    assert changed == {"model.summarizer", *(f"context.{name}" for name in changed_context)}
    assert (loaded.settings.context.idle_threshold, loaded.settings.context.compact_threshold) == (0.75, 0.8)


def test_the_environment_of_seed_two(tmp_path: Path) -> None:
    env = {
        "NCA_HOME": str(tmp_path),
        "NEUROLINK_MEMORY_ENABLED": "false",
        "NEUROLINK_TOKEN_THRESHOLD": "90000",
        "NEUROLINK_MEMORY_MAX_SESSIONS": "7",
        "NEUROLINK_SUMMARIZATION_ENABLED": "false",
        "NEUROLINK_SUMMARIZATION_PROVIDER": "vertex",
        "NEUROLINK_SUMMARIZATION_MODEL": "gemini-2.5-flash",
        "NEUROLINK_SOMETHING_ELSE": "x",
    }
    settings = load(project=None, env=env).settings
    assert not settings.session.persist
    assert settings.context.compact_tokens == 90_000
    assert settings.session.max_sessions == 7
    assert settings.context.stages == ("prune", "deduplicate", "truncate")
    assert settings.model.summarizer == "vertex_ai/gemini-2.5-flash"


def test_beside_the_canonical_name_the_canonical_one_counts(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[context]\nmax_turns = 3\nauto = 'off'\n[memory.context]\nenable_auto_summarize = true\n")
    loaded = load(project=None, env={"NCA_HOME": str(tmp_path)})
    assert loaded.value("context.auto") == "off"
    assert f"{file}:3: context.auto overrules memory.context.enable_auto_summarize." in loaded.notes


def test_stage_switches_add_up_and_come_back_at_their_place() -> None:
    loaded = defaults().with_values({"enablePrune": False, "enableTruncate": False, "enableSummarize": "no"}, "test")
    assert loaded.settings.context.stages == ("deduplicate",)
    loaded = loaded.with_value("enableTruncate", True, "test").with_value("enablePrune", "on", "test")
    assert loaded.settings.context.stages == ("prune", "deduplicate", "truncate")
    assert loaded.with_value("enableSummarize", True, "t").value("context.stages") == KEYS["context.stages"].default


def test_a_half_of_the_summarizer_joins_the_other_half_in_force() -> None:
    both = {"agent.summarization_provider": "groq", "agent.summarization_model": "meta/llama"}
    loaded = defaults().with_values(both, "test")
    assert loaded.value("model.summarizer") == "groq/meta/llama"
    assert loaded.with_value("agent.summarization_model", "b", "t").value("model.summarizer") == "groq/b"
    assert loaded.with_value("agent.summarization_provider", "c", "t").value("model.summarizer") == "c/meta/llama"
    bare = defaults().with_value("agent.summarization_model", "m", "t")
    assert bare.with_value("agent.summarization_provider", "p", "t").value("model.summarizer") == "p/m"
    for wrong in (3, "", "a\0"):
        with pytest.raises(ConfigError, match="a model's name"):
            defaults().with_value("agent.summarization_model", wrong, "t")


def test_no_two_names_are_confused() -> None:
    names = [_plain(name) for foreign in FOREIGN_NAMES for name in foreign.names]
    assert len(names) == len(set(names)) == len(_BY_NAME)
    assert not {_plain(key) for key in KEYS} & set(names)
    assert all(foreign.key in KEYS for foreign in FOREIGN_NAMES)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("context.compact_treshold", "context.compact_threshold"),
        ("protect_tokens", "context.prune.protect_tokens"),
        ("context.protect_tokens", "context.prune.protect_tokens"),
        ("contextCompaction.treshold", "contextCompaction.threshold"),
        ("maxsteps", "agent.max_steps"),
        ("zzz", None),
        ("x" * 1_000_000, None),
    ],
)
def test_the_nearest_name(name: str, near: str | None) -> None:
    assert nearest(name) == near


def test_canonical_names_are_read_in_any_case() -> None:
    for key in KEYS:
        found = canonical(key.upper())
        assert found is not None
        assert (found.key, found.foreign) == (key, None)
    assert canonical("nothing") is None
