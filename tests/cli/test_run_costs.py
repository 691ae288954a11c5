"""Costs and outages in `nca run`: --json, the exit code of the limit, and a fallback."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from nca.testing.provider import Provider
from tests.testing.forks import forked


def run(provider: Provider, home: Path, *arguments: str, model: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return forked("run", *arguments, "-m", model, home=home, OPENAI_API_KEY="k", OPENAI_API_BASE=provider.url, **more)


def test_json_has_what_the_turn_cost_and_the_limit_ends_with_its_own_code(tmp_path: Path) -> None:
    with Provider(lambda _: "Short.") as provider:
        first = run(provider, tmp_path, "Hello", "--json", model="openai/gpt-4o")
        result = json.loads(first.stdout)
        assert result["turn_cost"] == result["usage"]["cost"] > 0
        assert result["context"]["prices"]["request"] > 0
        again = ("Hello again", "--session", result["session_id"])
        second = run(provider, tmp_path, *again, model="openai/gpt-4o", NCA_SESSION__MAX_COST="0.000001")
        assert second.returncode == 5
        assert "session.max_cost is $0.000001." in second.stderr
        assert len(provider.requests) == 1
        third = run(provider, tmp_path, *again, model="openai/gpt-4o")
    assert third.returncode == 0
    said = [row["content"] for row in provider.requests[-1]["messages"] if row["role"] == "user"]
    assert said == ["Hello", "Hello again"]


def test_a_fallback_answers_and_says_so_beside_the_answer(tmp_path: Path) -> None:
    with Provider(lambda _: "Here.") as provider:
        done = run(provider, tmp_path, "Hello", model="openai/no-such-model", NCA_MODEL__FALLBACKS="openai/test-model")
    assert (done.returncode, done.stdout) == (0, "Here.\n")
    assert "openai/test-model answers instead of openai/no-such-model." in done.stderr
