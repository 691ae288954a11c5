"""What a client may see: the sessions of its own project, of folders that a person names, or all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mcp import MCPError
from mcp.client.client import Client

from nca.errors import UsageError
from nca.mcp_server.history import Scope
from nca.sessions import Store
from nca.tools.tool import ToolError
from tests.mcp_server.asking import asked, served, store_of, talk, tried
from tests.mcp_server.other_sessions import claude_session
from tests.testing.forks import forked


class Home:
    """Sessions of two repositories, of a folder without one, and of Claude Code in the first."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.shop, self.garden, self.notes = (path / name for name in ("shop", "garden", "notes"))
        for repository in (self.shop, self.garden):
            (repository / ".git").mkdir(parents=True)
        (self.shop / "web").mkdir()
        self.notes.mkdir()
        with Store.open(store_of(path)) as store:
            self.ids = {
                name: talk(store, str(path / name), f"The plan of {name}", "It is good.")
                for name in ("shop", "shop/web", "garden", "notes")
            }
        claude_session(path, "c1", str(self.garden), ["The plan of Claude", "Dig."])

    def names(self, text: str) -> set[str]:
        """Whose ids are in an answer."""
        return {name for name, id in self.ids.items() if re.search(rf"\b{id}\b", text)}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


async def seen(client: Client, home: Home) -> set[str]:
    """The sessions that a client sees; each way must show the same."""
    found = home.names(await asked(client, "recall", query="the plan"))
    assert home.names(await asked(client, "sessions")) == found
    assert home.names(str([one.uri for one in (await client.list_resources()).resources])) == found
    for name, id in home.ids.items():
        _, is_error = await tried(client, "expand", messages=f"{id}:1")
        assert is_error == (name not in found)
        if name in found:
            assert await client.read_resource(f"nca://sessions/{id}")
            continue
        with pytest.raises(MCPError, match=r"there is no session '.*' in .*; recall and sessions"):
            await client.read_resource(f"nca://sessions/{id}")
    return found


async def test_a_client_sees_the_project_that_it_starts_in(home: Home) -> None:
    async with served(home.path, cwd=home.shop / "web") as client:
        assert await seen(client, home) == {"shop", "shop/web"}
        text = await asked(client, "recall", query="plan", directory=str(home.garden))
        assert text.startswith("Nothing was found.")
        assert f"this client sees the sessions of {home.shop} only; the user can allow more" in text
        text, is_error = await tried(client, "expand", messages=f"{home.ids['garden']}:1")
        assert is_error
        assert f"in {home.shop}" in text
    async with served(home.path, cwd=home.notes) as client:
        assert await seen(client, home) == {"notes"}


async def test_a_person_allows_folders_or_all(home: Home) -> None:
    words = ("serve", "--directory", str(home.garden), "--directory", str(home.notes))
    async with served(home.path, *words, cwd=home.shop) as client:
        assert await seen(client, home) == {"garden", "notes"}
    async with served(home.path, "serve", "--all", cwd=home.shop) as client:
        assert await seen(client, home) == set(home.ids)


async def test_a_client_without_a_project_names_its_roots(home: Home) -> None:
    async with served(home.path, roots=[home.garden, home.path, Path("/")]) as client:
        assert await seen(client, home) == {"garden"}
    for roots in (None, [home.path]):
        async with served(home.path, roots=roots) as client:
            text, is_error = await tried(client, "sessions")
            assert is_error
            assert text.startswith("no sessions can be shown: this client was started outside of a project")
    async with served(home.path, cwd=home.shop, roots=[home.garden]) as client:
        assert await seen(client, home) == {"shop", "shop/web"}, "roots say nothing where the folder says it"


def test_no_project_and_no_folder(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(home.path))
    for directory in (home.path, home.path.parent, Path("/")):
        scope = Scope.of_project(directory)
        assert scope.asks_for_roots
        with pytest.raises(ToolError, match="no sessions can be shown"):
            scope.allowed  # noqa: B018
    (home.path / ".git").mkdir()
    assert Scope.of_project(home.notes).allowed == (str(home.notes),), "the home directory is no project, git or not"
    link = home.path / "link"
    link.symlink_to(home.notes)
    assert Scope.of_directories([link]).allowed == (str(link), str(home.notes))
    with pytest.raises(UsageError, match="there is no folder"):
        Scope.of_directories([home.path / "missing"])
    done = forked("mcp", "serve", "--all", "--directory", "/", home=home.path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--all and --directory exclude each other" in done.stderr
