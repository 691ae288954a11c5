"""The model played by hand: a real `nca` talks to it, and files carry requests and answers."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from nca.testing.by_hand import ByHand, InvalidAnswer, read_answer
from nca.testing.scripted import Answer, count_request_tokens
from tests.cli.command import environment
from tests.testing.forks import forked

WAIT_SECONDS = 60.0
"""Only a test that fails waits this long."""


def request_in(folder: Path, number: int) -> dict[str, Any]:
    """Wait until this request was asked for."""
    path, until = folder / f"{number:04}.request.json", time.monotonic() + WAIT_SECONDS
    while time.monotonic() < until:
        if path.is_file() and path.read_text().endswith("}\n"):
            found: dict[str, Any] = json.loads(path.read_text())
            return found
        time.sleep(0.02)
    raise AssertionError(f"no {path.name} came")


def play(folder: Path, *answers: str | dict[str, Any], first: int = 1) -> threading.Thread:
    """Answer these requests, each when it is there."""

    def run() -> None:
        for number, answer in enumerate(answers, first):
            request_in(folder, number)
            is_text = isinstance(answer, str)
            name = f"{number:04}.answer.{'txt' if is_text else 'json'}"
            (folder / name).write_text(answer if isinstance(answer, str) else json.dumps(answer))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def talk(
    provider: ByHand, home: Path, *arguments: str, stdin: str = "", **more: str
) -> subprocess.CompletedProcess[str]:
    extra: dict[str, Any] = provider.environment() | more
    return forked(*arguments, home=home, stdin=stdin, **extra)


def test_a_run_with_a_tool_is_played_with_files(tmp_path: Path) -> None:
    folder, home = tmp_path / "requests", tmp_path / "home"
    home.mkdir()
    (home / "notas.txt").write_text("El código es 7319.\n")
    said: list[str] = []
    with ByHand(folder, window_tokens=12_000, say=said.append) as provider:
        call = {"name": "read_file", "arguments": {"path": "notas.txt"}}
        playing = play(folder, {"text": "Lo leo.", "tool_calls": [call]}, "Es 7319.\n")
        done = talk(provider, home, "run", "¿Cuál es el código?", "--json")
        playing.join()
    result = json.loads(done.stdout)
    assert (done.returncode, result["text"]) == (0, "Es 7319.")
    assert said == ["0001.request.json", "0002.request.json"]
    first, second = (request_in(folder, number) for number in (1, 2))
    assert "read_file" in {tool["function"]["name"] for tool in first["tools"]}
    assert first["messages"][-1] == {"role": "user", "content": "¿Cuál es el código?"}
    assert "7319" in second["messages"][-1]["content"]
    counted = count_request_tokens(second["messages"], second["tools"])
    assert result["usage"]["prompt_tokens"] == counted + count_request_tokens(first["messages"], first["tools"])
    assert "¿Cuál" in (folder / "0001.request.json").read_text()


def test_lines_of_a_loop_are_played_and_the_numbers_go_on(tmp_path: Path) -> None:
    folder, home = tmp_path / "requests", tmp_path / "home"
    home.mkdir()
    for first, lines in ((1, ["Hello", "And now?"]), (3, ["Still there?"])):
        with ByHand(folder, window_tokens=12_000) as provider:
            playing = play(folder, *(f"Answer to {line}" for line in lines), first=first)
            done = talk(provider, home, "loop", "--continue", stdin="".join(f"{line}\n" for line in lines))
            assert done.returncode == 0, done.stderr
            playing.join()
    assert [message["role"] for message in request_in(folder, 3)["messages"][-3:]] == ["user", "assistant", "user"]
    assert not (folder / "0004.request.json").exists()


def test_a_request_above_the_window_is_refused_as_a_provider_does(tmp_path: Path) -> None:
    folder = tmp_path / "requests"
    said: list[str] = []
    with ByHand(folder, window_tokens=300, say=said.append) as provider:
        done = talk(provider, tmp_path, "run", "word " * 600, NCA_MODEL__CONTEXT_WINDOW="12000")
    assert done.returncode != 0
    assert "maximum context length is 300 tokens" in said[0]
    assert not list(folder.glob("*.request.json"))


def test_the_command_prints_what_to_set_and_each_request(tmp_path: Path) -> None:
    folder = tmp_path / "requests"
    command = [sys.executable, "-m", "nca.testing.by_hand", str(folder), "--window", "12000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment(tmp_path)) as server:
        assert server.stdout is not None
        head = [server.stdout.readline() for _ in range(7)]
        chosen: dict[str, Any] = dict(re.findall(r"export (\w+)=(\S+)\n", "".join(head)))
        assert chosen["NCA_MODEL__CONTEXT_WINDOW"] == "12000"
        playing = play(folder, "Hola.")
        done = forked("run", "Hola", home=tmp_path, **chosen)
        playing.join()
        assert server.stdout.readline() == "0001.request.json\n"
        os.kill(server.pid, signal.SIGINT)
    assert (done.stdout, server.returncode) == ("Hola.\n", 0)


def test_an_answer_that_cannot_be_read_is_named_and_may_be_mended(tmp_path: Path) -> None:
    folder = tmp_path / "requests"
    said: list[str] = []
    with ByHand(folder, window_tokens=12_000, say=said.append) as provider:

        def mend() -> None:
            request_in(folder, 1)
            answer = folder / "0001.answer.json"
            answer.write_text('{"text": "half')
            until = time.monotonic() + WAIT_SECONDS
            while len(said) < 2 and time.monotonic() < until:
                time.sleep(0.02)
            answer.write_text('{"text": "Whole."}')

        mending = threading.Thread(target=mend, daemon=True)
        mending.start()
        done = talk(provider, tmp_path, "run", "Hello")
        mending.join()
    assert done.stdout == "Whole.\n"
    assert said[1].startswith("0001.answer.json: not valid JSON")


def test_a_request_that_comes_again_waits_for_the_same_answer(tmp_path: Path) -> None:
    folder = tmp_path / "requests"
    with ByHand(folder, window_tokens=12_000) as provider:
        impatient = {"NCA_MODEL__FIRST_TOKEN_SECONDS": "2", "NCA_MODEL__MAX_RETRIES": "0"}
        failed = talk(provider, tmp_path, "run", "Hello", **impatient)
        (folder / "0001.answer.txt").write_text("Late.")
        again = talk(provider, tmp_path, "run", "Hello")
    assert failed.returncode == 3
    assert again.stdout == "Late.\n"
    assert len(list(folder.glob("*.request.json"))) == 1


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"txt": "a"}', '{"text": 1}', '{"tool_calls": {}}', '{"tool_calls": [{"name": 1}]}', "[1"],
)
def test_what_an_answer_is_not(content: str) -> None:
    with pytest.raises(InvalidAnswer, match="write"):
        read_answer(content)


def test_what_an_answer_is() -> None:
    call = {"name": "grep", "arguments": {"pattern": "ñ"}}
    assert read_answer(json.dumps({"text": "Ya.", "tool_calls": [call]})) == Answer(
        text="Ya.", tool_calls=[("grep", '{"pattern": "ñ"}')]
    )
    assert read_answer('{"text": null, "tool_calls": [{"name": "a", "arguments": "{"}]}').tool_calls == [("a", "{")]
