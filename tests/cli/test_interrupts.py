"""Ctrl-C ends any wait, in `nca run` and in the chat, and leaves a valid session that can be continued."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nca.context.view import Summary
from nca.sessions.store import Store
from nca.testing.faults import BEGUN, rate_limit
from nca.testing.provider import Provider
from tests.cli.command import environment
from tests.terminal.tty import ROOT
from tests.testing.cases import RUNS
from tests.testing.fault_runs import ANSWER, TALK_TURNS, answered, database, write_talk
from tests.testing.forked_tty import ForkedTty
from tests.testing.forks import WAIT_SECONDS, Child, Forks, shared

CTRL_C, CTRL_D, CTRL_U = "\x03", "\x04", "\x15"
OWN = {"waits-half-a-minute": rate_limit(retry_after="30")}
WAITS = {
    "answer": "stalls-at-first",
    "back-off": "waits-half-a-minute",
    "stream": "stalls-in-the-middle",
    "summary": "summary-stalls",
}
"""What is waited for, and the model that lets one wait; the deadlines are the usual ones."""


@pytest.fixture(scope="module")
def forks() -> Forks:
    return shared()


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider(answered, faults={**RUNS, **OWN}, models=()) as running:
        yield running


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    home = tmp_path_factory.mktemp("talk")
    return home, write_talk(home)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def asked(provider: Provider, name: str) -> None:
    """Wait until a model has got a request."""
    until(lambda: any(request["model"] == name for request in provider.requests))


def is_waiting(wait: str, provider: Provider, child: Child) -> bool:
    """Whether the command waits for what it should be interrupted in."""
    written = (child.folder / "stdout").read_text() if (child.folder / "stdout").exists() else ""
    return (
        bool(provider.requests)
        and {
            "answer": True,
            "back-off": "retry_scheduled" in written,
            "stream": BEGUN in "".join(_deltas(written)),
            "summary": "<transcript>" in str(provider.requests[-1]["messages"]),
        }[wait]
    )


def _deltas(written: str) -> Iterator[str]:
    """The pieces of the answer among the events that were written; the last line may not be whole yet."""
    for line in written.split("\n")[:-1]:
        if (event := json.loads(line))["type"] == "text_delta":
            yield event["text"]


@pytest.mark.parametrize("wait", WAITS)
def test_an_interrupt_ends_the_wait_and_the_session_goes_on(
    wait: str, forks: Forks, provider: Provider, talk: tuple[Path, str], tmp_path: Path
) -> None:
    shutil.copytree(talk[0] / "nca", tmp_path / "nca")
    keys: dict[str, Any] = {"OPENAI_API_KEY": "k", "OPENAI_API_BASE": provider.url}
    # A summary is asked for where more is to go than a view shortens.
    settings = {"NCA_MODEL__CONTEXT_WINDOW": "8000", "NCA_CONTEXT__TARGET_RATIO": "0.2"}
    small: dict[str, Any] = settings if wait == "summary" else {}
    place: dict[str, Any] = {"home": tmp_path, "cwd": tmp_path}
    words = ["run", "What is it?", "--stream", "ndjson", "--session", talk[1], "--model", f"openai/{WAITS[wait]}"]
    child = forks.start(*words, **place, **keys, **small)
    until(lambda: is_waiting(wait, provider, child))
    child.interrupt()
    done = child.wait()
    assert (done.returncode, done.stderr) == (130, "")
    assert '"reason":"interrupted"' in done.stdout.splitlines()[-1]
    assert json.loads(done.stdout.splitlines()[-1])["exit_code"] == 130
    with Store.open(database(tmp_path), read_only=True) as store:
        session = store.open_session(talk[1], read_only=True)
        kept = [entry.message for entry in session.log.entries()[2 * TALK_TURNS :]]
        assert not [item for item in session.views.current().items if isinstance(item, Summary)]
    assert [message.role for message in kept] == ["user", "assistant"][: 1 + (wait == "stream")]
    assert not kept[1:] or (kept[1].text.strip(), kept[1].is_interrupted) == (BEGUN, True)
    if wait == "summary":
        assert '"phase":"failed"' in done.stdout
    again = forks.run("run", "Go on.", "--session", talk[1], "--model", "openai/plain", **place, **keys)
    assert (again.returncode, again.stdout) == (0, f"{ANSWER}\n")
    assert "What is it?" in str(provider.requests[-1]["messages"])


def test_the_last_event_has_the_exit_code_of_the_program(forks: Forks, provider: Provider, tmp_path: Path) -> None:
    keys: dict[str, Any] = {"OPENAI_API_KEY": "k", "OPENAI_API_BASE": provider.url}
    words = ["run", "What is it?", "--stream", "ndjson", "--model", f"openai/{WAITS['answer']}"]
    child = forks.start(*words, home=tmp_path, cwd=tmp_path, **keys)
    until(lambda: bool(provider.requests))
    child.send(signal.SIGTERM)
    done = child.wait()
    assert (done.returncode, done.stderr) == (143, "")
    last = json.loads(done.stdout.splitlines()[-1])
    assert (last["type"], last["reason"], last["exit_code"]) == ("turn_finished", "interrupted", 143)


def test_an_interrupt_ends_the_wait_for_a_connection(forks: Forks, tmp_path: Path) -> None:
    """The server takes the connection and never speaks TLS."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"https://127.0.0.1:{server.getsockname()[1]}/v1"
        keys: dict[str, Any] = {"OPENAI_API_KEY": "k", "OPENAI_API_BASE": address}
        # With its window set, the server is not asked for its list of models first.
        words = ("run", "Hello", "-m", "openai/x", "--context-window", "16000")
        child = forks.start(*words, home=tmp_path, cwd=tmp_path, **keys)
        connection, _ = server.accept()
        child.interrupt()
        done = child.wait()
        connection.close()
    assert (done.returncode, done.stdout) == (130, "")
    assert "Interrupted" in done.stderr


