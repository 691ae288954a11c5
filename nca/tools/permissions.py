"""Permission modes and rules: what a mode decides about a permission, and which rule matches a call.

Modes and rules come only from the person (a flag, their own file, the environment, the chat), never from a project. If
a mode says "ask" and nobody can be asked, the call does not run and the model is told why.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Literal

from nca.config.tables import PermissionRule
from nca.tools.tool import Permission

BELOW = "/**"
"""Ends the subject of a rule that covers everything below a directory. There are no other patterns."""

Decision = Literal["allow", "ask", "deny"]

_DECISIONS: dict[str, dict[Permission, Decision]] = {
    "ask": {"read": "allow", "write": "ask", "execute": "ask"},
    "accept-edits": {"read": "allow", "write": "allow", "execute": "ask"},
    "plan": {"read": "allow", "write": "deny", "execute": "deny"},
    "auto": {"read": "allow", "write": "allow", "execute": "allow"},
}


def decide(mode: str, permission: Permission) -> Decision:
    """What the mode decides about a call that needs this permission."""
    return _DECISIONS[mode][permission]


def matching(
    rules: Iterable[PermissionRule], tool: str, subjects: Collection[str], directory: Path
) -> PermissionRule | None:
    """The first rule that matches a call, or None.

    subjects   what a rule may match, such as the resolved path, the command, the host
    directory  the project's folder, with links resolved; subjects of rules may be relative to it
    """
    return next((rule for rule in rules if _covers(rule, tool, subjects, directory)), None)


def _covers(rule: PermissionRule, tool: str, subjects: Collection[str], directory: Path) -> bool:
    if rule.tool not in ("*", tool) or (rule.directory and _normal(rule.directory, directory) != str(directory)):
        return False
    return not rule.subject or any(_matches(rule.subject, subject, directory) for subject in subjects)


def _matches(pattern: str, subject: str, directory: Path) -> bool:
    if pattern == subject:
        return True
    if not Path(subject).is_absolute():
        return False
    if not pattern.endswith(BELOW):
        return _normal(pattern, directory) == subject
    # Component by component: /work is not a prefix of /work-evil.
    return Path(subject).is_relative_to(_normal(pattern.removesuffix(BELOW) or "/", directory))


def _normal(path: str, directory: Path) -> str:
    """Normalize without looking at the disk: a rule must not follow a link that somebody may change later."""
    return os.path.normpath(directory / Path(path).expanduser())


def refusal(mode: str, permission: Permission, decision: Decision) -> str:
    """The result of a call that did not run, for the model."""
    if decision == "deny":
        return f"[not run: the permission mode is {mode}, which only allows reading]"
    return f"[not run: a tool that may {permission} needs the person's approval, and nobody can give it here]"
