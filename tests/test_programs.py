"""The configuration samples of the five programs load as printed, and behave as each program's documentation says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import nca
from nca.config.layers import load
from nca.config.loaded import LoadedSettings, defaults
from nca.config.schema import KEYS
from nca.wire import message_to_dict
from tests.context.samples import assistant, step, user

SAMPLES = Path(__file__).parent / "data" / "programs"
WORDS = "words that fill a line of an ordinary conversation and say nothing much "


def toml(name: str, tmp_path: Path) -> LoadedSettings:
    """A sample as the project's file; the rest is default."""
    file = tmp_path / ".nca" / "config.toml"
    file.parent.mkdir()
    file.write_text((SAMPLES / name).read_text(encoding="utf-8"), encoding="utf-8")
    return load(project=tmp_path, env={"NCA_HOME": str(tmp_path / "home")}, trusts=lambda what: True)


def sample(name: str) -> dict[str, Any]:
    return dict(json.loads((SAMPLES / name).read_text(encoding="utf-8")))


def changed(loaded: LoadedSettings) -> dict[str, Any]:
    return {key: loaded.value(key) for key in KEYS if loaded.value(key) != KEYS[key].default}


def turns(count: int, words: int = 1, *, steps: int = 0) -> list[dict[str, Any]]:
    """Complete turns, each with so many tool calls between question and answer."""
    messages = []
    for number in range(1, count + 1):
        messages.append(user(f"question {number} {WORDS * words}".strip()))
        for place in range(steps):
            messages += step(f"c{number}_{place}", f"result {number} {WORDS * words}", path=f"src/{number}_{place}.py")
        messages.append(assistant(f"answer {number} {WORDS * words}".strip()))
    return [message_to_dict(message) for message in messages]


def texts(result: nca.CompactionResult) -> list[str]:
    return [str(row["content"]) for row in result.messages]


SUMMARY = "- The user asked many questions, each with a number, and every one of them was answered in full."


