"""Which tools may run: the mode that a person chose against the permission that a tool needs, and their rules.

A mode and a rule only ever come from the person (a flag, their own file, the environment, the chat), never from a
project. Where a mode says "ask" and nobody can be asked, the call does not run and the model is told why.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Literal

from nca.config.tables import PermissionRule
from nca.tools.tool import Permission

BELOW = "/**"
"""The end of a rule's subject that stands for everything below a directory; the only pattern there is."""

Mode = Literal["ask", "accept-edits", "plan", "auto"]
Decision = Literal["allow", "ask", "deny"]

_DECISIONS: dict[str, dict[Permission, Decision]] = {
    "ask": {"read": "allow", "write": "ask", "execute": "ask"},
    "accept-edits": {"read": "allow", "write": "allow", "execute": "ask"},
    "plan": {"read": "allow", "write": "deny", "execute": "deny"},
    "auto": {"read": "allow", "write": "allow", "execute": "allow"},
}


def decide(mode: str, permission: Permission | None) -> Decision:
    """What happens to a call; a tool that there is not may "run": its answer is that it does not exist."""
    return "allow" if permission is None else _DECISIONS[mode][permission]


def matching(
    rules: Iterable[PermissionRule], tool: str, subjects: Collection[str], directory: Path
) -> PermissionRule | None:
    """The first rule that speaks of a call.

    subjects   what the call is about, any of which a rule may name: its resolved path, its command, its host
    directory  the project's, links resolved; relative subjects of rules are meant from there
    """
    return next((rule for rule in rules if _speaks_of(rule, tool, subjects, directory)), None)


def _speaks_of(rule: PermissionRule, tool: str, subjects: Collection[str], directory: Path) -> bool:
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
    # By parts, so that /work is not taken for the beginning of /work-evil.
    return Path(subject).is_relative_to(_normal(pattern.removesuffix(BELOW) or "/", directory))


def _normal(path: str, directory: Path) -> str:
    """As it is written, without a look at the disk: a rule must not follow a link that somebody changes later."""
    return os.path.normpath(directory / Path(path).expanduser())


def refusal(mode: str, permission: Permission, decision: Decision) -> str:
    """What the model is told of a call that did not run."""
    if decision == "deny":
        return f"[not run: the permission mode is {mode}, which only allows reading]"
    return f"[not run: a tool that may {permission} needs the person's approval, and nobody can give it here]"
