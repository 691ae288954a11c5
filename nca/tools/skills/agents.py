"""Agents: Markdown files, as Claude Code's `.claude/agents/*.md`, whose text an assistant of the task tool is given.

The front matter has a name, a description and, where the assistant gets only some tools, `tools` or `disallowedTools`.
An agent allows nothing: each call of its assistant needs its own permission.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from nca.config.claude_permissions import TOOLS
from nca.messages import clean_text
from nca.tools.skills.places import Place, front_fields, split_front
from nca.tools.skills.tool import MAX_HEAD_BYTES, MAX_SKILL_BYTES, SkillFile, described
from nca.tools.tool import ToolError

FOLDER = "agents"
_NAMES = {name.lower(): (tool,) for name, tool in TOOLS.items()} | {
    "bash": ("shell", "job"),
    "multiedit": ("edit_file",),
}
"""nca's tools that an agent gets, by Claude Code's names in small letters."""


@dataclass(frozen=True, slots=True)
class AgentFile:
    """One agent. only: the tools that its assistant gets, by nca's names; None: all but `without`."""

    about: SkillFile
    only: frozenset[str] | None = None
    without: frozenset[str] = frozenset()

    def has(self, tool: str) -> bool:
        """Whether its assistant gets a tool. A server's name alone means all its tools."""
        names = {tool, tool.rpartition("__")[0]} if tool.startswith("mcp__") else {tool}
        return (self.only is None or bool(names & self.only)) and not names & self.without

    def text(self) -> str:
        """What the assistant is told, headed by where it is from. Raises ToolError."""
        about = self.about
        raw = about.place.read(about.file, MAX_SKILL_BYTES).decode("utf-8-sig", "ignore")
        whose = "the person's own" if about.is_own else "the project's, so it gives no permissions"
        return f"[agent {about.name}, {about.source}; {whose}]\n{split_front(clean_text(raw))[1].strip()}"


def find_agents(found: Iterable[Place]) -> tuple[list[AgentFile], list[str]]:
    """All agents by name, the first of each name, and one line for each file that is not a valid agent."""
    agents: dict[str, AgentFile] = {}
    problems: list[str] = []
    for place in found:
        for file in place.markdown_files():
            try:
                about = described(place, file)
                front = place.read(file, MAX_HEAD_BYTES).decode("utf-8-sig", "replace")
                fields = front_fields(split_front(clean_text(front))[0] or "")
            except ToolError as error:
                problems.append(f"Skipped an agent: {error}.")
                continue
            only, without = _tools(fields.get("tools")), _tools(fields.get("disallowedTools"))
            agents.setdefault(about.name, AgentFile(about, only, without or frozenset()))
    return sorted(agents.values(), key=lambda agent: agent.about.name), problems


def _tools(written: Any) -> frozenset[str] | None:
    """nca's names of the tools in a list or in a text with commas; None where none are named, or all."""
    names = written if isinstance(written, list) else re.findall(r"[^,(]+(?:\([^)]*\))?", str(written or ""))
    plain = [re.sub(r"\(.*", "", str(name)).strip().removesuffix("__*") for name in names]
    if not plain or "*" in plain:
        return None
    return frozenset(own for name in plain for own in _NAMES.get(name.lower(), (name,)))
