"""Settings of hooks: `[[hooks]]`, programs of the person's that nca runs at certain moments.

Their events, matchers and answers are Claude Code's, so that its scripts run unchanged. A project's file may define
hooks only if the user trusts exactly these (nca.config.projects); they run beside the user's own and replace none.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any, ClassVar

from nca.config import value_types as types
from nca.config.claude_permissions import ONLY_THEIRS, restricting
from nca.config.document import shown_name
from nca.config.tables import OWN_TOOLS, TOOLS, PermissionRule, Row, tables
from nca.config.value_types import ValueType, setting

TOOL_EVENTS = ("PreToolUse", "PostToolUse", "PostToolUseFailure")
PROMPT_EVENTS = ("UserPromptSubmit", *TOOL_EVENTS, "Stop", "SubagentStop")
"""Events for which a question to the model can decide something."""
EVENTS = (
    *("SessionStart", "UserPromptSubmit", *TOOL_EVENTS, "PreCompact", "PostCompact"),
    *("Notification", "Stop", "SubagentStop", "SessionEnd"),
)
_TIMEOUT_SECONDS, _PROMPT_SECONDS = 600.0, 30.0
_TIMEOUTS = {"UserPromptSubmit": 30.0, "SessionEnd": 5.0}
"""Events during which a person waits for the prompt."""
_NAMES = re.compile(r"[\w ,|-]+")


def event_name() -> ValueType:
    def read(value: Any) -> str:
        found = {event.lower(): event for event in EVENTS}.get(value.strip().lower() if isinstance(value, str) else "")
        if found is None:
            raise ValueError("not valid")
        return found

    return ValueType("one of " + ", ".join(EVENTS), read, choices=EVENTS)


class Hook(Row):
    """One program and the moment at which it runs."""

    EXAMPLE: ClassVar[tuple[str, ...]] = (
        'event = "PreToolUse"',
        'matcher = "Bash|Write"',
        'command = "~/bin/check-call.py"',
    )

    event: str = setting("", event_name())
    matcher: str = setting("", types.text())
    command: str = setting("", types.text())
    args: tuple[str, ...] = setting((), types.texts())
    prompt: str = setting("", types.text())
    timeout_seconds: float = setting(0.0, types.number(0, 86400))
    background: bool = setting(False, types.boolean())
    condition: str = setting("", types.text())

    def __post_init__(self) -> None:
        if not self.event:
            raise ValueError("event is missing")
        if bool(self.command.strip()) == bool(self.prompt.strip()):
            raise ValueError("either command or prompt must be given" if self.prompt.strip() else "command is missing")
        if self.prompt and self.event not in PROMPT_EVENTS:
            raise ValueError(f"prompt is for {', '.join(PROMPT_EVENTS)}")
        if self.condition and self.event not in TOOL_EVENTS:
            raise ValueError(f"condition is for {', '.join(TOOL_EVENTS)}")
        if self.condition and not self.rules(Path("/")):
            raise ValueError(f"condition {shown_name(self.condition)} is not a rule that nca can read")
        try:
            re.compile(self.matcher if self.matcher != "*" else "")
        except re.error as error:
            raise ValueError(f"matcher is not a valid pattern ({error})") from None

    def __str__(self) -> str:
        what = f'asks "{" ".join(self.prompt.split())}"' if self.prompt else " ".join((self.command, *self.args))
        return f"{' '.join(filter(None, (self.event, self.matcher, self.condition)))}: {what}"

    def rules(self, directory: Path) -> tuple[PermissionRule, ...]:
        """Rules, one of which must match the call; none without a condition."""
        return restricting("deny", self.condition, "", directory).of("deny") if self.condition else ()

    @property
    def limit_seconds(self) -> float:
        usual = _PROMPT_SECONDS if self.prompt else _TIMEOUTS.get(self.event, _TIMEOUT_SECONDS)
        return self.timeout_seconds or usual

    def without_a_tool(self, tools: Collection[str] = OWN_TOOLS) -> list[str]:
        """The names in its matcher, if no tool has one of them: then it never runs.

        Tools of MCP servers are not known here, so a pattern may mean one. What only Claude Code has is no mistake.
        """
        names = self._names if self.event in TOOL_EVENTS else []
        known = (
            name in tools or name in TOOLS or name.lower() in ONLY_THEIRS or name.startswith("mcp__") for name in names
        )
        return [] if any(known) else names

    @property
    def _names(self) -> list[str]:
        """The names that the matcher lists; none if it is for all, or a pattern."""
        is_list = self.matcher.strip() not in ("", "*") and _NAMES.fullmatch(self.matcher)
        return [part.strip() for part in re.split(r"[|,]", self.matcher)] if is_list else []

    def matches(self, names: Collection[str]) -> bool:
        """Whether it runs for what has these names. Anything but names and separators is a pattern, found anywhere."""
        if self.matcher.strip() in ("", "*"):
            return True
        if self._names:
            return not set(names).isdisjoint(self._names)
        return any(re.search(self.matcher, name) for name in names)


def hook_tables() -> ValueType:
    """A list of hooks; those of a later layer are added."""
    base = tables(Hook)
    return types.added(ValueType(base.valid, base.read, row=Hook))
