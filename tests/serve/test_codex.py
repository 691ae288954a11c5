"""Codex's client: what it asks of `/v1/responses/compact`, and what it goes on with.

`codex-compact.json` is a request of Codex 0.130, with shorter instructions and fewer tools. Newer versions (0.171) send
no such request: their compactions go to the model's own path.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from nca.testing.provider import LoopbackHandler, LoopbackProvider
from tests.serve.test_serve import post, serving

FOLDER = os.environ.get("NCA_TEST_AGENTS", "")
SECONDS = 120
ASKED = "My word is walrus. Count for me."
COMMAND = "seq 100 1000"
LIMIT_TOKENS = 20_000
Items = list[dict[str, Any]]


def refused(items: Items) -> Items:
    """The items that Codex cannot read, or that it drops."""
    return [
        item
        for item in items
        if item["type"] != "message"
        or item["role"] not in ("user", "assistant", "developer")
        or not isinstance(item["content"], list)
    ]


def texts(items: Items) -> list[str]:
    return [part["text"] for item in items for part in item["content"]]


def test_codex_can_read_all_of_the_answer_to_its_request() -> None:
    body = json.loads(Path(__file__).with_name("codex-compact.json").read_text(encoding="utf-8"))
    assert {item["type"] for item in body["input"]} > {"message", "function_call"}
    with serving() as (url, _):
        told = post(url, "/v1/responses/compact", body).json()
        small = post(url, "/v1/responses/compact", {**body, "context_window": 6_000}).json()
    for answer in (told, small):
        assert refused(answer["output"]) == []
        # A call and its result have become words of a message; clients would drop anything else.
        assert not {item["type"] for item in answer["output"]} & {"function_call", "function_call_output", "reasoning"}
        assert answer["usage"]["output_tokens"] < answer["usage"]["input_tokens"]
        shown = json.dumps(answer["output"])
        assert "walrus" in shown
        assert COMMAND in shown


def test_calls_become_words_with_their_results() -> None:
    def call(id: str) -> dict[str, Any]:
        return {"type": "function_call", "call_id": id, "name": "shell", "arguments": f'{{"run": "{id}"}}'}

    said = [{"type": "message", "role": "user", "content": f"Look around, {n}. " + "So. " * 500} for n in range(30)]
    outputs = [{"type": "function_call_output", "call_id": id, "output": f"result of {id}"} for id in ("one", "two")]
    with serving() as (url, _):
        body = {"model": "gpt-4.1", "input": [*said, call("one"), call("two"), *outputs]}
        answered = post(url, "/v1/responses/compact", body).json()["output"]
    assert {item["type"] for item in answered} == {"message"}
    words = json.dumps(answered[-1])
    for id in ("one", "two"):
        assert words.count(f"result of {id}") == 1
        assert f'"{id}' in words.partition(f"result of {id}")[0].replace("\\", "")


class _Models(LoopbackProvider):
    """A model that calls a command when it is first asked, and reports that the window is full after its answer.

    Compactions are forwarded to `nca serve` at `url`.
    """

    def __init__(self, url: str) -> None:
        super().__init__(_Handler)
        self.compacts_at = url
        self.are_asked_to_compact = False
        self.compactions: list[tuple[dict[str, Any], Items]] = []


class _Handler(LoopbackHandler):
    def on_post(self, body: bytes) -> None:
        models: _Models = self.server.provider
        request = json.loads(body)
        if self.path.endswith("/compact"):
            answer = httpx.post(f"{models.compacts_at}/v1/responses/compact", content=body)
            models.compactions.append((request, answer.json()["output"]))
            self._send(answer.status_code, "application/json", answer.content)
            return
        if request["input"][-1]["type"] == "compaction_trigger":
            models.are_asked_to_compact = True
        number = models.record(request, [])
        said = {"type": "output_text", "text": "Counted.", "annotations": []}
        item: dict[str, Any] = {"type": "message", "id": "msg_1", "role": "assistant", "content": [said]}
        if number == 1:
            arguments = json.dumps({"cmd": COMMAND})
            item = {"type": "function_call", "call_id": "call_1", "name": "exec_command", "arguments": arguments}
        tokens = 2 * LIMIT_TOKENS if number == 2 else 100
        usage = {"input_tokens": tokens, "output_tokens": 5, "total_tokens": tokens + 5}
        response = {"id": f"resp_{number}", "object": "response", "status": "completed", "output": [item]}
        events: list[dict[str, Any]] = [
            {"type": "response.created", "response": {"id": f"resp_{number}"}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {**response, "usage": usage}},
        ]
        text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
        self._send(200, "text/event-stream", text.encode())

    def _send(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.mark.skipif(not FOLDER, reason="NCA_TEST_AGENTS names no folder with the programs")
def test_codex_compacts_by_nca_serve(tmp_path: Path) -> None:
    """NCA_TEST_AGENTS: a folder in which `npm install` put @openai/codex, of a version up to 0.130."""
    home, work = tmp_path / "home", tmp_path / "work"
    (home / ".codex").mkdir(parents=True)
    work.mkdir()
    with serving() as (url, _), _Models(url) as models:
        # Codex compacts in this way where the provider has the name of OpenAI.
        provider = f'name = "OpenAI"\nbase_url = "{models.url}/v1"\nwire_api = "responses"\nenv_key = "LOOP_KEY"\n'
        limits = f"model_context_window = 100000\nmodel_auto_compact_token_limit = {LIMIT_TOKENS}\n"
        settings = f'model = "gpt-5"\nmodel_provider = "loop"\n{limits}[model_providers.loop]\n{provider}'
        (home / ".codex" / "config.toml").write_text(settings, encoding="utf-8")
        for arguments in ([ASKED], ["resume", "--last", "And now?"]):
            command = [f"{FOLDER}/node_modules/.bin/codex", "exec", "--skip-git-repo-check", *arguments]
            ran = subprocess.run(
                command,
                cwd=work,
                env={"PATH": os.environ["PATH"], "HOME": str(home), "LOOP_KEY": "x"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=SECONDS,
            )
            if models.are_asked_to_compact:
                pytest.skip("this version of Codex asks the model's own path for compactions")
            assert ran.returncode == 0, ran.stderr + ran.stdout
        assert len(models.compactions) == 1
        asked, answered = models.compactions[0]
        assert COMMAND in json.dumps(asked["input"])
        kept = [item for item in answered if item["role"] != "developer"]
        assert texts(models.requests[-1]["input"][: len(kept)]) == texts(kept)
        assert "walrus" in json.dumps(kept)
