"""/mcp with real servers, and a server's prompt in the chat."""

from __future__ import annotations

from pathlib import Path

import pytest

from nca.config.servers import McpServer
from nca.errors import UsageError
from nca.sessions.store import Store
from nca.terminal.commands.command import find_command
from tests.terminal.stage import a_stage
from tests.terminal.tty import chat
from tests.tools.test_mcp import a_server
from tests.tools.test_mcp_lists import changing_server

CTRL_U = "\x15"


async def test_without_servers_it_says_how_to_make_one(tmp_path: Path) -> None:
    with a_stage(tmp_path) as stage:
        assert "nca mcp add NAME" in await stage.command("/mcp")
        with pytest.raises(UsageError, match="There is no MCP server 'x'"):
            await stage.command("/mcp restart x")


async def test_it_shows_the_state_of_each_and_restarts_one(tmp_path: Path) -> None:
    servers = (
        a_server(how="noisy"),
        a_server("broken", how="dying"),
        McpServer(name="resting", command="x", enabled=False),
    )
    with a_stage(tmp_path, ["Hello."], mcp__servers=servers) as stage:
        words = " ".join((await stage.command("/mcp")).split())
        assert "test off" in words
        assert "resting off (enabled = false)" in words
        await stage.conversation.send("Hello.")
        words = " ".join((await stage.command("/mcp")).split())
        assert "test ready · 18 tools, 1 prompt, 1 resource" in words
        assert "broken failed · it ended with exit code 1" in words
        assert "The end of the error output of broken: " in words
        assert "no such luck" in words
        one = await stage.command("/mcp test")
        for name in ("mcp__test__echo", "/mcp:test:review", "@test:memo://today"):
            assert name in one
        broken = await stage.command("/mcp broken")
        assert "no such luck" in broken
        assert "\x1b" not in one + broken
        assert "test: ready, " in await stage.command("/mcp restart test")
        with pytest.raises(UsageError, match="needs a server's name"):
            await stage.command("/mcp restart")
        await stage.conversation.close()


async def test_its_words_are_completed(tmp_path: Path) -> None:
    with a_stage(tmp_path, mcp__servers=(a_server(),)) as stage:
        command = find_command("mcp")
        assert command is not None
        assert [one.text for one in command.complete(stage.app, "")] == ["login", "restart", "test"]
        for action in ("login", "restart"):
            assert [one.text for one in command.complete(stage.app, f"{action} t")] == ["test"]


def test_what_a_prompt_of_a_server_names_does_not_come_along(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("hidden words")
    server = changing_server()
    table = {"command": server.command, "args": server.args, "env": dict(server.env)}
    settings, home = {"mcp.servers": {"test": table}}, str(tmp_path)
    with chat("One.", {"error": "no answer"}, "Two.", settings=settings, directory=home, home=home) as tty:
        tty.sees("›")
        tty.line("/mcp:test:first")
        tty.sees("One.")
        tty.settle()
        tty.line("/mcp:test:first again")
        # It stands in the prompt as it was typed, not as the server wrote it.
        tty.sees("/mcp:test:first again", times=2)
        tty.settle()
        tty.send(CTRL_U)
        tty.line("And @secret.txt and @test:memo://first?")
        tty.sees("Two.")
        tty.line("exit")
        assert tty.ends() == 0
    with Store.open(tmp_path / "store.db") as store:
        info = store.latest()
        assert info is not None
        entries = store.open_session(info.id, read_only=True).log.entries()
    said = [entry.message for entry in entries if entry.message.role == "user"]
    assert [part.path for part in said[0].attachments] == []
    assert "hidden words" not in said[0].text
    assert [part.path for part in said[-1].attachments] == ["secret.txt", "test:memo://first"]


def test_a_prompt_of_a_server_is_sent_and_its_noise_stays_off_the_screen(tmp_path: Path) -> None:
    server = a_server(how="noisy")
    table = {"command": server.command, "args": server.args, "env": dict(server.env)}
    with chat("It is right.", settings={"mcp.servers": {"test": table}}, directory=str(tmp_path)) as tty:
        tty.sees("›")
        tty.line("/mcp:test:review a.py")
        tty.sees("It is right.")
        tty.line("/mcp:test:none")
        tty.sees("test has no prompt 'none'")
        tty.line("exit")
        assert tty.ends() == 0
        assert "noise" not in tty.text()


def test_who_waits_for_a_server_reads_for_which(tmp_path: Path) -> None:
    server = a_server(how="silent")
    table = {"command": server.command, "args": server.args, "env": dict(server.env)}
    settings = {"mcp.servers": {"slow": table}, "mcp.wait_seconds": 2}
    with chat("Hello.", settings=settings, directory=str(tmp_path)) as tty:
        tty.sees("›")
        tty.line("Hi.")
        tty.sees("Waiting for MCP: slow")
        tty.sees("Hello.")


def test_a_server_asks_the_person_in_the_terminal(tmp_path: Path) -> None:
    server = a_server()
    table = {"command": server.command, "args": server.args, "env": dict(server.env)}
    settings = {"mcp.servers": {"test": table}, "agent.permission": "auto"}
    book = {"tool": "mcp__test__books", "arguments": {"greeting": "Hello"}}
    home = str(tmp_path)
    with chat(book, "Booked.", book, "Not booked.", settings=settings, directory=home, home=home, rows=40) as tty:
        tty.sees("›")
        tty.line("Book a trip.")
        tty.sees("The MCP server test asks: Hello! Where to?")
        tty.sees("y answer  n decline  Esc cancel")
        tty.answer("y")
        tty.sees("City")
        tty.sees("(Enter sends it, Esc cancels)")
        tty.send("Vallettta\x7f\x7fa\r")
        tty.sees("Nights (a whole number; Enter: 2)")
        tty.send("99\r")
        tty.sees("99: valid: at most 30.")
        tty.send("3\r")
        tty.sees("Seaside (y or n; Enter: n)")
        tty.send("y\r")
        tty.sees("2 double")
        tty.send("2\r")
        tty.sees("Booked.")
        tty.settle()  # typed at the prompt, it is no key that comes shortly before the question
        tty.line("Once more.")
        tty.sees("The MCP server test asks", times=2)
        tty.answer("y")
        tty.sees("City", times=2)
        tty.send("\x1b")
        tty.sees("Not booked.")
        tty.line("exit")
        assert tty.ends() == 0
    with Store.open(tmp_path / "store.db") as store:
        info = store.latest()
        assert info is not None
        entries = store.open_session(info.id, read_only=True).log.entries()
    told = [entry.message.text for entry in entries if entry.message.role == "tool"]
    assert told == ["Valletta, 3 nights, seaside True, double", "cancel"]
