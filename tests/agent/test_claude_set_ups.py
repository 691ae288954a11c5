"""Set-ups of the shapes that public repositories have: each part is used, waits for trust, or is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nca.agent.claude_parts import unused_parts
from nca.config.claude_settings import KEY_VARIABLE
from nca.config.layers import load
from nca.config.projects import TrustRequest

START = {"hooks": [{"type": "command", "command": "$CLAUDE_PROJECT_DIR/.claude/hooks/start.sh"}]}
MANY_RULES = {
    "includeCoAuthoredBy": False,
    "permissions": {
        "allow": [
            "Bash(cargo update:*)",
            "Bash(ls)",
            "Bash(python3 -m py_compile:*)",
            "mcp__docs__search",
            "Read(~/.bashrc)",
            "WebFetch(domain:docs.example.com)",
            "Bash(git commit -m ':*')",
        ],
        "deny": [],
    },
}
ONLY_HOOKS = {"hooks": {"SessionStart": [START], "PostToolUse": [{"matcher": "Write|Edit", **START}], "Stop": [START]}}
ONLY_SERVERS = {"mcpServers": {"pdb": {"command": "python", "args": ["server.py"]}}}
A_MODEL = {"theme": "dark", "model": "opus"}
OWN_MODEL = {"hooks": {"PreToolUse": [{"matcher": "*", **START}]}, "model": "house-model"}


@pytest.mark.parametrize(
    ("settings", "waiting", "line", "notes"),
    [
        (
            MANY_RULES,
            {"permissions.allow"},
            "Not used here of .claude: includeCoAuthoredBy.",
            [
                "5 allow rules of .claude/settings.json hold here.",
                ".claude/settings.json: Read(~/.bashrc), Bash(git commit -m ':*') allow more than a rule of nca can, "
                "so nca asks.",
            ],
        ),
        (ONLY_HOOKS, {"hooks"}, "", []),
        (ONLY_SERVERS, set(), "Not used here of .claude: mcpServers.", []),
        (A_MODEL, {"model.name"}, "Not used here of .claude: theme.", []),
        (OWN_MODEL, {"hooks"}, "Not used here of .claude: model ('house-model' is not a model that nca knows).", []),
    ],
)
def test_every_part_is_used_or_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, Any],
    waiting: set[str],
    line: str,
    notes: list[str],
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "sk-x")
    project = tmp_path / "work"
    (project / ".claude").mkdir(parents=True)
    (project / ".git").mkdir()
    (project / ".claude" / "settings.json").write_text(json.dumps(settings))
    env = {"HOME": str(tmp_path / "home"), "NCA_HOME": str(tmp_path / "nca"), KEY_VARIABLE: "sk-x"}
    asked: list[TrustRequest] = []

    def trusts(what: TrustRequest) -> bool:
        asked.append(what)
        return True

    loaded = load(project=project, env=env, trusts=trusts)
    assert {name for what in asked for name, _ in what.settings} == waiting
    assert unused_parts(project, None, runs_own=False) == line
    assert list(loaded.notes) == notes
