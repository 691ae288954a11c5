"""The agents that call nca's hooks: where each keeps hooks and sessions, and the meaning of its events.

By the hooks of Claude Code 2.1.197, Codex 0.171 and Gemini CLI 0.61, and the plugins of opencode 1.18.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from nca.config.paths import user_home
from nca.errors import UsageError
from nca.mcp_server.install import below, client_named
from nca.transcripts.formats.source import data_folder

Kind = Literal["begins", "compacting", "summarized", "compacted", "over", "prompt", "call", "ends"]
"""What an event means: a session begins or continues; a compaction is about to begin; its summary is written; the model
continues with it; a compaction is over, and a later event tells of it; the person has written, or a tool has answered;
a tool is about to be called, or has failed; the session ends."""
TELLING: tuple[Kind, ...] = ("begins", "prompt", "call")
"""Events with an answer that the model reads."""


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent.

    name      also that of the format of its sessions
    home      its own folder, by the environment
    sessions  the folder of its sessions below that: a hook may name no file elsewhere; or the names of databases
    file      the file of its hooks in that folder
    project   the same for one project, from its folder
    events    its hooks, by name, and what each means
    matchers  the kinds of an event for which the agent calls, if not all
    timeout   how long the agent waits at most, in its own unit
    summary   text that a summary in its transcript contains, if no event reports a compaction
    limit     how many tokens of an answer count, where its hooks have to say so; 0: they have not
    note      what the person has to do besides, or ""
    data      the folder of its database of sessions, where it keeps no files of them
    is_plugin the file is a plugin that is wholly nca's
    """

    name: str
    title: str
    home: Callable[[Mapping[str, str]], Path]
    sessions: str
    file: str
    project: str
    events: Mapping[str, Kind]
    matchers: Mapping[str, str] = field(default_factory=dict)
    timeout: int = 5
    summary: str = ""
    limit: int = 0
    note: str = ""
    data: Callable[[Mapping[str, str]], Path] | None = None
    is_plugin: bool = False

    def folder(self, env: Mapping[str, str]) -> Path:
        """The folders of its sessions."""
        return (self.data or self.home)(env).absolute()

    def kind(self, event: str, source: str) -> Kind | None:
        """The meaning of an event; None for one that nca does not know."""
        kind = self.events.get(event)
        return "compacted" if kind == "begins" and source == "compact" else kind


def agent_named(name: str) -> Agent:
    """Raises UsageError, which names those that there are."""
    if name in AGENTS:
        return AGENTS[name]
    raise UsageError(f"{name[:40]!r} has no hooks that nca knows; valid: {', '.join(AGENTS)}.")


_OF_CLAUDE: Mapping[str, Kind] = {
    "SessionStart": "begins",
    "UserPromptSubmit": "prompt",
    "PreToolUse": "call",
    "PreCompact": "compacting",
    "SessionEnd": "ends",
}

AGENTS = {
    one.name: one
    for one in (
        Agent(
            "claude",
            "Claude Code",
            below("CLAUDE_CONFIG_DIR", ".claude", ""),
            "projects",
            "settings.json",
            ".claude/settings.local.json",
            _OF_CLAUDE,
            {"SessionStart": "startup|resume|compact"},
        ),
        Agent(
            "codex",
            "Codex",
            below("CODEX_HOME", ".codex", ""),
            "sessions",
            "hooks.json",
            ".codex/hooks.json",
            {**_OF_CLAUDE, "PostCompact": "summarized"},
            {"SessionStart": "startup|resume|compact"},
            timeout=3,
            limit=10_000,
            note="Codex asks you once whether it may run these hooks: type /hooks there.",
        ),
        Agent(
            "gemini",
            "Gemini CLI",
            lambda env: client_named("gemini").file(env).parent,
            "tmp",
            "settings.json",
            ".gemini/settings.json",
            {"SessionStart": "begins", "BeforeAgent": "prompt", "AfterTool": "prompt", "SessionEnd": "ends"},
            timeout=5_000,
            summary="<state_snapshot>",
        ),
        Agent(
            "opencode",
            "opencode",
            lambda env: client_named("opencode").file(env).parent,
            "opencode*.db",
            "plugins/nca.js",
            ".opencode/plugins/nca.js",
            {
                "session.compacted": "over",
                "chat.message": "prompt",
                "tool.execute.after": "prompt",
                "tool.execute.failed": "call",
                "dispose": "ends",
            },
            data=lambda env: data_folder(env, user_home(env)) / "opencode",
            is_plugin=True,
        ),
    )
}
