"""The FastAPI example of docs/embed.md: real workers, several users, and a provider on loopback with a small window."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2 as httpx

import nca
from nca.testing.provider import Provider
from nca.testing.scripted import Answer
from tests.library.framework_talks import ASK, LOG, TELL, WINDOW
from tests.testing.forks import standing

ROOT = Path(__file__).resolve().parents[2]
USERS = ("ada", "bob")
TURNS = 14


@contextmanager
def served(folder: Path, url: str) -> Iterator[str]:
    """The address of the example in a process of its own."""
    env = {
        **os.environ,
        "CHAT_FOLDER": str(folder),
        "CHAT_USERS": json.dumps({f"token of {user}": user for user in USERS}),
        "CHAT_MODEL": "test-model",
        "CHAT_WINDOW": str(WINDOW),
        "OPENAI_BASE_URL": url,
        "OPENAI_API_KEY": "x",
    }
    command = standing("uvicorn", "fastapi_chat:app", "--port", "0")
    process = subprocess.Popen(
        command, cwd=ROOT / "docs" / "examples", env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    said = ""
    try:
        while not (running := re.search(r"running on (http://\S+)", said)):
            line = process.stderr.readline()
            assert line, said
            said += line
        with ThreadPoolExecutor(1) as reader:
            reader.submit(process.stderr.read)
            yield running[1]
            process.terminate()
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()


@contextmanager
def workers(folder: Path, url: str) -> Iterator[tuple[str, str]]:
    """The addresses of two processes, as behind a balancer: so a test says which of them gets a request."""
    with served(folder, url) as one, served(folder, url) as other:
        yield one, other


def ask(address: str, user: str, text: str, chat: str = "1") -> Any:
    headers = {"Authorization": f"Bearer token of {user}"}
    return httpx.post(f"{address}/chats/{chat}", json={"text": text}, headers=headers, timeout=60)


def test_a_long_conversation_goes_on_at_any_worker(tmp_path: Path) -> None:
    def script(request: dict[str, Any]) -> Answer:
        last = request["messages"][-1]
        if last["role"] == "tool":
            return Answer(text=f"It says: {last['content'][:200]}")
        return Answer(tool_calls=(("recall", {"expand": "1"}),)) if "first" in last["content"] else Answer(text="Seen.")

    with Provider(script, window_tokens=WINDOW) as provider, workers(tmp_path, provider.url) as at:
        for number in range(TURNS):
            assert ask(at[number % 2], "ada", f"Log {number}:\n{LOG[:2000]}").json() == {"text": "Seen."}
        assert "Log 0:" in ask(at[0], "ada", "What did the first log say?").json()["text"]
        assert ask(at[1], "ada", "", chat="2").json() == {"text": "Seen."}
        refused = ask(at[0], "ada", "word " * 20_000)
        assert (refused.status_code, "tokens, and the budget is" in refused.json()["detail"]) == (422, True)
    assert provider.overflows == []
    sizes = [nca.estimate_messages_tokens(request["messages"]) for request in provider.requests]
    assert sizes[-1] < 100 < max(sizes)
    requests = [request["messages"] for request in provider.requests[:TURNS]]
    grown = [new[: len(old)] == old for old, new in pairwise(requests)]
    assert grown.count(True) > grown.count(False) > 0, "the beginning stays the same between compactions"


def test_two_users_at_once_read_their_own_words_only(tmp_path: Path) -> None:
    both_asked = threading.Barrier(2)

    def script(request: dict[str, Any]) -> Answer:
        last = request["messages"][-1]
        if last["role"] == "tool":
            return Answer(text=last["content"])
        both_asked.wait(timeout=60)
        return Answer(tool_calls=(("recall", {"expand": "1"}),)) if ASK in last["content"] else Answer(text="Noted.")

    with Provider(script, window_tokens=WINDOW) as provider, workers(tmp_path, provider.url) as at:
        with ThreadPoolExecutor(2) as pool:
            words = dict(zip(USERS, ("walrus", "ostrich"), strict=True))
            for texts in ({user: f"{TELL} {words[user]}." for user in USERS}, dict.fromkeys(USERS, ASK)):
                asked = [pool.submit(ask, at[n], user, texts[user]) for n, user in enumerate(USERS)]
                told = [one.result(timeout=60).json()["text"] for one in asked]
            at = at[::-1]
        assert [("walrus" in text, "ostrich" in text) for text in told] == [(True, False), (False, True)]
        requests = [json.dumps(request["messages"]) for request in provider.requests]
        assert not [one for one in requests if "walrus" in one and "ostrich" in one]
        assert httpx.post(f"{at[0]}/chats/1", json={"text": "x"}).status_code == 401
        assert ask(at[0], "eve", "x").status_code == 401


def test_of_two_requests_for_one_chat_at_once_one_is_answered(tmp_path: Path) -> None:
    both_asked = threading.Barrier(2)

    def script(request: dict[str, Any]) -> Answer:
        if request["messages"][-1]["content"] in ("one", "other"):
            both_asked.wait(timeout=60)
        return Answer(text="Seen.")

    with Provider(script, window_tokens=WINDOW) as provider, workers(tmp_path, provider.url) as at:
        ask(at[0], "ada", "Hello.")
        with ThreadPoolExecutor(2) as pool:
            asked = [pool.submit(ask, at[n], "ada", text) for n, text in enumerate(("one", "other"))]
            assert sorted(one.result(timeout=60).status_code for one in asked) == [200, 409]
        assert ask(at[1], "ada", "And now?").status_code == 200
    said = [row["content"] for row in provider.requests[-1]["messages"] if row["role"] == "user"]
    assert said in (["Hello.", "one", "And now?"], ["Hello.", "other", "And now?"])
