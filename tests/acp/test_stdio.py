"""The protocol's streams: nothing but messages goes out, and nothing that comes in can do harm."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nca.acp.stdio import read_message
from nca.config.paths import data_dir
from nca.messages import Message
from nca.sessions.store import Store
from nca.testing.provider import Provider
from nca.testing.scripted import Answer, in_order
from tests.acp.client import program
from tests.cli.command import environment

INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}


def lines(*messages: Any) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in messages)


def served(home: Path, raw: bytes, url: str = "http://127.0.0.1:9/v1") -> tuple[int, list[Any], str]:
    """What a whole nca answers to these bytes: exit code, messages, what it says besides."""
    words, env = program(url, home)
    done = subprocess.run(words, input=raw, capture_output=True, env=env, cwd=home, timeout=90, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr.decode()


def test_garbage_is_answered_in_one_line_each_and_the_rest_is_served(tmp_path: Path) -> None:
    wrong = [
        *(b"\xff\xfe garbage\n", b"{\n", b"[" * 100_000 + b"\n", b"42\n", b"[]\n", b"null\n", b"\n", b"\x00\n"),
        *lines({"id": []}, {"id": 1, "method": 5}, {"id": 2, "method": "session/new", "params": [1]}).splitlines(True),
        *lines({"id": {}, "result": 1}, {"id": 7, "result": 1}, {"id": 8, "error": 1}, {"method": "$/any"}).splitlines(
            True
        ),
        *lines({"id": 3, "method": "no/such"}, {"id": 4, "method": "session/prompt", "params": {}}).splitlines(True),
        *lines({"id": 5, "method": "session/new", "params": {"cwd": "/gone", "mcpServers": []}}).splitlines(True),
    ]
    code, answers, said = served(tmp_path, b"".join(wrong) + lines(INITIALIZE))
    assert code == 0
    assert next(one for one in answers if one["id"] == 0)["result"]["protocolVersion"] == 1
    errors = {one["id"]: one["error"] for one in answers if one["id"] not in (0, None)}
    assert {number: error["code"] for number, error in errors.items()} == {
        **{1: -32600, 2: -32600, 3: -32601, 4: -32602, 5: -32602, 8: -32600},
    }
    assert all("\n" not in one["error"]["message"] and one["error"]["message"] for one in answers if "error" in one)
    assert "Traceback" not in said


def test_what_the_protocol_cannot_answer_is_said_in_one_line_on_standard_error(tmp_path: Path) -> None:
    code, _, said = served(tmp_path, lines(INITIALIZE, {"jsonrpc": "2.0", "method": "session/cancel", "params": {}}))
    assert code == 0
    assert "session/cancel" in said
    assert [line[:9] for line in said.splitlines()] == ["nca acp: "]


@given(
    st.binary(max_size=200)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda some: (
            st.lists(some, max_size=3)
            | st.dictionaries(
                st.sampled_from(["id", "method", "params", "result", "error", "jsonrpc", "x"]), some, max_size=5
            )
        ),
    ).map(lambda value: json.dumps(value).encode())
)
def test_whatever_comes_is_a_message_of_the_sdks_form_or_refused(raw: bytes) -> None:
    found = read_message(raw)
    if "refused" in found:
        assert found["refused"]["error"]["message"]
        return
    assert isinstance(found.get("id"), str | int | None)
    assert isinstance(found.get("method"), str) or "result" in found or isinstance(found["error"], dict)
    assert isinstance(found.get("params", {}), dict) or "method" not in found


def test_a_signal_ends_it(tmp_path: Path) -> None:
    words, env = program("http://127.0.0.1:9/v1", tmp_path, is_forked=False)
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, cwd=tmp_path) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(lines(INITIALIZE))
        running.stdin.flush()
        assert json.loads(running.stdout.readline())["id"] == 0
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 143
        assert running.stdout.read() == b""


def test_an_editor_that_vanishes_at_an_approval_leaves_a_session_that_can_go_on(tmp_path: Path) -> None:
    with Provider(in_order(Answer(text="Now.", tool_calls=[("shell", {"command": "touch made"})]))) as provider:
        words, env = program(provider.url, tmp_path)
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, cwd=tmp_path) as running:
            assert running.stdin is not None
            assert running.stdout is not None
            opened = {"id": 1, "method": "session/new", "params": {"cwd": str(tmp_path), "mcpServers": []}}
            running.stdin.write(lines(INITIALIZE, opened))
            running.stdin.flush()
            answer: dict[str, Any] = {}
            while answer.get("id") != 1:
                answer = json.loads(running.stdout.readline())
            session = answer["result"]["sessionId"]
            prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "Touch it."}]}
            running.stdin.write(lines({"id": 2, "method": "session/prompt", "params": prompt}))
            running.stdin.flush()
            while answer.get("method") != "session/request_permission":
                answer = json.loads(running.stdout.readline())
            running.stdout.close()
            running.stdin.close()
            assert running.wait(60) == 0
    assert not (tmp_path / "made").exists()
    with Store.open(data_dir(environment(tmp_path)) / "sessions.db") as store, store.open_session(session) as kept:
        assert kept.recovered == ()
        roles = [(one.message.role, one.message.is_error) for one in kept.log.entries()]
    assert roles == [("user", False), ("assistant", False), ("tool", True)]


def test_what_prints_does_not_reach_the_protocol_and_what_reads_finds_nothing() -> None:
    program_ = (
        "import os, sys; from nca.acp.stdio import private_streams; reader, writer = private_streams();"
        "print('printed'); os.system('echo child; cat'); sys.stdin.read(); os.write(writer, os.read(reader, 9))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program_], input=b"message", capture_output=True, check=True, timeout=60
    )
    assert done.stdout == b"message"
    assert sorted(done.stderr.split()) == [b"child", b"printed"]


def test_without_the_sdk_one_line_says_what_to_install(tmp_path: Path) -> None:
    hide = "import sys; sys.modules['acp'] = None; sys.argv[1:] = ['acp']; from nca.cli.app import main; main()"
    env = environment(tmp_path)
    done = subprocess.run([sys.executable, "-c", hide], capture_output=True, env=env, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"agent-client-protocol" in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_sessions_come_in_pages_and_a_senseless_cursor_is_an_error_that_says_what_is_valid(
    tmp_path: Path,
) -> None:
    with Store.open(data_dir(environment(tmp_path)) / "sessions.db") as store:
        for number in range(120):
            with store.create(directory="/work", model="m") as session:
                session.log.append([Message("user", f"question {number}"), Message("assistant", "answer")])
    right: list[str | None] = [None, "50", "100"]
    wrong = [
        "-1",
        "",
        "0",
        "7",
        "150",
        "050",
        "50 ",
        "٥٠",
        "1e2",
        "9" * 5_000,
        "\x1b[2J\n",
        "\ud800",
        "next",
        50,
        True,
        [1],
    ]
    asked = [
        {"jsonrpc": "2.0", "id": number, "method": "session/list", "params": {"cursor": cursor}}
        for number, cursor in enumerate([*right, *wrong], 1)
    ]
    code, answers, said = served(tmp_path, lines(INITIALIZE, *asked))
    by_id = {one["id"]: one for one in answers}
    pages = [by_id[number]["result"] for number in (1, 2, 3)]
    assert [len(page["sessions"]) for page in pages] == [50, 50, 20]
    assert [page.get("nextCursor") for page in pages] == ["50", "100", None]
    assert len({one["sessionId"] for page in pages for one in page["sessions"]}) == 120
    for number, cursor in enumerate(wrong, 4):
        error = by_id[number]["error"]
        assert (error["code"], "cursor" in error["message"]) == (-32602, True), cursor
        assert error["message"].isprintable()
        if isinstance(cursor, str) and cursor != "\ud800":
            assert "Valid: the nextCursor of the last answer" in error["message"]
    assert (code, "Traceback" in said) == (0, False)
