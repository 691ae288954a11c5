"""Permission modes and rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from nca.config.tables import PermissionRule
from nca.tools.permissions import decide, matching, refusal


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


def test_a_refusal_says_why() -> None:
    assert "only allows reading" in refusal("plan", "write", "deny")
    assert "nobody can give it" in refusal("ask", "execute", "ask")


@pytest.mark.parametrize(
    ("subject", "about", "speaks"),
    [
        ("", "/work/a", True),
        ("/work/a", "/work/a", True),
        ("a", "/work/a", True),
        ("./a", "/work/a", True),
        ("sub/../a", "/work/a", True),
        ("/work/a", "/work/ab", False),
        ("/work/**", "/work/a/b", True),
        ("/work/**", "/work-evil/a", False),
        ("src/**", "/work/src/a", True),
        ("src/**", "/work/src-evil/a", False),
        ("src/**", "/elsewhere/src/a", False),
        ("../**", "/other", True),
        ("/**", "/etc/passwd", True),
        ("**", "/work/a", False),
        ("*", "/work/a", False),
        ("/work/.*", "/work/ab", False),
        ("git", "git", True),
        ("git", "git push", False),
        ("git/**", "git", False),
        ("example.org", "example.org", True),
        ("example.org", "evil-example.org", False),
    ],
)
def test_a_rule_is_exact_or_all_below(subject: str, about: str, speaks: bool) -> None:
    found = matching([PermissionRule("tool", subject)], "tool", {about}, Path("/work"))
    assert (found is not None) is speaks


def test_a_rule_speaks_of_its_tool_and_its_directory() -> None:
    def speaks(rule: PermissionRule) -> bool:
        return matching([rule], "shell", {"make"}, Path("/work")) is not None

    assert speaks(PermissionRule("*", "make"))
    assert speaks(PermissionRule("shell", "make", "/work"))
    assert speaks(PermissionRule("shell", "make", "/work/"))
    assert not speaks(PermissionRule("shel", "make"))
    assert not speaks(PermissionRule("shell", "make", "/work/sub"))
    assert not speaks(PermissionRule("shell", "make", "/"))