def test_in_the_chat_every_wait_ends_and_the_prompt_is_back(
    provider: Provider, talk: tuple[Path, str], tmp_path: Path
) -> None:
    shutil.copytree(talk[0] / "nca", tmp_path / "nca")
    env = environment(tmp_path, OPENAI_API_KEY="k", OPENAI_API_BASE=provider.url, PYTHONPATH=str(ROOT))
    with ForkedTty(["nca", "--resume", talk[1], "--model", "openai/plain"], environment=env) as tty:
        tty.sees("Resuming")
        for number, (wait, name) in enumerate(WAITS.items(), 1):
            if wait == "summary":
                tty.line("/config model.context_window 10000")
                tty.sees("model.context_window = 10,000")
                tty.line("/config context.target_ratio 0.2")
                tty.sees("context.target_ratio = 0.2")
            tty.line(f"/model openai/{name}")
            tty.sees(f"openai/{name} answers from now on.")
            tty.settle()
            tty.line(f"This is about {wait}.")
            tty.sees({"back-off": "Retrying", "stream": BEGUN, "summary": "Compacting"}.get(wait, "Thinking"))
            asked(provider, name)
            tty.send(CTRL_C)
            tty.sees("Interrupted", times=number)
            tty.settle()
            # Where nothing had come, the message is back in the prompt.
            tty.send(CTRL_U)
        tty.line("/config model.context_window 0")
        tty.line("/model openai/plain")
        tty.sees("openai/plain answers from now on.")
        tty.settle()
        tty.line("And now?")
        tty.sees(ANSWER)
        tty.settle()
        tty.send(CTRL_D)
        assert tty.ends() == 0
        assert b"Traceback" not in tty.raw
    assert "This is about stream." in str(provider.requests[-1]["messages"])
    with Store.open(database(tmp_path), read_only=True) as store:
        said = [entry.message.text for entry in store.open_session(talk[1], read_only=True).log.entries()]
    assert [f"This is about {wait}." in said for wait in WAITS] == [True] * len(WAITS)
