"""nca's hooks come into an agent's settings and go out of them again, and nothing else changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nca.agent_hooks.agents import (
    AGENTS,
    agent_named,
    command_line,
    installed,
    problem_of,
    programs,
    settings_file,
    uninstalled,
)
from nca.errors import ConfigError, UsageError

OTHERS = """{
  // mine
  "model": "opus", // the large one
  "hooks": {
    "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "mine"}]}],
    "Stop": [
      {
        "hooks": [{"type": "command", "command": "ring"}] /* loud */
      }
    ]
  }
}
"""
ALONE = "{\n  // Ask Ada before you change this file.\n}\n"
NONE_YET = '{\n  "hooks": {\n    // none yet: see wiki/hooks\n  }\n}\n'
TEXTS = (
    "",
    "{}",
    '{"a": 1}',
    '{\n  "a": 1 // one\n}\n',
    '{"hooks": {"Stop": []}}',
    OTHERS,
    ALONE,
    "{ // mine\n}\n",
    NONE_YET,
)


@pytest.mark.parametrize("name", [name for name, agent in AGENTS.items() if not agent.is_plugin])
@pytest.mark.parametrize("text", TEXTS)
def test_hooks_come_and_go(tmp_path: Path, text: str, name: str) -> None:
    agent, env, file = AGENTS[name], {"HOME": str(tmp_path)}, tmp_path / "settings.json"
    if text:
        file.write_text(text)
    change = installed(agent, env, file)
    assert change.is_needed
    file.write_text(change.after)
    assert programs(agent, file) == [command_line(agent, env)]
    assert not installed(agent, env, file).is_needed
    left = iter(change.after)
    assert all(char in left for char in text.replace("\n", "").replace(" ", ""))
    # What was not there before is removed.
    assert uninstalled(agent, file).after == text
    file.write_text(uninstalled(agent, file).after)
    assert not uninstalled(agent, file).is_needed
    file.write_text("{}\n")
    assert not uninstalled(agent, file).is_needed


def test_each_event_of_an_agent_has_one_hook(tmp_path: Path) -> None:
    agent, env = AGENTS["claude"], {"HOME": str(tmp_path), "NCA_HOME": str(tmp_path / "a b")}
    hooks = json.loads(installed(agent, env, tmp_path / "none.json").after)["hooks"]
    assert list(hooks) == list(agent.events)
    for event, [group] in hooks.items():
        assert group.get("matcher", "") == agent.matchers.get(event, "")
        assert group["hooks"] == [{"type": "command", "command": command_line(agent, env), "timeout": agent.timeout}]
    assert command_line(agent, env).startswith(f"NCA_HOME='{tmp_path}/a b' ")
    assert command_line(agent, env).endswith("2>/dev/null || true")


def test_codex_is_told_how_long_an_answer_may_be(tmp_path: Path) -> None:
    hooks = json.loads(installed(AGENTS["codex"], {"HOME": str(tmp_path)}, tmp_path / "none.json").after)["hooks"]
    limits = {event: group["hooks"][0].get("additionalContextLimit") for event, [group] in hooks.items()}
    # Codex warns of a limit for an event whose answer it does not read.
    assert {event for event, limit in limits.items() if limit} == {"SessionStart", "UserPromptSubmit", "PreToolUse"}


def test_hooks_of_another_installation_are_replaced(tmp_path: Path) -> None:
    agent, file = AGENTS["claude"], tmp_path / "settings.json"
    file.write_text(installed(agent, {"HOME": "/old"}, file).after.replace('"PreCompact"', '"PostCompact"'))
    file.write_text(installed(agent, {"HOME": str(tmp_path)}, file).after)
    assert programs(agent, file) == [command_line(agent, {"HOME": str(tmp_path)})]
    assert list(json.loads(file.read_text())["hooks"]) == list(agent.events)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": ', "it is not whole JSON"),
        ("{\n  a: 1\n}", "it is not whole JSON"),
        ("[]", "the file is not an object"),
        ('{"hooks": []}', "hooks is not an object"),
        ('{"hooks": {"PreCompact": {}}}', "hooks.PreCompact is not a list"),
    ],
)
def test_a_damaged_file_is_left_alone(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "settings.json"
    file.write_text(text)
    with pytest.raises(ConfigError) as error:
        installed(AGENTS["claude"], {"HOME": str(tmp_path)}, file)
    assert str(error.value).startswith(f"{file}: {reason}; nothing was changed.")
    assert file.read_text() == text


def test_settings_are_the_persons_or_the_projects(tmp_path: Path) -> None:
    env = {"HOME": "/home/ada"}
    assert settings_file(AGENTS["claude"], env, None) == Path("/home/ada/.claude/settings.json")
    assert settings_file(AGENTS["claude"], env | {"CLAUDE_CONFIG_DIR": "/c"}, None) == Path("/c/settings.json")
    assert settings_file(AGENTS["codex"], env, None) == Path("/home/ada/.codex/hooks.json")
    assert settings_file(AGENTS["gemini"], env, None) == Path("/home/ada/.gemini/settings.json")
    assert settings_file(AGENTS["claude"], env, tmp_path) == tmp_path / ".claude" / "settings.local.json"


def test_a_program_that_is_gone_is_named() -> None:
    command = command_line(AGENTS["claude"], {"HOME": "/home/ada"})
    assert problem_of(command) == ""
    gone = command.replace("/nca/agent_hooks/", "/gone/nca/agent_hooks/")
    assert problem_of(gone).endswith("/gone/nca/agent_hooks/client.py is gone; install again")


def test_an_unknown_agent_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"'emacs' has no hooks that nca knows; valid: claude, codex, gemini, opencode"
    ):
        agent_named("emacs")
