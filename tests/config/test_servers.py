"""`[mcp.servers.NAME]`: reading, merging layers, refusals with the line, and trust."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nca.config.example import toml_value
from nca.config.layers import load
from nca.config.loaded import LoadedSettings
from nca.config.paths import project_config_file
from nca.config.projects import TrustCheck, TrustRequest, TrustStore
from nca.config.saving import save_value
from nca.errors import ConfigError

ONE = '[mcp.servers.files]\ncommand = "files"\nargs = ["--root", "."]\n[mcp.servers.files.env]\nTOKEN = "secret"\n'


class Home:
    """The person's file and a project's."""

    def __init__(self, path: Path) -> None:
        self.project = path / "project"
        self.env = {"NCA_HOME": str(path / "home")}
        self.own = path / "home" / "config.toml"
        self.theirs = project_config_file(self.project)
        for file in (self.own, self.theirs):
            file.parent.mkdir(parents=True)

    def load(self, trusts: TrustCheck | None = None) -> LoadedSettings:
        return load(project=self.project, env=self.env, trusts=trusts)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_tables_by_name_are_read(home: Home) -> None:
    home.own.write_text(
        ONE + '[mcp.servers.web]\nurl = "https://example.org/mcp"\nheaders = {A = "b"}\nenabled = "off"\n'
    )
    files, web = home.load().settings.mcp.servers
    assert (files.name, files.command, files.args, files.env) == (
        "files",
        "files",
        ("--root", "."),
        (("TOKEN", "secret"),),
    )
    assert (web.name, web.url, web.headers, web.enabled) == ("web", "https://example.org/mcp", (("A", "b"),), False)


def test_values_of_variables_and_headers_are_not_shown(home: Home) -> None:
    home.own.write_text(ONE)
    shown = toml_value(home.load().value("mcp.servers"))
    assert "TOKEN" in shown
    assert "secret" not in shown


def test_a_later_layer_replaces_a_server_of_its_name_and_keeps_the_others(home: Home) -> None:
    home.own.write_text(ONE + '[mcp.servers.more]\ncommand = "more"\n')
    home.theirs.write_text('[mcp.servers.files]\ncommand = "other"\n')
    assert [(one.name, one.command) for one in home.load(lambda _: True).settings.mcp.servers] == [
        ("more", "more"),
        ("files", "other"),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '[mcp.servers.a]\ncomand = "x"\n',
            "config.toml:2: mcp.servers a: there is no field comand; did you mean command?",
        ),
        ('[mcp.servers.a]\nargs = ["x"]\n', "config.toml:1: mcp.servers a: either command or url must be given."),
        ('[mcp.servers.a]\ncommand = "x"\nurl = "https://x"\n', "either command or url must be given, not both"),
        ('[mcp.servers.a]\nurl = "file:///etc/passwd"\n', "url must begin with http:// or https://"),
        ("[mcp.servers.a]\ncommand = 1\n", "command = 1 is not valid; valid: text"),
        ('[mcp.servers.a]\ncommand = "x"\nenv = ["A=b"]\n', "a table of texts"),
        ('[mcp.servers.a]\ncommand = "x"\nenv = {A = 1}\n', "a table of texts"),
        ('[mcp.servers."a b"]\ncommand = "x"\n', "a server's name is 1 to 32 letters"),
        ('[mcp]\nservers = "x"\n', "tables by name"),
        ("[mcp.servers]\na = 1\n", "mcp.servers a = 1 is not a table"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_place(home: Home, text: str, said: str) -> None:
    home.own.write_text(text)
    with pytest.raises(ConfigError) as caught:
        home.load()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_environment_cannot_set_one(home: Home) -> None:
    home.env["NCA_MCP__SERVERS__A__COMMAND"] = "touch"
    with pytest.raises(ConfigError, match=r"set in a file, as \[mcp.servers.NAME\]"):
        home.load()


def test_a_projects_server_counts_only_once_trusted_and_any_change_asks_again(home: Home) -> None:
    asked: list[TrustRequest] = []
    known = TrustStore(home.env)

    def trusts(what: TrustRequest) -> bool:
        asked.append(what)
        return known.decision(what) is True

    home.theirs.write_text(ONE)
    assert home.load(trusts).settings.mcp.servers == ()
    known.record(asked[-1], is_trusted=True)
    assert [one.name for one in home.load(trusts).settings.mcp.servers] == ["files"]
    for old, new in (
        ("files", "file"),
        ('"."', '"/"'),
        ("secret", "other"),
        ("[mcp.servers.files.env]", 'cwd = "/"\n[mcp.servers.files.env]'),
    ):
        home.theirs.write_text(ONE.replace(old, new))
        assert home.load(trusts).settings.mcp.servers == ()
    home.theirs.write_text(ONE)
    assert [one.name for one in home.load(trusts).settings.mcp.servers] == ["files"]


def test_it_is_not_saved_key_by_key(home: Home) -> None:
    home.own.write_text(ONE)
    with pytest.raises(ConfigError, match=r"as \[mcp.servers.NAME\]"):
        save_value(home.own, "mcp.servers", {"a": {"command": "x"}}, is_users_own=True)
    assert home.own.read_text() == ONE


def test_a_projects_mcp_json_counts_once_it_is_trusted(home: Home) -> None:
    servers: dict[str, object] = {
        "files": {"command": "npx", "args": ["-y", "files"], "env": {"TOKEN": "${TOKEN}"}, "type": "stdio", "x": 1},
        "web": {"type": "http", "url": "https://example.org/mcp", "headers": {"A": "b"}, "disabled": True},
        "two words": {"command": "a"},
        "nothing": {},
        "odd": {"command": ["a"]},
        "text": "a",
        "old": {"type": "sse", "url": "https://example.org/sse"},
    }
    (home.project / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    loaded = home.load()
    assert loaded.settings.mcp.servers == ()
    assert any("wait for your trust: mcp.servers (" in note for note in loaded.notes)
    asked: list[TrustRequest] = []

    def trusts(what: TrustRequest) -> bool:
        asked.append(what)
        return True

    home.theirs.write_text('[mcp.servers.web]\nurl = "https://nearer.example.org/mcp"\n')
    loaded = home.load(trusts)
    assert [str(one) for one in loaded.settings.mcp.servers] == ["npx -y files", "https://nearer.example.org/mcp"]
    assert [name for name, _ in asked[0].settings] == ["mcp.servers", "mcp.servers"]
    left_out = [note for note in loaded.notes if "was left out" in note]
    names = [note.split(" was left out")[0].rsplit(" ", 1)[-1] for note in left_out]
    assert names == ["words", "nothing", "odd", "text", "old"]
    assert left_out[-1].endswith("the MCP server old was left out: SSE is not supported; use http.")


@pytest.mark.parametrize("text", ["{", "[]", '{"mcpServers": []}', "\udcff", "[" * 100_000])
def test_an_mcp_json_that_is_none_stops_nothing(home: Home, text: str) -> None:
    (home.project / ".mcp.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert home.load().settings.mcp.servers == ()
