"""Refusals that no pattern was made for: what a sentence says is exceeded, by what, and whose limit decides.

`wordings.jsonl` has wordings of servers, gateways and providers from their source, documentation and issue trackers
(vLLM, SGLang, TensorRT-LLM, TabbyAPI, LMDeploy, watsonx, Cohere, Bedrock, GitHub Models, Cloudflare, SiliconFlow,
Snowflake, Databricks, Volcengine and others), and some that nobody sends yet.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nca.models.failures import classify_provider_error

ROWS: list[dict[str, Any]] = [
    json.loads(line) for line in Path(__file__).with_name("wordings.jsonl").read_text(encoding="utf-8").splitlines()
]


@pytest.mark.parametrize("row", ROWS, ids=[row["text"][:40] for row in ROWS])
def test_an_overflow_is_told_by_what_is_said(row: dict[str, Any]) -> None:
    assert classify_provider_error(row["text"], status=row["status"]).is_overflow == row["is_overflow"]


@pytest.mark.parametrize("status", [400, 413])
def test_only_a_refusal_without_a_word_is_unexplained(status: int) -> None:
    assert classify_provider_error("", status=status).is_unexplained
    assert classify_provider_error(f"Error code: {status}", status=status).is_unexplained
    assert not classify_provider_error("Unknown field.", status=status).is_unexplained
    assert not classify_provider_error("", status=status + 100).is_unexplained
