"""Modes against permissions."""

from __future__ import annotations

import pytest

from nca.tools.permissions import decide, refusal


@pytest.mark.parametrize(
    ("mode", "read", "write", "execute"),
    [
        ("ask", "allow", "ask", "ask"),
        ("accept-edits", "allow", "allow", "ask"),
        ("plan", "allow", "deny", "deny"),
        ("auto", "allow", "allow", "allow"),
    ],
)
def test_what_each_mode_lets_a_tool_do(mode: str, read: str, write: str, execute: str) -> None:
    assert [decide(mode, one) for one in ("read", "write", "execute")] == [read, write, execute]
    assert decide(mode, None) == "allow"


def test_a_refusal_says_why() -> None:
    assert "only allows reading" in refusal("plan", "write", "deny")
    assert "nobody can give it" in refusal("ask", "execute", "ask")
