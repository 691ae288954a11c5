"""LiteLLM before nca: the callback of docs/embed.md, and LiteLLM's own guardrail before `nca serve`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import nca
from nca.testing.provider import Provider
from nca.testing.scripted import Answer
from tests.library.framework_talks import QUESTIONS, RULE, WINDOW
from tests.serve.test_serve import serving

ROOT = Path(__file__).resolve().parents[2]


Does = Callable[[str, str], Any]


@pytest.fixture(scope="module")
def litellm_does() -> Iterator[Does]:
    """Conversations in one process: the import takes longer than they do."""
    env = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    command, pipe = [sys.executable, "-m", "tests.library.litellm_talk"], subprocess.PIPE
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, cwd=ROOT, env=env, stdin=pipe, stdout=pipe, stderr=errors, text=True) as process,
    ):

        def does(what: str, url: str) -> Any:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{what} {url}\n")
            process.stdin.flush()
            found = next((line for line in process.stdout if line.startswith("{")), "")
            errors.seek(0)
            assert found, errors.read()
            return json.loads(found)

        yield does
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait() == 0


def test_the_callback_fits_every_request_and_the_caller_keeps_everything(litellm_does: Does) -> None:
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


def test_litellm_s_own_guardrail_compresses_by_nca_serve(litellm_does: Does) -> None:
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
