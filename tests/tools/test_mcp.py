"""MCP servers that are really started, with the official SDK on both sides."""

from __future__ import annotations

import asyncio
import gzip
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from nca.config.schema import McpSettings
from nca.config.servers import McpServer
from nca.errors import UsageError
from nca.events import Event, Notice
from nca.tools.mcp.connection import Connection
from nca.tools.mcp.servers import Servers
from nca.tools.mcp.transports import MAX_MESSAGE_BYTES, STDERR_BYTES, ServerProcess
from nca.tools.tool import ToolError
from tests.testing.forks import standing, standing_code

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = "tests.tools.mcp_server"
FAILING = {"silent": "import time; time.sleep(600)", "dying": "import sys; sys.exit('no such luck')"}


def a_server(name: str = "test", how: str = "", *, is_forked: bool = True, **more: object) -> McpServer:
    """how  a way to misbehave at the start: silent, dying, noisy

    is_forked  rather than started by itself, which takes a second of a processor
    """
    env = (("NCA_TEST_SERVER", how), ("PYTHONPATH", str(ROOT)))
    if how in FAILING:
        command = [sys.executable, "-c", FAILING[how]]
    else:
        command = standing(PROGRAM) if is_forked else [sys.executable, "-m", PROGRAM]
    given = {"name": name, "command": command[0], "args": tuple(command[1:]), "env": env}
    return McpServer(**{**given, **more})  # type: ignore[arg-type]


@asynccontextmanager
async def connected(server: McpServer, directory: Path = ROOT, *, can_see: bool = True) -> AsyncIterator[Connection]:
    connection = Connection(server, directory, lambda: can_see)
    connection.start()
    await connection.settled()
    try:
        yield connection
    finally:
        await connection.stop()


async def pid_of(connection: Connection) -> int:
    """As the server wrote it to its error output."""
    while (found := re.search(r"pid (\d+);", connection.errors)) is None:
        await asyncio.sleep(0.01)
    return int(found[1])


