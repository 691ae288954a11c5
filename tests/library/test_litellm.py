"""LiteLLM before nca: the callback of docs/embed.md, and LiteLLM's own guardrail before `nca serve`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import nca
from nca.testing.provider import Provider
from nca.testing.scripted import Answer
from tests.library.framework_talks import QUESTIONS, RULE, WINDOW
from tests.serve.test_serve import serving

ROOT = Path(__file__).resolve().parents[2]


def litellm_does(what: str, url: str) -> Any:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.library.litellm_talk", what, url],
        cwd=ROOT,
        env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(next(line for line in ran.stdout.splitlines() if line.startswith("{")))


def test_the_callback_fits_every_request_and_the_caller_keeps_everything() -> None:
    with Provider(lambda _: Answer(text="Noted."), window_tokens=WINDOW) as provider:
        found = litellm_does("callback", provider.url)
    assert provider.overflows == []
    assert found == {"kept": 2 * len(QUESTIONS), "texts": ["Noted."] * len(QUESTIONS)}
    requests = [request["messages"] for request in provider.requests]
    assert len(requests) == len(QUESTIONS)
    assert all(RULE in json.dumps(messages) for messages in requests)
    assert "Conversation Summary" in json.dumps(requests[-1])
    assert "recall" not in json.dumps(requests), "there is no such tool"
    goes_on = [after[: len(before)] == before for before, after in pairwise(requests)]
    assert any(goes_on[len(goes_on) // 2 :]), "each request was compacted anew"


def test_litellm_s_own_guardrail_compresses_by_nca_serve() -> None:
    with serving() as (url, _):
        found = litellm_does("guardrail", url)
    before, after = found["before"], found["after"]
    assert [row["role"] for row in after] == [row["role"] for row in before]
    assert [row.get("tool_calls") for row in after] == [row.get("tool_calls") for row in before]
    assert nca.validate_request(after, "openai") == []
    assert after[-1] == before[-1]
    assert RULE in json.dumps(after)
    assert "recall" not in json.dumps(after), "there is no such tool"
    assert nca.estimate_messages_tokens(after) < 0.5 * nca.estimate_messages_tokens(before)
    assert found["said"]["tokens_saved"] == found["said"]["tokens_before"] - found["said"]["tokens_after"] > 0
