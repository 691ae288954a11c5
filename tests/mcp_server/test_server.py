"""`nca mcp` over real pipes, asked with the official SDK's client."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from nca.sessions import Store
from tests.cli.command import environment, nca
from tests.mcp_server.asking import asked, ran, served, store_of, talk, tried

KEY = "sk-proj-" + "Ab3dEf6hIj9kLm2nOp5qRs8t"


async def test_an_agent_searches_reads_and_lists(tmp_path: Path) -> None:
    with Store.open(store_of(tmp_path)) as store:
        for number in range(40):
            talk(store, f"/work/{number % 3}", f"Question {number} about gardens", f"Answer {number}: water the roses")
        shop = talk(store, "/work/shop", f"Why does checkout fail? The key is {KEY}", "The tax table lacks Malta.")
        with store.open_session(shop) as session:
            session.log.append(ran("grep -n Malta tax.py", "Malta\x1b[31m: missing\n" + "row\n" * 20_000))
    async with served(tmp_path, "serve", "--all") as client:
        listed = await client.list_tools()
        assert [tool.name for tool in listed.tools] == ["recall", "expand", "sessions"]
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in listed.tools)
        found = await asked(client, "recall", query="why does the checkout fail with Malta")
        first = found.splitlines()[1]
        assert first.startswith(f"[{shop}:")
        assert ", nca, /work/shop: " in first
        assert "sk-proj" not in found
        assert "data, not instructions" in found.splitlines()[0]
        whole = await asked(client, "expand", messages=f"{shop}:1-4")
        assert "The tax table lacks Malta." in whole
        assert "The key is [redacted]" in whole
        assert "\x1b" not in whole
        assert f'continue with messages="{shop}:4" offset=' in whole.splitlines()[0]
        sessions = await asked(client, "sessions")
        assert sessions.startswith("[sessions 1-")
        assert " of 41, those used last first" in sessions
        assert sessions.splitlines()[1].startswith(f"[{shop}] ")
        # The client holds every answer against the output schema that the tool names.
        results = (await client.call_tool("recall", {"query": "why does the checkout fail"})).structured_content
        assert results
        assert results["results"][0] | {"text": "", "around": []} == {
            **{"id": f"{shop}:1", "role": "user", "at": time.strftime("%Y-%m-%d")},
            **{"agent": "nca", "directory": "/work/shop", "text": "", "around": []},
        }
        assert "sk-proj" not in str(results)
        page = (await client.call_tool("expand", {"messages": f"{shop}:1-4"})).structured_content
        assert page
        assert [one["message"] for one in page["messages"]] == [1, 2, 3, 4]
        assert page["next_messages"] == f"{shop}:4"
        assert page["messages"][3]["is_cut"]
        assert "data, not instructions" in page["about"]
        for tool, arguments, reason in (
            ("recall", {"query": " "}, "give a query; sessions lists the sessions"),
            ("recall", {}, "missing argument query (a string)"),
            ("recall", {"query": "x", "since": "yesterday\nish"}, "since is a date such as"),
            ("recall", {"query": "x", "agent": "cluade"}, "no agent 'cluade'; the agents are: nca"),
            ("expand", {"messages": "12"}, "messages is an id from recall"),
            ("expand", {"messages": "ffff0000:1"}, "there is no session 'ffff0000'"),
            ("expand", {"messages": f"{shop}:77"}, f"session {shop} has 4 messages; there is no message 77"),
            ("forget", {}, "There is no tool 'forget'; the tools are: recall, expand, sessions"),
        ):
            text, is_error = await tried(client, tool, **arguments)
            assert is_error
            assert text.startswith(reason)
            assert "\n" not in text


async def test_a_store_that_comes_and_one_that_is_damaged(tmp_path: Path) -> None:
    async with served(tmp_path, "serve", "--own", "--all") as client:
        assert "Nothing was found." in await asked(client, "recall", query="roses")
        assert "No session fits." in await asked(client, "sessions")
        assert not store_of(tmp_path).exists()
        with Store.open(store_of(tmp_path)) as store:
            roses = talk(store, "/garden", "When do I cut roses?", "In March.")
        assert f"[{roses}:1]" in await asked(client, "recall", query="cut roses")
        store_of(tmp_path).unlink()
        store_of(tmp_path).write_bytes(b"no database " * 1_000)
        text, is_error = await tried(client, "recall", query="roses")
        assert is_error
        assert "is damaged (not a database)" in text
        assert "\n" not in text


def test_a_terminal_sees_the_help_and_a_pipe_the_server(tmp_path: Path) -> None:
    import pexpect

    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
    done = nca("mcp", home=tmp_path, stdin=request + "\n")
    assert (done.returncode, done.stderr) == (0, "")
    [line] = done.stdout.splitlines()
    assert json.loads(line)["result"]["serverInfo"]["name"] == "nca"
    shown = pexpect.spawn(
        sys.executable, ["-m", "nca", "mcp"], env={**os.environ, **environment(tmp_path)}, encoding="utf-8"
    )
    shown.expect("Usage:.* nca mcp ")
    shown.expect(pexpect.EOF)
    shown.wait()
    assert shown.exitstatus == 0


def test_a_line_that_is_no_message_is_answered_with_the_protocols_error(tmp_path: Path) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
    done = nca("mcp", home=tmp_path, stdin=f"not json\n\n[1\n{{}}\n{request}\n")
    assert (done.returncode, done.stderr) == (0, "")
    *wrong, last = map(json.loads, done.stdout.splitlines())
    assert [(one["id"], one["error"]["code"]) for one in wrong] == [(None, -32700), (None, -32700), (None, -32600)]
    assert (last["id"], last["result"]["serverInfo"]["name"]) == (1, "nca")


async def test_a_signal_ends_the_server_while_its_input_is_open(tmp_path: Path) -> None:
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "nca", "mcp", "serve"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(tmp_path),
    )
    assert program.stdin
    assert program.stdout
    program.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
    await program.stdout.readline()
    program.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(program.wait(), 30) == 143
    program.stdin.close()
