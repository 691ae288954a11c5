"""Sixty turns of a real conversation in a window of 4,000 tokens, over HTTP to a provider with its own count."""

from __future__ import annotations

import asyncio
import itertools
import json
from pathlib import Path

import pytest

from nca.agent.conversation import Conversation
from nca.cli.startup import open_conversation
from nca.config.layers import load
from nca.events import ContextCompaction, ErrorRaised, Event, RequestStarted, TurnFinished, UsageReported
from nca.sessions.store import Store
from nca.testing.provider import Provider
from nca.testing.scripted import Answer, count_request_tokens, is_summary_request, prose

DATA = Path(__file__).parents[1] / "data"
WINDOW_TOKENS = 4_000
TURNS = 60


def told(role: str) -> list[str]:
    """What people, or models, said in real conversations; a message at a time, none longer than a page."""
    texts = []
    for path in sorted(DATA.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            rows = row.get("messages") or row.get("traj") or row.get("history") or [row]
            texts += [one["content"] for one in rows if one.get("role") == role and isinstance(one.get("content"), str)]
    # An @ would be a file to attach.
    return [text[:1_500].replace("@", "at ") for text in texts if text.strip()]


def test_sixty_turns_of_real_talk_never_overflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Not where a project has instructions of any length.
    monkeypatch.chdir(tmp_path)
    answers = itertools.cycle(told("assistant"))
    events: list[Event] = []

    def script(request: dict[str, object]) -> Answer | str:
        return prose(request) if is_summary_request(request) else next(answers)

    async def talk(provider: Provider) -> Conversation:
        settings = {
            "model.name": "openai/test-model",
            "model.context_window": str(WINDOW_TOKENS),
            "model.api_base": provider.url,
        }
        loaded = load(project=tmp_path, env={}, flags=settings, config_file=None)
        with Store.open(tmp_path / "sessions.db") as store:
            conversation = await open_conversation(loaded, store, events.append)
            for text in itertools.islice(itertools.cycle(told("user")), TURNS):
                await conversation.send(text)
            await conversation.close()
        return conversation

    with Provider(script, window_tokens=WINDOW_TOKENS) as provider:
        asyncio.run(talk(provider))

    assert [event for event in events if isinstance(event, ErrorRaised)] == []
    finished = [event for event in events if isinstance(event, TurnFinished)]
    assert [event.reason for event in finished] == ["answered"] * TURNS
    assert provider.overflows == []
    assert len([e for e in events if isinstance(e, ContextCompaction) and e.phase == "completed"]) >= 3
    asked = [event for event in events if isinstance(event, RequestStarted)]
    assert all(event.used_tokens <= event.budget_tokens for event in asked)
    sent = [request for request in provider.requests if not is_summary_request(request)]
    counted = [count_request_tokens(request["messages"], request["tools"]) for request in sent]
    assert all(tokens <= asked[0].budget_tokens for tokens in counted)
    reported = [event.usage.prompt_tokens for event in events if isinstance(event, UsageReported)]
    assert reported == counted
    # Before a request its newest message is an estimate, and it is a tenth of so small a window.
    off = sorted(abs(e.used_tokens - tokens) / tokens for e, tokens in zip(asked, counted, strict=True))
    assert off[len(off) // 2] <= 0.01
    assert off[int(0.95 * len(off))] <= 0.06
