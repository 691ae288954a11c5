"""Which tools may run: the mode that a person chose against the permission that a tool needs.

A mode only ever comes from the person (a flag, their own file, the environment, the chat), never from a project.
Where a mode says "ask" and nobody can be asked, the call does not run and the model is told why.
"""

from __future__ import annotations

from typing import Literal

from nca.tools.tool import Permission

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


def refusal(mode: str, permission: Permission, decision: Decision) -> str:
    """What the model is told of a call that did not run."""
    if decision == "deny":
        return f"[not run: the permission mode is {mode}, which only allows reading]"
    return f"[not run: a tool that may {permission} needs the person's approval, and nobody can give it here]"