class Summarizer:
    """Answers with the same text; `asked` holds what it was shown."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, messages: list[dict[str, Any]]) -> str:
        self.asked.append(messages[0]["content"])
        return SUMMARY


MEMORY = {"context.max_tokens": 32_000, "context.max_messages": 50, "context.idle_threshold": 0.75}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nca-context.toml", MEMORY),
        ("nca-memory.toml", MEMORY),
        (
            "nca-long.toml",
            {"context.max_tokens": 64_000, "context.max_messages": 100, "context.idle_threshold": 0.8},
        ),
        ("nca-off.toml", {"context.auto": "off"}),
        (
            "nexora-agent.toml",
            {
                "model.summarizer": "cerebras/llama3.1-8b",
                "context.preserve_turns": 5,
                "context.compact_threshold": 0.8,
            },
        ),
    ],
)
def test_the_toml_samples_load(name: str, expected: dict[str, Any], tmp_path: Path) -> None:
    loaded = toml(name, tmp_path)
    assert changed(loaded) == expected
    assert loaded.value("context.idle_threshold") == expected.get("context.idle_threshold", 0.0)


def test_nca_sets_its_memory(tmp_path: Path) -> None:
    loaded = toml("nca-memory.toml", tmp_path)
    file = str(tmp_path / ".nca" / "config.toml")
    assert {loaded.origin(key) for key in KEYS if key.startswith("memory.")} == {file}
    memory = loaded.settings.memory
    assert (memory.file_path, memory.max_notes, memory.auto_compact_on_finish) == (".nca/memory.json", 128, False)


@pytest.mark.parametrize(
    "name", ["neurolink-sdk.json", "neurolink-compact-session.json", "neurolink-compaction-config.json"]
)
def test_the_mappings_of_neurolink_load(name: str) -> None:
    loaded = defaults().with_values(sample(name), "the call")
    ratios = ("context.keep_recent_ratio", "context.compact_threshold")
    found = {name: value for name, value in changed(loaded).items() if name not in ratios}
    assert found == {"model.summarizer": "vertex_ai/gemini-2.5-flash"}
    assert loaded.value("context.compact_threshold") in ("auto", 0.8)


def test_the_environment_of_neurolink_loads(tmp_path: Path) -> None:
    loaded = load(project=None, env={"NCA_HOME": str(tmp_path), **sample("neurolink-environment.json")})
    assert changed(loaded) == {
        "session.persist": False,
        "session.max_sessions": 50,
        "model.summarizer": "vertex_ai/gemini-2.5-flash",
    }


def test_cowagent_loads_and_the_chats_word_is_answered_with_ncas(tmp_path: Path) -> None:
    loaded = defaults().with_values(sample("cowagent-config.json"), "the call")
    assert changed(loaded) == {"context.max_tokens": 50_000, "context.max_turns": 20, "agent.max_steps": 15}
    loaded = loaded.with_value("agent_max_context_tokens", "80000", "set in this chat")
    assert loaded.settings.context.max_tokens == 80_000
    assert "agent_max_context_tokens is context.max_tokens in nca." in loaded.notes


def test_nca_keeps_the_newest_messages_behind_a_system_summary() -> None:
    log = [{"role": "system", "content": "You are a test."}, *turns(340, words=2)]
    write = Summarizer()
    result = nca.compact(log, context_window=200_000, summarizer=write, settings={"profile": "nca"})
    assert result.budget_tokens == 32_000
    assert result.stages_used == ("summarize",)
    assert result.messages[0] == log[0]
    assert result.messages[1]["role"] == "system"
    assert texts(result)[1].startswith("## Conversation Summary (Earlier Context)\n")
    assert SUMMARY in texts(result)[1]
    assert result.messages[2:] == log[-50:]
    assert "short list of bullets" in write.asked[0]


def test_the_nca_sample_alone_limits_the_messages_too(tmp_path: Path) -> None:
    context = toml("nca-context.toml", tmp_path).settings.context
    result = nca.compact(
        turns(360, words=2),
        settings={"context.max_messages": context.max_messages, "memory": {}},
        context_window=49_230,
    )
    assert result.compacted
    assert 0 < len(result.messages) - 1 <= 50


def test_neurolink_prunes_first_and_at_eighty_percent() -> None:
    log = turns(40, words=12, steps=12)
    result = nca.compact(log, context_window=200_000, settings={"profile": "neurolink"}, target=0.7)
    assert result.stages_used == ("prune",)
    assert "[Tool result cleared]" in texts(result)
    settings = defaults().with_value("profile", "neurolink", "test").settings
    assert settings.context.admission.direction == "tail"
    assert settings.context.stages == ("prune", "deduplicate", "summarize", "truncate")


@pytest.mark.parametrize(("count", "kept"), [(20, 20), (21, 11), (25, 13), (60, 15)])
@pytest.mark.parametrize("words", [0, 5])
def test_cowagent_trims_the_oldest_half_of_the_complete_turns(count: int, kept: int, words: int) -> None:
    log = turns(count, words)
    result = nca.compact(log, settings=sample("cowagent-config.json"), summarizer=Summarizer())
    assert result.compacted == (count > 20)
    assert result.messages[-2 * kept :] == log[-2 * kept :]
    assert len(result.messages) <= 2 * kept + 1
    assert result.stages_used == (("trim",) if count > 20 else ())
    again = nca.compact(result.messages, settings=sample("cowagent-config.json"))
    assert not again.compacted


def test_cowagent_condenses_a_short_session_over_its_budget() -> None:
    log = turns(4, words=30, steps=30)
    result = nca.compact(log, context_window=1_000_000, settings={"profile": "cowagent"})
    assert result.tokens_before > result.budget_tokens == 50_000
    assert result.stages_used == ("condense",)
    assert [row["content"] for row in result.messages] == [row["content"] for row in turns(4, words=30)]


def test_cowagent_halves_a_longer_session_over_its_budget() -> None:
    log = turns(12, words=32, steps=8)
    result = nca.compact(
        log, context_window=1_000_000, settings={"profile": "cowagent"}, summarizer=Summarizer(), target=0.7
    )
    assert result.stages_used == ("trim",)
    kept = log[-6 * 18 :]
    assert result.messages[1:] == kept


def test_neuron_clears_all_but_two_results_then_summarizes_all_but_five_messages() -> None:
    log = turns(8, words=18, steps=3)
    cleared = nca.compact(log, context_window=20_000, settings={"profile": "neuron"}, target=0.6)
    assert cleared.stages_used == ("prune",)
    assert texts(cleared).count("[tool result cleared]") > 0
    results = [row for row in cleared.messages if row["role"] == "tool"]
    assert [row["content"] for row in results[-2:]] == [row["content"] for row in log if row["role"] == "tool"][-2:]
    log = turns(60, words=10)
    short = nca.compact(log, context_window=20_000, settings={"profile": "neuron"}, summarizer=Summarizer())
    assert short.stages_used == ("summarize",)
    assert texts(short)[0].startswith("[Summary of earlier conversation]\n")
    assert short.messages[1:] == log[-5:]


def test_nexora_keeps_the_newest_five_turns() -> None:
    log = turns(60, words=10)
    result = nca.compact(log, context_window=20_000, settings={"profile": "nexora"}, summarizer=Summarizer())
    assert result.stages_used == ("summarize",)
    assert result.messages[-10:] == log[-10:]


@pytest.mark.parametrize("window", [10_000, 128_000, 1_000_000])
def test_nexora_acts_at_eighty_percent_of_the_window(window: int) -> None:
    """Its document divides by the window, and nca by the budget, which is less by the room for the answer."""
    for share, is_due in ((0.79, False), (0.81, True)):
        text = "word " * int(share * window)
        log = [{"role": "user", "content": text}]
        check = nca.check_context_budget(log, context_window=window, settings={"profile": "nexora"})
        assert check.estimated_input_tokens == pytest.approx(share * window, rel=0.01)
        assert check.should_compact == is_due


def test_a_foreign_provider_counts_as_it_is_told() -> None:
    log = turns(10, words=10)
    plain = nca.check_context_budget(log, context_window=50_000).estimated_input_tokens
    told = nca.check_context_budget(log, context_window=50_000, settings={"provider": "mistral"})
    assert told.estimated_input_tokens == pytest.approx(plain * 1.2, abs=2)
