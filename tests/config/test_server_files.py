"""Adding an MCP server to a settings file keeps everything else in it; removing one finds the file that defines it."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from nca.config.paths import project_config_file
from nca.config.saving import add_server, defining_files, file_to_change, remove_server
from nca.errors import ConfigError

FIELDS = {"command": "npx", "args": ["-y", "é\n"], "env": {"KEY": "v"}}
BEFORE = (
    "",
    "# mine\n[agent]\nmax_steps = 3 # few\n",
    "mcp.wait_seconds = 3\n[agent]\nmax_steps = 3\n",
    '[mcp]\nwait_seconds = 2 # long\n[agent]\n[mcp.servers.a]\ncommand = "x"\n',
    'mcp = {servers = {a = {command = "x"}}}\n',
    '[mcp.servers]\na.command = "x" # dotted\n# end\n',
    '[mcp.servers.a]\r\ncommand = "x" # in Windows\r\n',
    '[mcp.servers.a.env]\nK = "v"\n[agent]\nmax_steps = 3\n[mcp.servers.a]\ncommand = "x"\n',
)


@pytest.mark.parametrize("before", BEFORE)
def test_what_is_added_and_removed_again_leaves_the_rest(before: str, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(before.encode())
    add_server(file, "new", FIELDS, is_users_own=True)
    text = file.read_text()
    expected = tomllib.loads(before)
    assert tomllib.loads(text)["mcp"]["servers"].pop("new") == FIELDS
    assert all(line[line.index("#") :] in text for line in before.splitlines() if "#" in line)
    remove_server(file, "new", is_users_own=True)
    # A file in which nothing is left goes.
    assert (tomllib.loads(file.read_text()) if before else {}) == expected
    assert list(tmp_path.iterdir()) == ([file] if before else [])


words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


@hypothesis_settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(BEFORE), words.filter(str.strip), st.lists(words))
def test_any_command_reads_back(tmp_path: Path, before: str, command: str, args: list[str]) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(before.encode())
    add_server(file, "new", {"command": command, "args": args}, is_users_own=False)
    assert tomllib.loads(file.read_bytes().decode())["mcp"]["servers"]["new"] == {"command": command, "args": args}


def test_what_cannot_be_added_leaves_the_file(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    for text in ('[mcp.servers.a]\ncommand = "x"\n', "mcp = 3\n", "[broken"):
        file.write_text(text)
        for name, fields in (("a", FIELDS), ("b c", FIELDS), ("b", {}), ("b", {"url": "file:///x"})):
            with pytest.raises(ConfigError):
                add_server(file, name, fields, is_users_own=True)
        assert file.read_text() == text
    assert list(tmp_path.iterdir()) == [file]


def test_the_file_that_counts_is_the_one_to_change(tmp_path: Path) -> None:
    env, own, theirs = {"NCA_HOME": str(tmp_path)}, tmp_path / "config.toml", project_config_file(tmp_path / "p")
    for file, of_person in ((own, True), (theirs, False)):
        add_server(file, "a", {"command": "x"}, is_users_own=of_person)
    (tmp_path / "p" / ".mcp.json").write_text(
        json.dumps({"mcpServers": {"b": {"command": "x"}, "a": {"url": "http://x"}}})
    )
    project = tmp_path / "p"
    assert defining_files(project, env)["a"] == [own, project / ".mcp.json", theirs]
    assert file_to_change("a", project, env) == theirs
    with pytest.raises(ConfigError, match=r"\.mcp\.json defines b; other agents read it too"):
        file_to_change("b", project, env)
    with pytest.raises(ConfigError, match=r"no MCP server 'c'. Valid: a, b"):
        file_to_change("c", project, env)
