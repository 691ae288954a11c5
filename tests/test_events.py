"""Events are JSON objects whose type is the class name in snake case."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from nca.events import ContextCompaction, ContextWarning, Event, TextDelta, TurnFinished, UsageReported
from nca.messages import Usage

EVENTS: list[Event] = [
    TextDelta("Hi"),
    ContextWarning("warning", 0.83, 166_000, 200_000, "Context: 83% used (166,000 / 200,000 tokens)"),
    ContextCompaction("completed", "threshold", ("prune",), 9_000, 4_000, 41, 44, 1.5, None, "done"),
    UsageReported(Usage(10, 5, cost=0.1), "m"),
    TurnFinished("answered", "Hi", 1, 0.5),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_goes_through_json_and_comes_back(event: Event) -> None:
    raw = msgspec.json.encode(event)
    assert msgspec.json.decode(raw, type=Event) == event
    assert b"\n" not in raw


def test_types_are_snake_case_names_each_once() -> None:
    kinds = get_args(Event)
    tags = [kind.__struct_config__.tag for kind in kinds]
    assert len(set(tags)) == len(kinds) == 21
    assert msgspec.to_builtins(EVENTS[0]) == {"type": "text_delta", "text": "Hi"}
    assert "context_compaction" in tags
    assert "turn_finished" in tags


def test_what_the_spec_says_of_a_compaction() -> None:
    fields = set(msgspec.to_builtins(ContextCompaction("starting", "manual")))
    assert {
        "phase", "trigger", "stages", "tokens_before", "tokens_after", "kept_facts", "seconds", "cost", "message",
    } <= fields  # fmt: skip
    assert {"usage", "used_tokens", "budget_tokens", "message"} <= set(msgspec.to_builtins(EVENTS[1]))


def test_events_are_frozen() -> None:
    with pytest.raises(AttributeError, match="immutable"):
        EVENTS[0].text = "other"  # type: ignore[union-attr,misc]
