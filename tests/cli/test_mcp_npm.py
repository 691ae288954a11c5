"""The public MCP reference servers in the chat, from /mcp through tool calls to a compacted result."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nca.config.example import toml_value
from nca.testing.provider import Provider
from nca.testing.scripted import Answer, is_summary_request, prose, text_of
from tests.cli.command import environment
from tests.cli.npm_servers import TEST_SERVERS, WAITING, processes, programs, tables
from tests.terminal.tty import ROOT
from tests.testing.forked_tty import ForkedTty

TAB = "\t"
CTRL_C = "\x03"
CTRL_D = "\x04"
CALL = re.compile(r"CALL (\S+) (\{.*\})", re.DOTALL)


def as_told(request: dict[str, Any]) -> Answer | str:
    """`CALL tool {arguments}` is called; a result is told by its length and its beginning."""
    if is_summary_request(request):
        return prose(request)
    last = request["messages"][-1]
    said = text_of(last)
    if last["role"] == "tool":
        return f"Result of {len(said)} characters: {said[:120]!r}"
    if found := CALL.match(said):
        return Answer(tool_calls=[(f"mcp__{found[1]}", json.loads(found[2]))])
    return f"Heard: {said[:300]!r}"


class Chat(ForkedTty):
    """`nca loop` with the three servers; `home` is its home, and the project beside it.

    Three servers of npm start within a second, and on a machine with six busy programs within half a minute or more.
    """

    wait_seconds = 180.0

    def __init__(self, provider: Provider, home: Path, *, window: int, config: str) -> None:
        self.home, self.provider = home, provider
        (home / "nca").mkdir(parents=True, exist_ok=True)
        (home / "nca" / "config.toml").write_text(config)
        (home / "project").mkdir(exist_ok=True)
        keys = {"OPENAI_API_BASE": provider.url, "OPENAI_API_KEY": "k", "NCA_MODEL__CONTEXT_WINDOW": str(window)}
        env = {**environment(home, **keys), "PYTHONPATH": str(ROOT)}
        command = ["nca", "loop", "-m", "openai/test-model", "--permission", "auto"]
        super().__init__(command, rows=50, environment=env, cwd=home / "project")
        self.sees("›")
        self.settle()

    def call(self, tool: str, /, **arguments: Any) -> str:
        """Have the model call a tool; what it was told of the result."""
        before = len(self.provider.requests)
        self.line(f"CALL {tool} {json.dumps(arguments)}")
        self.sees("Result of", times=self.text().count("Result of") + 1)
        self.settle()
        return next(
            text_of(request["messages"][-1])
            for request in self.provider.requests[before:]
            if request["messages"][-1]["role"] == "tool"
        )

    def says(self, line: str, text: str) -> str:
        """Type a line; the text so far once `text` was seen anew."""
        times = self.text().count(text)
        self.line(line)
        whole = self.sees(text, times=times + 1)
        self.settle()
        return whole


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Chat]]:
    opened: list[Chat] = []
    with Provider(as_told) as provider:

        def begin(window: int = 128_000, config: str = "", **more: object) -> Chat:
            provider.window_tokens = window
            chat = Chat(provider, tmp_path, window=window, config=config or tables(tmp_path, **more))
            opened.append(chat)
            return chat

        yield begin
        for chat in opened:
            chat.close()
    # Leaving the provider raises for a request that was not valid.


def leave(chat: Chat) -> None:
    chat.send(CTRL_D)
    assert chat.ends() == 0
    gone(chat.home)


def gone(home: Path) -> None:
    while processes(home):
        time.sleep(0.02)


def test_tools_prompts_and_resources_of_each_in_the_chat(start: Callable[..., Chat]) -> None:
    chat = start()
    chat.says("hello", "Heard: 'hello'")
    shown = " ".join(chat.says("/mcp", "server-memory").split())
    for name, what in (
        # 12 for a client that cannot be asked anything.
        ("everything", "16 tools, 4 prompts, 7 resources"),
        ("filesystem", "14 tools"),
        ("memory", "9 tools, 1 resource"),
    ):
        assert re.search(rf"{name} (?:· )?ready (?:· )?{what}", shown)

    assert chat.call("everything__echo", message="hello there") == "Echo: hello there"
    assert "completed" in chat.call("everything__trigger-long-running-operation", duration=1, steps=2)
    assert "[image, image/png, 4,035 bytes; not shown: this model takes no images]" in chat.call(
        "everything__get-tiny-image"
    )
    assert "demo://resource/dynamic/text/1" in chat.call("everything__get-resource-reference", resourceId=1)
    assert '"temperature"' in chat.call("everything__get-structured-content", location="New York")
    assert "validation error" in chat.call("everything__echo")

    shelf = chat.home / "shelf"
    (shelf / "deep").mkdir()
    assert "Successfully wrote" in chat.call(
        "filesystem__write_file", path=str(shelf / "deep" / "a.txt"), content="one\ntwo\n"
    )
    assert (shelf / "deep" / "a.txt").read_text() == "one\ntwo\n"
    assert chat.call("filesystem__read_text_file", path=str(shelf / "deep" / "a.txt")) == "one\ntwo\n"
    assert "[DIR] deep" in chat.call("filesystem__list_directory", path=str(shelf))
    assert "a.txt" in chat.call("filesystem__search_files", path=str(shelf), pattern="**/*.txt")
    assert "Access denied" in chat.call("filesystem__read_text_file", path="/etc/hostname")

    ada = {"name": "Ada", "entityType": "person", "observations": ["wrote notes"]}
    assert "Ada" in chat.call("memory__create_entities", entities=[ada])
    assert "wrote notes" in chat.call("memory__read_graph")

    chat.says("/mcp:everything:args-prompt Rome", "What's weather in Rome?")
    chat.says("What is in @everything:demo://resource/dynamic/text/1 now?", "Heard: ")
    asked = next(m for m in reversed(chat.provider.requests[-1]["messages"]) if m["role"] == "user")
    assert "This is a plaintext resource created at" in text_of(asked)
    leave(chat)


def test_a_big_result_is_admitted_in_part_and_later_compacted(start: Callable[..., Chat]) -> None:
    chat = start(window=32_000)
    book = chat.home / "shelf" / "book.txt"
    book.write_text("".join(f"line {number} of the big book\n" for number in range(20_000)))
    first = chat.call("filesystem__read_text_file", path=str(book))
    assert first.startswith("line 0 of the big book")
    assert "line 19999 of the big book" in first
    assert "[The whole output is in " in first
    assert len(first) < 30_000 < book.stat().st_size
    for number in range(12):
        if "Compacted" in chat.text():
            break
        page = book.with_name(f"page{number}.txt")
        page.write_text("".join(f"line {line} of page {number}\n" for line in range(150)))
        chat.call("filesystem__read_text_file", path=str(page))
    assert "Compacted" in chat.text()
    assert chat.call("everything__echo", message="still there") == "Echo: still there"
    sent = [text_of(message) for message in chat.provider.requests[-1]["messages"] if message["role"] == "tool"]
    assert first not in sent
    assert sent[-1] == "Echo: still there"
    assert chat.provider.overflows == []
    names = [tool["function"]["name"] for tool in chat.provider.requests[0]["tools"]]
    # There is not room for all of them, and each server has its share of what there is.
    assert {name.split("__")[1] for name in names if name.startswith("mcp__")} == {"everything", "filesystem", "memory"}
    assert "tools of MCP servers in this window" in chat.text()
    leave(chat)


def node(home: Path, name: str) -> int:
    """The process of a server."""
    (found,) = (
        pid for pid in processes(home) if f"server-{name}/dist".encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    )
    return found


def test_one_that_is_killed_or_stopped_in_a_call_costs_one_result(start: Callable[..., Chat]) -> None:
    chat = start(timeout_seconds=45)
    chat.says("hello", "Heard: 'hello'")
    long = "everything__trigger-long-running-operation"
    chat.line(f'CALL {long} {{"duration": 60, "steps": 2}}')
    chat.sees("everything: trigger-long-running-operation")
    os.kill(node(chat.home, "everything"), signal.SIGKILL)
    chat.sees("Result of")
    chat.settle()
    said = text_of(chat.provider.requests[-1]["messages"][-1])
    assert said == "Error: the MCP server everything: it was ended by SIGKILL"
    assert "failed" in chat.says("/mcp", "it was ended by SIGKILL")
    assert chat.call("everything__echo", message="back") == "Echo: back"

    os.kill(node(chat.home, "memory"), signal.SIGSTOP)
    assert chat.call("memory__read_graph") == "Error: the MCP server memory did not answer within 45 seconds"
    os.kill(node(chat.home, "memory"), signal.SIGCONT)
    assert '"entities"' in chat.call("memory__search_nodes", query="x")
    os.kill(node(chat.home, "filesystem"), signal.SIGSTOP)
    leave(chat)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_none_is_left_when_nca_is_ended_in_a_call(number: signal.Signals, start: Callable[..., Chat]) -> None:
    chat = start()
    chat.line('CALL everything__trigger-long-running-operation {"duration": 600, "steps": 1}')
    chat.sees("everything: trigger-long-running-operation")
    assert len(processes(chat.home)) == 3
    os.kill(chat.process.pid, number)
    chat.ends()
    gone(chat.home)


def test_none_is_left_when_the_terminal_is_closed(start: Callable[..., Chat]) -> None:
    chat = start()
    chat.says("hello", "Heard: 'hello'")
    assert len(processes(chat.home)) == 3
    chat.process.close(force=False)
    gone(chat.home)


def test_started_by_npx_its_children_end_too(start: Callable[..., Chat], tmp_path: Path) -> None:
    programs()
    folder = os.environ[TEST_SERVERS]
    table = (
        f'[mcp.servers.npx]\ncommand = "npx"\nargs = ["--no", "mcp-server-everything"]\ncwd = {toml_value(folder)}\n'
    )
    chat = start(config=WAITING + table)
    chat.says("hello", "Heard: 'hello'")
    assert chat.call("npx__echo", message="by npx") == "Echo: by npx"
    assert len(processes(tmp_path)) > 1
    leave(chat)


def test_a_list_that_changes_is_read_again(start: Callable[..., Chat]) -> None:
    chat = start()
    chat.call("everything__gzip-file-as-resource", name="new.gz", data="data:text/plain,hello")
    # A server that was read a moment ago is read again a second later.
    while "@everything:demo://resource/session/new.gz" not in chat.says("/mcp everything", "everything: ready"):
        pass
    chat.send("@everything:session")
    chat.sees("everything:demo://resource/session/new.gz  new.gz")
    chat.send(TAB + CTRL_C)
    tools = [request["tools"] for request in chat.provider.requests]
    assert tools[0] == tools[-1]
    leave(chat)
