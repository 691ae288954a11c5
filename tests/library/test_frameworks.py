"""The examples of docs/embed.md in the real frameworks, against a provider on loopback with a small window."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import nca
from nca.testing.provider import Provider
from nca.testing.scripted import Answer
from tests.library.framework_talks import ASK, RULE, TELL, TURNS, WINDOW

ROOT = Path(__file__).resolve().parents[2]


def script(request: dict[str, Any]) -> Answer:
    """The log first, then an answer; where the person asks for what is gone, the tool that finds it."""
    last = request["messages"][-1]
    text = str(last["content"])
    if last["role"] == "tool":
        return Answer(text=f"It says: {text[-60:]}")
    if "first log" in text:
        return Answer(tool_calls=(("recall", {"expand": "3"}),))
    number = int(re.findall(r"\d+", text)[-1])
    return Answer(tool_calls=(("read_log", {"number": number}),), call=f"log_{number}")


FRAMEWORKS = [
    ("langchain", "sync"),
    *((name, how) for name in ("langchain", "openai_agents", "pydantic_ai") for how in ("run", "stream")),
]
Talk = Callable[..., list[dict[str, Any]]]


@contextmanager
def running(framework: str) -> Iterator[Talk]:
    """Conversations in one process with the framework, whose import takes longer than they do."""
    command = [sys.executable, "-m", "tests.library.framework_talks", framework]
    env = {**os.environ, "LANGSMITH_TRACING": "false"}
    pipe = subprocess.PIPE
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, cwd=ROOT, env=env, stdin=pipe, stdout=pipe, stderr=errors, text=True) as process,
    ):

        def talk(how: str, url: str, *users: str) -> list[dict[str, Any]]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{' '.join((how, url, *users))}\n")
            process.stdin.flush()
            found = next((line for line in process.stdout if line.startswith("[{")), "")
            errors.seek(0)
            assert found, errors.read()
            return json.loads(found)  # type: ignore[no-any-return]

        yield talk


@pytest.fixture(scope="module")
def talks() -> Iterator[Callable[[str], Talk]]:
    """The process of a framework; it is started when it is first asked for."""
    with ExitStack() as stack:
        yield cache(lambda framework: stack.enter_context(running(framework)))


@pytest.mark.parametrize(("framework", "how"), FRAMEWORKS)
def test_a_long_conversation_in_a_framework(talks: Callable[[str], Talk], framework: str, how: str) -> None:
    """Every request fits (the provider refuses others) and is valid, the rule stays, and the framework keeps it all."""
    with Provider(script, window_tokens=WINDOW) as provider:
        (found,) = talks(framework)(how, provider.url)
    assert provider.overflows == []
    requests = [request["messages"] for request in provider.requests]
    assert len(requests) == 2 * (TURNS + 1)
    assert all(RULE in json.dumps(messages) for messages in requests)
    assert max(map(nca.estimate_messages_tokens, requests)) > 4_000, "nothing had to be compacted"
    assert found["kept"] == 4 * (TURNS + 1)
    assert "log 0" in found["recalled"]
    if (framework, how) == ("pydantic_ai", "run"):
        assert "data:image/png" in json.dumps(requests[0])
        assert "[image]" in json.dumps(requests[-1])


@pytest.mark.parametrize(("framework", "how"), FRAMEWORKS)
def test_two_users_at_once_read_their_own_words_only(talks: Callable[[str], Talk], framework: str, how: str) -> None:
    """Both ask, so both requests have been fitted, before either gets the answer that calls the tool."""
    both_asked = threading.Barrier(2)

    def answer(request: dict[str, Any]) -> Answer:
        last = request["messages"][-1]
        if last["role"] == "tool":
            return Answer(text="That was it.")
        both_asked.wait(timeout=60)
        return (
            Answer(tool_calls=(("recall", {"expand": "1"}),)) if ASK in str(last["content"]) else Answer(text="Noted.")
        )

    with Provider(answer, window_tokens=WINDOW) as provider:
        one, other = (found["recalled"] for found in talks(framework)(how, provider.url, "walrus", "ostrich"))
    assert f"{TELL} walrus." in one
    assert "ostrich" not in one
    requests = [json.dumps(request["messages"]) for request in provider.requests]
    assert not [one for one in requests if "walrus" in one and "ostrich" in one]
    assert f"{TELL} ostrich." in other
    assert "walrus" not in other


def test_the_page_shows_the_examples_as_they_are() -> None:
    page = (ROOT / "docs" / "embed.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    files = sorted((ROOT / "docs" / "examples").glob("*.py"))
    assert len(files) == 5
    for file in files:
        code = file.read_text(encoding="utf-8")
        assert code in blocks, f"{file.name} is not in docs/embed.md as it is"
        assert len(code.splitlines()) < 80
