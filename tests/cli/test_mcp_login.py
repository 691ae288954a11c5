"""`nca mcp login`, `logout` and `/mcp login` with the whole program, a browser and a real authorization server."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from functools import partial
from pathlib import Path

from tests.testing.forks import forked
from tests.tools.oauth_servers import guarded_server

BROWSER = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1]).read()"


async def test_a_person_logs_in_and_out(tmp_path: Path) -> None:
    browser = tmp_path / "browser.py"
    browser.write_text(BROWSER)

    async def nca(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        opens = f"{sys.executable} {browser} %s"
        command = partial(forked, *words, home=tmp_path, stdin=stdin, BROWSER=opens, OPENAI_API_KEY="k")
        return await asyncio.to_thread(command)

    async with guarded_server() as (url, accounts):
        await nca("mcp", "add", "web", "--url", url)
        shown = await nca("mcp", "list", "--check")
        assert (shown.returncode, shown.stdout.splitlines()[-1]) == (1, "web: needs a login: nca mcp login web")
        assert not accounts.clients
        done = await nca("mcp", "login", "web")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.endswith("Logged in to web.\n")
        assert "client_id=" in done.stdout
        assert "web: ready; tools: whoami\n" in (await nca("mcp", "list", "--check")).stdout
        assert (await nca("mcp", "logout", "web")).stdout == "Logged out of web.\n"
        chat = await nca("loop", "-m", "openai/test", stdin="/mcp login web\n/exit\n")
        assert "/mcp login web starts a server: type it at a terminal" in chat.stderr
        assert (await nca("mcp", "logout", "web")).stdout == "There is no login for web.\n"
    wrong = await nca("mcp", "login", "nothing")
    assert (wrong.returncode, wrong.stderr) == (2, "nca: There is no MCP server 'nothing'. Valid: web.\n")
