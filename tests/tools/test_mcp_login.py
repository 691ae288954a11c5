"""Logging in at MCP servers, with a real authorization server on loopback."""

from __future__ import annotations

import asyncio
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import httpx
import msgspec
import pytest
from pydantic import AnyUrl

from nca.config.schema import McpSettings
from nca.config.servers import McpServer
from nca.errors import UsageError
from nca.events import Event, Notice
from nca.tools.mcp.oauth import FOLDER, Login, Logins, log_in
from nca.tools.mcp.servers import Servers
from nca.tools.tool import ToolError
from tests.tools.oauth_servers import Accounts, KnownClient, Person, guarded_server
from tests.tools.test_mcp import ROOT, connected


class Guarded:
    """A server that wants a login, and nca's home."""

    def __init__(self, url: str, accounts: Accounts, home: Path) -> None:
        self.server = McpServer(name="web", url=url, timeout_seconds=20)
        self.accounts = accounts
        self.env = {"NCA_HOME": str(home)}
        self.person = Person()
        self.logins = Logins(self.env)

    async def log_in(self) -> bool:
        return await log_in(self.server, self.person.show, env=self.env, seconds=30)

    @property
    def login(self) -> Login:
        found = self.logins.find(self.server.url)
        assert found is not None
        return found


@pytest.fixture
async def guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Guarded]:
    monkeypatch.setenv("NCA_HOME", str(tmp_path))
    async with guarded_server() as (url, accounts):
        yield Guarded(url, accounts, tmp_path)


async def test_a_person_logs_in_once_and_is_known_from_then_on(guarded: Guarded, tmp_path: Path) -> None:
    assert await guarded.log_in()
    assert "go back to nca" in guarded.person.read
    async with connected(guarded.server) as server:
        assert (server.state, server.reason) == ("ready", "")
        assert (await server.call("whoami", {})).text == "the person"
    (file,) = (tmp_path / "data" / FOLDER).iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert guarded.accounts.refreshed == 0


async def test_the_command_shows_the_page_and_says_when_it_is_done(guarded: Guarded, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(f'[mcp.servers.web]\nurl = "{guarded.server.url}"\n')
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "nca", "mcp", "login", "web"),
        stdout=asyncio.subprocess.PIPE,
        cwd=tmp_path,
        env={"PATH": "", "PYTHONPATH": str(ROOT), "NCA_HOME": str(tmp_path), "HOME": str(tmp_path)},
    )
    assert process.stdout is not None
    first = (await process.stdout.readline()).decode()
    assert first.startswith("Log in on this page")
    guarded.person.show((await process.stdout.readline()).decode().strip())
    rest, _ = await process.communicate()
    assert (process.returncode, rest.decode()) == (0, "Logged in to web.\n")
    assert guarded.login


async def test_without_a_login_one_line_says_so_and_nothing_is_registered(guarded: Guarded, tmp_path: Path) -> None:
    said: list[Event] = []
    servers = Servers(lambda: McpSettings(servers=(guarded.server,)), tmp_path, lambda: False, said.append)
    assert await servers.join() is None
    assert said == [Notice("The MCP server web needs a login: /mcp login web")]
    assert not guarded.accounts.clients
    assert await guarded.log_in()
    await servers.restart("web")
    tools = await servers.join()
    assert tools is not None
    assert [tool.name for tool in tools] == ["mcp__web__whoami"]
    await servers.close()


async def test_an_expired_token_is_refreshed_after_a_restart(guarded: Guarded) -> None:
    guarded.accounts.lifetime_seconds = -1
    assert await guarded.log_in()
    before = guarded.login
    guarded.accounts.access.clear()
    guarded.accounts.lifetime_seconds = 3600
    async with connected(guarded.server) as server:
        assert server.state == "ready", server.reason
    assert guarded.accounts.refreshed == 1
    assert guarded.login.tokens != before.tokens
    assert len(guarded.person.pages) == 1


async def test_a_registration_that_is_gone_needs_a_new_login(guarded: Guarded) -> None:
    guarded.accounts.lifetime_seconds = -1
    assert await guarded.log_in()
    for known in (guarded.accounts.clients, guarded.accounts.access, guarded.accounts.refresh):
        known.clear()
    async with connected(guarded.server) as server:
        assert server.needs_login
    guarded.accounts.lifetime_seconds = 3600
    assert await guarded.log_in()
    async with connected(guarded.server) as server:
        assert server.state == "ready", server.reason


async def test_a_refused_token_of_the_settings_is_no_login(guarded: Guarded) -> None:
    async with connected(replace(guarded.server, headers=(("Authorization", "Bearer x"),))) as server:
        assert (server.needs_login, server.reason) == (False, "it refused the token in its settings")


