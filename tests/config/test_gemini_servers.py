"""MCP servers of Gemini CLI's settings: used once the project is trusted, or named with why they are not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nca.config.layers import load
from nca.config.saving import file_to_change
from nca.errors import ConfigError

SETTINGS = {
    "context": {"fileName": "AGENTS.md"},
    "mcpServers": {
        "boost": {"command": "php", "args": ["artisan", "boost:mcp"], "trust": False},
        "docs": {"httpUrl": "https://example.com/mcp", "timeout": 5000},
        "old": {"url": "https://example.com/sse"},
    },
}


def test_they_wait_for_trust_and_sse_is_named(tmp_path: Path) -> None:
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini" / "settings.json").write_text(json.dumps(SETTINGS))
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"boost": {"command": "other"}}}))
    env = {"HOME": str(tmp_path / "home"), "NCA_HOME": str(tmp_path / "nca")}
    assert load(project=tmp_path, env=env, trusts=lambda _: False).settings.mcp.servers == ()
    loaded = load(project=tmp_path, env=env, trusts=lambda _: True)
    servers = {one.name: str(one) for one in loaded.settings.mcp.servers}
    assert servers == {"docs": "https://example.com/mcp", "boost": "other"}
    assert any("old was left out: SSE is not supported; use httpUrl." in note for note in loaded.notes)
    with pytest.raises(ConfigError, match="other agents read it too"):
        file_to_change("docs", tmp_path, env)
