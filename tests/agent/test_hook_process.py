"""The answers of hooks: what counts, and that nothing else does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.agent.hook_process import TEXT_CHARS, Answer, read_answer
from nca.config.hooks import EVENTS

NAMES = (
    *("decision", "reason", "continue", "stopReason", "systemMessage", "hookSpecificOutput", "hookEventName"),
    *("permissionDecision", "permissionDecisionReason", "updatedInput", "additionalContext"),
)
WORDS = st.sampled_from(("allow", "deny", "ask", "block", "approve", "")) | st.text(max_size=9)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=12,
)
OUTPUTS = st.dictionaries(st.sampled_from(NAMES), VALUES).map(json.dumps) | st.text() | st.text().map("{".__add__)


@given(st.sampled_from(EVENTS), st.integers(-64, 255), OUTPUTS, st.text())
def test_nothing_is_decided_by_accident(event: str, exit_code: int, printed: str, complaint: str) -> None:
    answer = read_answer(event, exit_code, printed.strip(), complaint.strip())
    if answer.decision in ("allow", "ask") or answer.updated is not None:
        assert (event, exit_code) == ("PreToolUse", 0)
    if answer.decision == "deny":
        assert answer.reason
        assert exit_code == 2 or json.loads(printed)
    if answer.problem:
        assert answer == Answer(problem=answer.problem)
        assert exit_code != 2
    texts = (answer.reason, answer.context, answer.message)
    assert all(isinstance(text, str) and len(text) < TEXT_CHARS + 100 for text in texts)


@pytest.mark.parametrize(
    ("event", "said", "expected"),
    [
        ("PreToolUse", {"decision": "approve", "reason": "Fine."}, Answer("allow", "Fine.")),
        ("PreToolUse", {"decision": "block", "reason": "No."}, Answer("deny", "No.")),
        ("Stop", {"decision": "approve"}, Answer()),
        ("Stop", {"hookSpecificOutput": {"permissionDecision": "deny"}}, Answer()),
        ("PreToolUse", {"hookSpecificOutput": {"permissionDecision": "deny"}}, Answer("deny", "no reason given")),
        (
            "PreToolUse",
            {"hookSpecificOutput": {"permissionDecision": "deny"}, "systemMessage": "Not here."},
            Answer("deny", "Not here.", message="Not here."),
        ),
        ("Stop", {"continue": False, "stopReason": "Late."}, Answer("deny", "Late.", ends_turn=True)),
        ("Stop", {"suppressOutput": True, "continue": True}, Answer()),
    ],
)
def test_json_answers(event: str, said: dict[str, Any], expected: Answer) -> None:
    assert read_answer(event, 0, json.dumps(said), "") == expected


def test_plain_text_is_context_where_a_message_follows() -> None:
    assert read_answer("SessionStart", 0, "It is Monday.", "") == Answer(context="It is Monday.")
    assert read_answer("PreToolUse", 0, "It is Monday.", "") == Answer()
    assert len(read_answer("UserPromptSubmit", 0, "x" * 50_000, "").context) < TEXT_CHARS + 100