async def test_a_token_that_is_refused_within_a_chat_says_to_log_in(guarded: Guarded) -> None:
    assert await guarded.log_in()
    async with connected(guarded.server) as server:
        guarded.accounts.access.clear()
        with pytest.raises(ToolError, match="web: it needs a login: /mcp login web"):
            await server.call("whoami", {})
        assert server.state == "failed"


async def test_a_refused_login_is_one_line_and_stores_nothing(guarded: Guarded) -> None:
    guarded.accounts.refuses = True
    with pytest.raises(UsageError, match="The login at web failed: It was refused"):
        await guarded.log_in()
    assert guarded.logins.find(guarded.server.url) is None


async def test_only_the_answer_that_nca_waits_for_counts(guarded: Guarded) -> None:
    statuses: list[int] = []
    visits: list[asyncio.Task[None]] = []

    async def forge(address: str) -> None:
        target = httpx.URL(address).params["redirect_uri"]
        async with httpx.AsyncClient(trust_env=False) as other:
            for page in (f"{target}?code=x&state=y", f"{target}?code=x", target.replace("callback", "favicon.ico")):
                statuses.append((await other.get(page)).status_code)
        guarded.person.show(address)

    def show(address: str) -> None:
        visits.append(asyncio.create_task(forge(address)))

    assert await log_in(guarded.server, show, env=guarded.env)
    assert statuses == [404, 404, 404]
    with pytest.raises(UsageError, match=r"Nobody logged in to web within 0\.5 seconds"):
        await log_in(guarded.server, lambda _: None, env=guarded.env, seconds=0.5)


async def test_where_programs_cannot_register_the_id_of_the_settings_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NCA_HOME", str(tmp_path))
    async with guarded_server(registers=False) as (url, accounts):
        guarded = Guarded(url, accounts, tmp_path)
        with pytest.raises(UsageError, match="The login at web failed"):
            await guarded.log_in()
        callback = AnyUrl("http://127.0.0.1/callback")
        known = KnownClient(client_id="nca-1", redirect_uris=[callback], token_endpoint_auth_method="none")
        accounts.clients["nca-1"] = known
        guarded.server = replace(guarded.server, client_id="nca-1")
        assert await guarded.log_in()
        assert guarded.login.client["client_id"] == "nca-1"
        async with connected(guarded.server) as server:
            assert (await server.call("whoami", {})).text == "the person"


async def test_what_has_no_login_is_said(guarded: Guarded) -> None:
    for server, said in (
        (McpServer(name="a", command="x"), "a is a program"),
        (replace(guarded.server, token_variable="T"), "web sends a token of its own"),
        (replace(guarded.server, headers=(("authorization", "x"),)), "web sends a token of its own"),
        (McpServer(name="b", url="http://127.0.0.1:9/mcp"), "The login at b failed"),
    ):
        with pytest.raises(UsageError, match=said):
            await log_in(server, guarded.person.show, env=guarded.env)
    assert guarded.person.pages == []


async def test_a_registration_need_not_repeat_what_was_registered(guarded: Guarded) -> None:
    assert await guarded.log_in()
    login = guarded.login
    client = {"client_id": login.client["client_id"]}
    guarded.logins.save(guarded.server.url, msgspec.structs.replace(login, client=client))
    async with connected(guarded.server) as server:
        assert server.state == "ready", server.reason


async def test_a_stored_login_that_cannot_be_read_counts_as_none(guarded: Guarded, tmp_path: Path) -> None:
    assert await guarded.log_in()
    (file,) = (tmp_path / "data" / FOLDER).iterdir()
    for text in (
        "",
        "[]",
        "{}",
        '{"tokens": 1, "client": 2, "metadata": 3, "expires_at": "x"}',
        file.read_text()[:-40],
    ):
        file.write_text(text)
        async with connected(guarded.server) as server:
            assert server.needs_login
    assert guarded.logins.remove(guarded.server.url)
    assert not guarded.logins.remove(guarded.server.url)


async def test_a_server_that_wanted_a_login_and_is_gone_wants_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NCA_HOME", str(tmp_path))
    async with AsyncExitStack() as still_there:
        url, _ = await still_there.enter_async_context(guarded_server())
        async with connected(McpServer(name="web", url=url, timeout_seconds=20)) as server:
            assert server.needs_login
            await still_there.aclose()
            await server.stop()
            server.start()
            await server.settled()
            assert (server.state, server.needs_login) == ("failed", False)
            assert "login" not in server.reason
