"""Completion of MCP prompts and resources."""

from __future__ import annotations

from pathlib import Path

from prompt_toolkit.completion import Completion

from nca.terminal.completion import prompt_completions, resource_completions
from tests.terminal.stage import a_stage
from tests.terminal.tty import chat
from tests.tools.test_mcp import a_server
from tests.tools.test_mcp_lists import changing_server

TAB = "\t"


def shown(completions: list[Completion]) -> list[tuple[str, str]]:
    return [(one.text, one.display_meta_text) for one in completions]


async def test_prompts_and_resources_are_suggested_once_they_are_listed(tmp_path: Path) -> None:
    with a_stage(tmp_path, ["Hello."], mcp__servers=(a_server(), changing_server())) as stage:
        servers = stage.conversation.servers
        assert list(prompt_completions(servers, "/mcp:")) == []
        assert list(resource_completions(servers, "")) == []
        await stage.conversation.send("Hello.")
        review = ("mcp:test:review ", "file [question] · Ask for a review.")
        assert shown(list(prompt_completions(servers, "/mcp"))) == [review, ("mcp:it:first", "A prompt.")]
        assert shown(list(prompt_completions(servers, "/mcp:te"))) == [review]
        for other in ("/", "/m", "/mcp:x", "/mcp:test:review a.py", "/mcp restart"):
            assert list(prompt_completions(servers, other)) == []
        memo = ("test:memo://today", "What is to be done.")
        assert shown(list(resource_completions(servers, ""))) == [("test:", "1 resource"), ("it:", "1 resource")]
        assert shown(list(resource_completions(servers, "te"))) == [("test:", "1 resource")]
        for wanted in ("test:", "test:memo://", "test:TODAY"):
            assert shown(list(resource_completions(servers, wanted))) == [memo]
        for other in ("test:none", "x", "x:memo"):
            assert list(resource_completions(servers, other)) == []
        assert all(one.start_position == -4 for one in prompt_completions(servers, "/mcp:")), "the slash stays"
        await stage.conversation.close()


def test_both_are_completed_in_a_terminal(tmp_path: Path) -> None:
    server = a_server()
    settings = {"mcp.servers": {"test": {"command": server.command, "args": server.args, "env": dict(server.env)}}}
    with chat("Hello.", "It is right.", "Milk.", settings=settings, directory=str(tmp_path)) as tty:
        tty.sees("›")
        tty.line("hello")
        tty.sees("Hello.")
        tty.settle()
        tty.send("/mcp:te")
        tty.sees("file [question] · Ask for a review.")
        tty.send(TAB)
        tty.sees("/mcp:test:review")
        tty.line("a.py")
        tty.sees("It is right.")
        tty.settle()
        tty.send("buy @test:tod")
        tty.sees("What is to be done.")
        tty.send(TAB)
        tty.sees("@test:memo://today")
        tty.line(" please")
        tty.sees("Milk.")
        tty.line("exit")
        assert tty.ends() == 0
