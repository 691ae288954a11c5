"""What a project has for Gemini CLI, Codex and opencode is used, waits for trust, or is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nca.agent.claude_parts import unused_parts
from nca.agent.project_instructions import nested_instructions, project_instructions
from nca.config.layers import load
from nca.config.loaded import LoadedSettings
from nca.config.other_agents import FILES, instruction_names, unused_settings
from nca.config.projects import TrustRequest
from nca.config.saving import file_to_change
from nca.errors import ConfigError

CODEX = """
approval_policy = "on-request"
sandbox_mode = "workspace-write"
project_doc_fallback_filenames = ["TEAM.md", "../secret.md"]

[sandbox_workspace_write]
network_access = false

[mcp_servers.docs]
url = "https://example.com/mcp"
bearer_token_env_var = "DOCS_TOKEN"
http_headers = { "X-Set" = "a,b" }

[mcp_servers.browser]
command = "npx"
args = ["-y", "browser"]
env_vars = ["DISPLAY"]
startup_timeout_sec = 30
enabled = false

[mcp_servers.limited]
url = "https://example.org/mcp"
disabled_tools = ["delete_file"]
"""
OPENCODE: dict[str, Any] = {
    "$schema": "https://opencode.ai/config.json",
    "instructions": ["./docs/style.md", "*.nix", "packages/*/AGENTS.md"],
    "permission": {"edit": "ask"},
    "mcp": {
        "local": {"type": "local", "command": ["bun", "x", "server"], "environment": {"KEY": "{env:MY_KEY}"}},
        "far": {"type": "remote", "url": "https://example.net/mcp", "headers": {"Authorization": "Bearer {env:T}"}},
        "docs": {"type": "remote", "url": "https://example.com/other", "enabled": False},
    },
}
GEMINI: dict[str, Any] = {
    "context": {"fileName": ["CONTEXT.md", ".env"], "discoveryMaxDirs": 3},
    "general": {"devtools": True},
    "mcpServers": {"web": {"httpUrl": "https://example.com/g"}, "narrow": {"command": "x", "includeTools": ["a"]}},
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "home" / "work"
    for folder in (".git", ".codex", ".gemini", "docs", "below"):
        (project / folder).mkdir(parents=True)
    (project / ".codex" / "config.toml").write_text(CODEX)
    (project / "opencode.json").write_text(json.dumps(OPENCODE))
    (project / ".gemini" / "settings.json").write_text(json.dumps(GEMINI))
    return project


def environment(project: Path) -> dict[str, str]:
    return {"HOME": str(project.parent), "NCA_HOME": str(project.parent / "nca")}


def loaded(project: Path, asked: list[TrustRequest], *, is_trusted: bool = True) -> LoadedSettings:
    def trusts(what: TrustRequest) -> bool:
        asked.append(what)
        return is_trusted

    return load(project=project, env=environment(project), trusts=trusts)


def test_servers_wait_for_trust_and_what_nca_cannot_limit_is_left_out(project: Path) -> None:
    asked: list[TrustRequest] = []
    assert loaded(project, asked, is_trusted=False).settings.mcp.servers == ()
    found = loaded(project, asked)
    servers = {one.name: one for one in found.settings.mcp.servers}
    assert set(servers) == {"web", "docs", "browser", "local", "far"}
    assert (servers["docs"].url, servers["docs"].enabled) == ("https://example.com/other", False)
    assert (servers["browser"].args, servers["browser"].environment) == (("-y", "browser"), ("DISPLAY",))
    assert not servers["browser"].enabled
    assert (servers["local"].command, servers["local"].args) == ("bun", ("x", "server"))
    assert servers["local"].env == (("KEY", "${MY_KEY}"),)
    assert servers["far"].headers == (("Authorization", "Bearer ${T}"),)
    assert {name for what in asked for name, _ in what.settings} == {"mcp.servers"}
    assert [note for note in found.notes if "limited" in note or "narrow" in note] == [
        f"{project}/.gemini/settings.json: the MCP server narrow was left out: "
        "nca uses all tools of a server or none (includeTools).",
        f"{project}/.codex/config.toml: the MCP server limited was left out: "
        "nca uses all tools of a server or none (disabled_tools).",
    ]


def test_codex_fields_become_those_of_a_server(project: Path) -> None:
    (project / "opencode.json").unlink()
    docs = next(one for one in loaded(project, []).settings.mcp.servers if one.name == "docs")
    assert (docs.url, docs.token_variable) == ("https://example.com/mcp", "DOCS_TOKEN")
    assert docs.headers == (("X-Set", "a,b"),)
    with pytest.raises(ConfigError, match="other agents read it too"):
        file_to_change("docs", project, environment(project))


def test_what_is_not_used_is_named(project: Path) -> None:
    assert unused_parts(project, None, runs_own=False) == (
        "Not used here of .gemini/settings.json: context.fileName (.env), context.discoveryMaxDirs, general; "
        "of .codex/config.toml: project_doc_fallback_filenames (../secret.md), approval_policy, sandbox_mode, "
        "sandbox_workspace_write; of opencode.json: instructions (*.nix, packages/*/AGENTS.md), permission."
    )


def test_the_files_that_they_name_are_instructions(project: Path) -> None:
    for name in ("docs/style.md", "CONTEXT.md", "GEMINI.md", "TEAM.md", "below/CONTEXT.md", ".env"):
        (project / name).write_text(f"This is {name}.")
    named = instruction_names(project)
    assert named == (("CONTEXT.md",), ("TEAM.md",), ("./docs/style.md",))
    text = project_instructions(project, 100_000, project.parent).text
    assert "This is TEAM.md." in text
    assert "This is docs/style.md." in text
    assert all(other not in text for other in ("CONTEXT.md", "GEMINI.md", ".env"))
    (project / "TEAM.md").unlink()
    text = project_instructions(project, 100_000, project.parent).text
    assert "This is CONTEXT.md." in text
    assert "GEMINI.md" not in text
    assert "This is below/CONTEXT.md." in nested_instructions(project, project / "below", 1_000).text
    (project / "AGENTS.md").write_text("These are the project's.")
    text = project_instructions(project, 100_000, project.parent).text
    assert "These are the project's." in text
    assert "CONTEXT.md" not in text


ODD = {"command": [5], "environment": 7, "headers": [1], "url": {}, "enabled": "x", "type": []}


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "5", '{"mcp": [1], "instructions": {"a": 1}, "context": 3}'),
        json.dumps({"mcp": {"a": ODD, "b": 5, "": {}}, "mcpServers": {"a": ODD, "b": None}, "instructions": [7, {}]}),
    ],
)
def test_a_strange_file_says_at_most_one_line(project: Path, text: str) -> None:
    for file in FILES:
        (project / file.path).write_text(text)
    found = loaded(project, [])
    assert found.settings.mcp.servers == ()
    assert instruction_names(project) == ((), (), ())
    assert unused_parts(project, None, runs_own=False).isprintable()
    assert all(note.isprintable() for note in found.notes)


@pytest.mark.parametrize(
    ("path", "settings", "unused"),
    [
        (
            ".codex/config.toml",
            'model = "m"\n[agents]\nmax_depth = 1\n[features]\nx = true\n',
            ["model", "agents", "features"],
        ),
        (".gemini/settings.json", '{"contextFileName": "AGENTS.md", "autoAccept": true}', ["autoAccept"]),
        (".gemini/settings.json", '{"experimental": {"a": true}, "general": {}}', ["experimental", "general"]),
        (
            "opencode.json",
            '{"instructions": ["./AGENTS.md"], "agent": {"build": {}}, "plugin": []}',
            ["agent", "plugin"],
        ),
        (
            "opencode.json",
            '{"instructions": [".cursor/rules/*.mdc", "*.md"]}',
            ["instructions (.cursor/rules/*.mdc, *.md)"],
        ),
    ],
)
def test_set_ups_of_the_shapes_that_public_repositories_have(
    tmp_path: Path, path: str, settings: str, unused: list[str]
) -> None:
    (tmp_path / path).parent.mkdir(exist_ok=True)
    (tmp_path / path).write_text(settings)
    assert dict(unused_settings(tmp_path)) == {path: unused}


def test_the_docs_have_the_same_table() -> None:
    def code(names: tuple[str, ...]) -> str:
        return " ".join(("|", *((", ".join(f"`{name}`" for name in names),) if names else ())))

    rows = [f"{code((file.path,))} {code((file.servers,))} {code(file.instructions)} |" for file in FILES]
    page = (Path(__file__).parents[2] / "docs" / "other-agents.md").read_text()
    head = "| file | MCP servers, once trusted | instruction files |\n| --- | --- | --- |\n"
    assert head + "\n".join(rows) + "\n\n" in page
