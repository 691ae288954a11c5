"""Conversations for several tests, and the shortest way to compact one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, settings

from nca.compat.stages import MORE_STAGES
from nca.config.extensions import STAGES
from nca.config.schema import ContextSettings
from nca.context.budget import Budget
from nca.context.draft import Draft
from nca.context.driver import run
from nca.context.history import History
from nca.context.meter import Meter
from nca.context.plan import Proposal, compact, no_summarizer
from nca.context.request import request_messages
from nca.context.summary import SummaryFailure, SummaryReply, SummaryRequest
from nca.messages import Message, ToolCall
from tests.context.logs import history_of

some = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
"""For properties of whole logs, which are costly to draw; `test_invariants` tries many more."""

PROSE = (
    "### 1. Goal and intent\nTo test the engine with care, from one end to the other, and to leave nothing out."
    "\n### 9. Next step\nGo on."
)
TARGET_RATIO = 0.65


def user(text: str = "Go on.") -> Message:
    return Message("user", text)


def assistant(text: str = "Done.") -> Message:
    return Message("assistant", text)


def call(id: str, name: str = "read_file", **arguments: Any) -> ToolCall:
    return ToolCall(id, name, json.dumps(arguments))


def calling(*calls: ToolCall, text: str | None = None) -> Message:
    return Message("assistant", text, calls)


def result(id: str, text: str = "done", *, name: str = "", is_error: bool = False) -> Message:
    return Message("tool", text, tool_call_id=id, name=name, is_error=is_error)


def step(
    id: str, text: str = "done", name: str = "read_file", *, is_error: bool = False, **arguments: Any
) -> list[Message]:
    """One call and its result."""
    return [calling(call(id, name, **arguments)), result(id, text, is_error=is_error)]


def talk(turns: int, words: int = 40, *, start: int = 1) -> list[Message]:
    """Turns of a question and an answer, each of about `words` words."""
    messages = []
    for number in range(start, start + turns):
        messages += [user(f"Question {number}: " + "why " * words), assistant(f"Answer {number}: " + "so " * words)]
    return messages


def agent_turn(steps: int, words: int = 40, *, name: str = "turn") -> list[Message]:
    """One turn with many steps and no final answer yet."""
    messages = [user(f"Do {name}.")]
    for number in range(steps):
        messages += step(f"{name}_{number}", f"out {number} " + "line " * words, "shell", command=f"make {number}")
    return messages


def draft_of(messages: Iterable[Message], pins: set[int] | None = None) -> Draft:
    return Draft(history_of(list(messages), pins), Meter())


def answering(text: str = PROSE) -> Any:
    """A summarizer that always says the same."""

    def answer(_: SummaryRequest) -> SummaryReply | SummaryFailure:
        return SummaryReply(text, "tester")

    return answer


def compacted(
    history: History,
    window: int,
    *,
    settings: ContextSettings | None = None,
    stages: Sequence[str] = STAGES,
    summarizer: Any = no_summarizer,
    meter: Meter | None = None,
    load_stage: Any = None,
    target_ratio: float = TARGET_RATIO,
    **asked: Any,
) -> Proposal:
    """Plan a compaction and commit it; by default to a target at which all stages have something to do."""
    settings = settings or ContextSettings(stages=tuple(stages))
    if isinstance(settings.target_ratio, str):
        settings = replace(settings, target_ratio=target_ratio)
    planning = compact(history, meter or Meter(), Budget.of(window), settings, more_stages=MORE_STAGES, **asked)
    proposal = run(planning, summarizer, load_stage)
    history.view = proposal.view
    return proposal


def sent(history: History, provider: str = "") -> list[dict[str, Any]]:
    return request_messages(history, provider=provider)


def contents(history: History) -> list[Any]:
    return [row["content"] for row in sent(history)]