def is_running(pid: int) -> bool:
    """A process that ended and was not yet waited for by its new parent runs no more."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def gone(pid: int) -> None:
    while is_running(pid):
        await asyncio.sleep(0.01)


async def test_it_lists_what_it_offers_and_answers() -> None:
    async with connected(a_server(how="noisy", is_forked=False)) as server:
        assert (server.state, server.reason) == ("ready", "")
        assert {"echo", "slow", "dies"} <= {offer.name for offer in server.listing.offers}
        assert {offer.name for offer in server.listing.offers if offer.is_read_only} == {"echo"}
        assert [prompt.name for prompt in server.listing.prompts] == ["review"]
        assert [resource.uri for resource in server.listing.resources] == ["memo://today"]
        assert (await server.call("echo", {"text": "ü 1"})).text == "echo: ü 1"
        assert await server.resource("memo://today") == "buy milk"
        assert await server.prompt("review", {"file": "a.py"}) == "Please review a.py. Is it right?"


async def test_structures_images_and_its_own_errors_are_results() -> None:
    async with connected(a_server()) as server:
        assert '"answer": 42' in (await server.call("facts", {})).text
        picture = await server.call("picture", {})
        assert picture.text.startswith("[image, image/png")
        assert [part.kind for part in picture.media] == ["image"]
        failed = await server.call("fails", {})
        assert failed.is_error
        assert (await server.call("echo", {})).is_error
        assert (await server.call("there_is_none", {})).is_error


@pytest.mark.parametrize("can_see", [True, False])
async def test_images_reach_a_model_that_sees_and_one_line_says_why_others_do_not(can_see: bool) -> None:
    async with connected(a_server(), can_see=can_see) as server:
        outcome = await server.call("pictures", {})
        lines = outcome.text.splitlines()
        assert len(lines) == 12
        assert all(line.startswith(("[image, image/png, ", "[resource memo://pixel, image/png, ")) for line in lines)
        reasons = [line.partition("; not shown: ")[2].rstrip("]") for line in lines]
        if not can_see:
            assert set(reasons) == {"this model takes no images"}
            assert not outcome.media
            return
        assert reasons[:3] == [
            "it is 9,000 by 1 pixels; at most 8,000",
            "it is not a PNG, JPEG, GIF or WebP",
            "it is not in base64",
        ]
        assert reasons[3:] == [""] * 8 + ["more than 8 images"]
        assert len(outcome.media) == 8


async def test_only_the_allowed_environment_reaches_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789abcdef")
    monkeypatch.setenv("ODD_VARIABLE", "1")
    monkeypatch.setenv("WANTED", "2")
    server = a_server(environment=("WANTED", "OPENAI_API_KEY"))
    async with connected(server, tmp_path) as running:
        text = (await running.call("environment", {})).text
    names, _, where = text.partition(" in ")
    assert {"PATH", "WANTED", "NCA_TEST_SERVER"} <= set(names.split())
    assert not {"OPENAI_API_KEY", "ODD_VARIABLE"} & set(names.split())
    assert Path(where) == tmp_path.resolve()


async def test_one_that_dies_costs_one_result_and_comes_back_when_restarted() -> None:
    servers = Servers(lambda: McpSettings(servers=(a_server(),)), ROOT, lambda: False, lambda _: None)
    try:
        assert await servers.join()
        (connection,) = servers.connections
        with pytest.raises(ToolError, match="test: it ended with exit code 3"):
            await connection.call("dies", {})
        with pytest.raises(ToolError, match=r"is not running .*restart test"):
            await connection.call("echo", {"text": "?"})
        assert "going down" in connection.errors
        assert len(servers.tools()) > 10
        await servers.restart("test")
        assert (await connection.call("echo", {"text": "again"})).text == "echo: again"
        with pytest.raises(ToolError, match="exit code 3"):
            await connection.call("dies", {})
        # The next message brings it back too; what it offers is what it was, so nothing is to be taken up.
        await servers.join()
        assert (await connection.call("echo", {"text": "again"})).text == "echo: again"
        # So does a prompt that the person asks for, and a resource.
        for ask, answer in (
            (lambda: servers.prompt("test", "review", "a.py"), "Please review a.py. Is it right?"),
            (lambda: servers.mentioned("@test:memo://today"), [("test:memo://today", "buy milk")]),
        ):
            with pytest.raises(ToolError, match="exit code 3"):
                await connection.call("dies", {})
            assert await ask() == answer
    finally:
        await servers.close()


async def test_who_asks_a_server_that_cannot_run_is_told_what_to_do() -> None:
    absent = McpServer(name="test", command="/none/such")
    servers = Servers(lambda: McpSettings(servers=(absent,)), ROOT, lambda: False, lambda _: None)
    for asking in (servers.prompt("test", "review", ""), servers.mentioned("@test:memo://today")):
        with pytest.raises(UsageError, match=r"^The MCP server test is not running \(.+\)\.") as refused:
            await asking
        assert refused.value.advice == "/mcp restart test tries again. Nothing was sent."
    await servers.close()


async def test_one_that_was_slow_at_first_and_dies_is_waited_for_as_any_other() -> None:
    seconds = [0.0]
    servers = Servers(
        lambda: McpSettings(servers=(a_server(),), wait_seconds=seconds[0]), ROOT, lambda: False, lambda _: None
    )
    try:
        assert await servers.join() is None
        (connection,) = servers.connections
        await connection.settled()
        seconds[0] = 60.0
        assert await servers.join()
        with pytest.raises(ToolError, match="exit code 3"):
            await connection.call("dies", {})
        await servers.join()
        assert (await connection.call("echo", {"text": "again"})).text == "echo: again"
    finally:
        await servers.close()


@pytest.mark.parametrize("written", [0, 1, 100_000])
async def test_one_that_stops_reading_and_does_not_end_has_failed(written: int) -> None:
    async with connected(a_server(is_forked=False)) as server:
        dying = asyncio.create_task(server.call("dies_slowly", {"seconds": 600}))
        while "reads no more" not in server.errors:
            await asyncio.sleep(0.01)
        beside = [server.call("echo", {"text": "?" * written})] if written else []
        for outcome in await asyncio.gather(dying, *beside, return_exceptions=True):
            assert "it closed its input" in str(outcome)
        assert server.state == "failed"


async def test_one_that_stops_reading_before_it_ends_still_says_how_it_ended() -> None:
    async with connected(a_server(is_forked=False)) as server:
        dying = asyncio.create_task(server.call("dies_slowly", {}))
        while "reads no more" not in server.errors:
            await asyncio.sleep(0.01)
        calls = [server.call("echo", {"text": "?" * 100_000}) for _ in range(3)]
        for outcome in await asyncio.gather(dying, *calls, return_exceptions=True):
            assert isinstance(outcome, ToolError)
            assert "exit code 3" in str(outcome)


async def test_one_that_hangs_costs_its_time_and_goes_on() -> None:
    async with connected(a_server()) as started:
        connection = started
        object.__setattr__(connection.server, "timeout_seconds", 0.2)
        with pytest.raises(ToolError, match=r"did not answer within 0\.2 seconds"):
            await connection.call("slow", {"seconds": 60})
        object.__setattr__(connection.server, "timeout_seconds", 30)
        assert (await connection.call("echo", {"text": "still there"})).text == "echo: still there"


@pytest.mark.parametrize(
    ("tool", "arguments", "reason"),
    [
        ("endless_line", {}, "a message of more than 8 MiB"),
        ("big", {"megabytes": (MAX_MESSAGE_BYTES >> 20) + 1}, "a message of more than 8 MiB"),
        ("chatter", {}, "messages that nobody asked for"),
    ],
)
async def test_one_that_floods_is_ended(tool: str, arguments: dict[str, int], reason: str) -> None:
    async with connected(a_server()) as server:
        pid = await pid_of(server)
        with pytest.raises(ToolError, match=reason):
            await server.call(tool, arguments)
        await gone(pid)
        assert len(server.errors) <= STDERR_BYTES


@pytest.mark.parametrize(
    ("server", "reason"),
    [
        (a_server(how="dying"), "it ended with exit code 1"),
        (a_server(how="silent", timeout_seconds=0.5), "it did not start within 0.5 seconds"),
        (McpServer(name="none", command="there-is-no-such-program"), "No such file or directory"),
        (McpServer(name="deaf", url="http://127.0.0.1:9/mcp"), "http://127.0.0.1:9: All connection attempts failed"),
        (McpServer(name="keyless", url="http://127.0.0.1:9/mcp", token_variable="NO_SUCH"), "NO_SUCH is not set"),
    ],
)
async def test_one_that_does_not_start_says_why(server: McpServer, reason: str) -> None:
    async with connected(server) as failed:
        assert failed.state == "failed"
        assert reason in failed.reason
        assert failed.listing.offers == ()


async def test_its_error_output_is_kept_in_bounds_and_clean() -> None:
    async with connected(a_server(how="noisy")) as server:
        await server.call("echo", {"text": ""})
        assert len(server.errors) <= STDERR_BYTES
        assert "noise" in server.errors


async def test_nothing_is_left_when_it_is_stopped() -> None:
    async with connected(a_server(is_forked=False)) as server:
        child = int((await server.call("child", {})).text)
        pid = await pid_of(server)
        assert is_running(child)
        assert is_running(pid)
    await gone(pid)
    await gone(child)
    assert server.state == "off"


async def test_stopped_while_it_starts_it_is_gone_too() -> None:
    connection = Connection(a_server(how="silent"), ROOT, lambda: True)
    connection.start()
    while connection._process is None or not connection._process.pid:
        await asyncio.sleep(0.01)
    pid = connection._process.pid
    await connection.stop()
    await gone(pid)


def test_one_whose_end_is_cancelled_is_gone_before_the_loop() -> None:
    """asyncio warns about a program that seems to run when the loop is closed, in whichever test is next."""

    async def cancelled_twice() -> int:
        process = ServerProcess(("/bin/sh", "-c", "trap '' TERM; while :; do sleep 60; done"), ROOT, {})

        async def use() -> None:
            async with process.connect():
                await asyncio.sleep(60)

        using = asyncio.create_task(use())
        while not process.pid:
            await asyncio.sleep(0.01)
        using.cancel()
        await asyncio.sleep(0.05)
        using.cancel()
        with pytest.raises(asyncio.CancelledError):
            await using
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return process.pid

    loop = asyncio.new_event_loop()
    pid = loop.run_until_complete(cancelled_twice())
    loop.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_program_that_is_killed_takes_its_servers_along() -> None:
    """A server that reads its input ends with it, whatever became of nca."""
    program = (
        "import asyncio, os\n"
        "from tests.tools.test_mcp import ROOT, connected, pid_of, a_server\n"
        "async def main():\n"
        "    async with connected(a_server(is_forked=False)) as server:\n"
        "        await server.call('echo', {'text': ''})\n"
        "        print(os.getpid(), await pid_of(server), flush=True)\n"
        "        await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(*standing_code(program), cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    own_pid, pid = map(int, (await process.stdout.readline()).split())
    assert is_running(pid)
    os.kill(own_pid, signal.SIGKILL)
    await process.wait()
    await gone(pid)


@pytest.fixture
def address() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(standing(PROGRAM, "http", str(port)), cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        for _ in range(3_000):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.01)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


async def test_streamable_http(address: str) -> None:
    server = McpServer(name="web", url=address, headers=(("X-Extra", "1"),), timeout_seconds=30)
    async with connected(server) as web:
        assert web.state == "ready", web.reason
        assert (await web.call("echo", {"text": "over HTTP"})).text == "echo: over HTTP"
        with pytest.raises(ToolError, match="the MCP server web: "):
            await web.call("big", {"megabytes": (MAX_MESSAGE_BYTES >> 20) + 1})
        assert (await web.call("echo", {"text": "still"})).text == "echo: still"


@pytest.mark.parametrize(
    ("status", "kind", "body", "reason"),
    [
        (403, "text/plain", "Ada may not.\n", "HTTP 403: Ada may not."),
        (404, "text/plain", "", "HTTP 404: Not Found"),
        (429, "application/json", '{"error": "too many"}', 'HTTP 429: {"error": "too many"}'),
        (500, "application/json", '{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"My own."}}', "My own."),
        (503, "text/html", "<p>" + 999 * "Later. ", "HTTP 503: <p>Later. Later. "),
    ],
)
async def test_an_error_of_http_has_its_status_and_what_the_server_says(
    status: int, kind: str, body: str, reason: str
) -> None:
    class Refusing(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            packed = gzip.compress(body.encode())
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-encoding", "gzip")
            self.send_header("content-length", str(len(packed)))
            self.end_headers()
            self.wfile.write(packed)

        def log_message(self, format: str, *args: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{serving.server_port}/mcp"
        async with connected(McpServer(name="web", url=url, timeout_seconds=30)) as failed:
            assert failed.state == "failed"
            assert failed.reason.startswith(reason)
        serving.shutdown()


async def test_a_message_waits_for_servers_once_and_hears_of_those_that_fail() -> None:
    events: list[Event] = []
    settings = McpSettings(
        wait_seconds=0.3,
        servers=(
            a_server("late", how="silent"),
            McpServer(name="none", command="there-is-no-such-program"),
            a_server("resting", enabled=False),
        ),
    )
    servers = Servers(lambda: settings, ROOT, lambda: False, events.append)
    try:
        servers.begin()
        await servers.find("none").settled()
        assert servers.awaited == ["late"]
        assert await servers.join() is None
        assert servers.awaited == []
        told = [event.message for event in events if isinstance(event, Notice)]
        assert [one.split(":")[0] for one in told] == [
            "The MCP server late is still starting",
            "The MCP server none failed",
        ]
        assert await servers.join() is None
        assert len(events) == 2
        assert servers.find("resting").state == "off"
        with pytest.raises(UsageError, match="There is no MCP server 'x'"):
            servers.find("x")
    finally:
        await servers.close()


async def test_prompts_take_words_and_resources_are_named_in_the_text() -> None:
    servers = Servers(lambda: McpSettings(servers=(a_server(),)), ROOT, lambda: False, lambda _: None)
    try:
        servers.begin()
        # It is still starting; who names it waits for it.
        assert await servers.mentioned("@test:memo://today") == [("test:memo://today", "buy milk")]
        assert await servers.prompt("test", "review", "a.py Is it short?") == "Please review a.py. Is it short?"
        with pytest.raises(UsageError, match="needs file"):
            await servers.prompt("test", "review", "")
        with pytest.raises(UsageError, match="has no prompt 'x'"):
            await servers.prompt("test", "x", "")
        said = await servers.mentioned("Look at @test:memo://today, and at a@test:memo://today or @other:thing.")
        assert said == [("test:memo://today", "buy milk")]
        with pytest.raises(UsageError, match="@test:memo://none"):
            await servers.mentioned("@test:memo://none")
    finally:
        await servers.close()


def test_no_process_of_a_test_is_left() -> None:
    """Runs last in this file; a server that a test left behind would be a child of this process."""
    listed = subprocess.run(["ps", "-o", "args=", "--ppid", str(os.getpid())], capture_output=True, text=True)
    assert PROGRAM not in listed.stdout
