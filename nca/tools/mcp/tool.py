"""The adapter that makes a tool of an MCP server one of nca's: name, bounded schema, approval."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from nca.config.servers import McpServer
from nca.file_history import Recorder
from nca.humanize import unambiguous
from nca.messages import clean_text
from nca.tools.tool import Approval, Permission, ToolOutcome

PREFIX = "mcp__"
MAX_NAME_CHARS = 64
MAX_DESCRIPTION_CHARS = 2_000
MAX_SCHEMA_CHARS = 8_000
"""Descriptions and schemas are part of every request, so longer ones are cut."""
_LISTING = re.compile(r".+@[0-9a-f]{12}-[0-9a-f]{12}", re.DOTALL)
"""The subject of a rule for a tool: the server, and digests of its start command and of the tool's listing."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")

Run = Callable[[str, dict[str, Any]], Awaitable[ToolOutcome]]


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool as its server lists it. `is_read_only` is only a claim of the server."""

    name: str
    description: str
    schema: dict[str, Any]
    is_read_only: bool

    @property
    def digest(self) -> str:
        """The digest of the whole listing. A rule that allows the tool holds only while this stays the same."""
        return _digest(json.dumps((self.name, self.description, self.schema, self.is_read_only)))


class McpTool:
    """One tool of one server. Every call needs `execute`, as nothing but its claim says that a tool only reads."""

    permission: ClassVar[Permission] = "execute"

    def __init__(self, server: McpServer, offer: Offer, run: Run, recorder: Recorder | None = None) -> None:
        self._server = server
        self._offer = offer
        self._run = run
        self._recorder = (not offer.is_read_only and recorder) or Recorder()
        self.server_name = server.name
        self.digest = offer.digest
        self.name = tool_name(server.name, offer.name)
        self.description = _bounded(clean_text(offer.description), MAX_DESCRIPTION_CHARS)
        self.parameters = bounded_schema(offer.schema)

    async def run(self, arguments: dict[str, Any]) -> ToolOutcome:
        async with self._recorder.command(self.name, json.dumps(arguments, ensure_ascii=False)) as recorded:
            outcome = await self._run(self._offer.name, arguments)
            recorded.said += f"\n{outcome.text}"
            return outcome

    def summarize(self, arguments: dict[str, Any]) -> str:
        shown = json.dumps(arguments, ensure_ascii=False) if arguments else ""
        return f"{self._server.name}: {self._offer.name} {shown}".rstrip()

    def needs(self, arguments: dict[str, Any]) -> Permission:
        return self.permission

    def approval(self, arguments: dict[str, Any]) -> Approval:
        """A rule matches exactly this tool on exactly this server.

        If the server's command or the tool's listing changes after the tool was allowed, the person is asked again.
        """
        shown = json.dumps(arguments, ensure_ascii=False, indent=1) if arguments else ""
        says = " (the server says it only reads)" if self._offer.is_read_only else ""
        # In one line: the server's own name for the tool must not look like arguments.
        title = unambiguous(f"{self._server.name}: {self._offer.name}", kept="")
        command = f"{title}{says}\n{unambiguous(shown)}".rstrip()
        subject = f"{self._server.name}@{self._server.digest}-{self._offer.digest}"
        return Approval(command=command, subject=subject)


def tool_name(server: str, tool: str) -> str:
    """`mcp__server__tool`, in the characters and length that providers accept. A changed name ends in a digest."""
    wanted = f"{PREFIX}{server}__{tool}"
    name = _NOT_IN_NAMES.sub("_", wanted)
    if name == wanted and len(name) <= MAX_NAME_CHARS:
        return name
    return f"{name[: MAX_NAME_CHARS - 9]}_{_digest(wanted)[:8]}"


def rule_in_words(tool: str, subject: str) -> str:
    """The subject of a rule as a person reads it: that of an MCP tool says that no argument limits it."""
    is_of_listing = tool.startswith(PREFIX) and _LISTING.fullmatch(subject) is not None
    return f"with all arguments ({subject.rpartition('@')[0]})" if is_of_listing else subject


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:12]


def server_of(name: str) -> str:
    """The server's part of a tool name; ambiguous if a server's name contains `__`."""
    return name.removeprefix(PREFIX).partition("__")[0]


def bounded_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of the arguments as providers accept it. A long one is cut, an invalid one replaced by any object."""
    kept = {key: value for key, value in schema.items() if key not in ("$schema", "$id", "title")}
    try:
        text = json.dumps(kept)
    except (TypeError, ValueError, RecursionError):
        return _any_object({})
    properties = kept.get("properties", {})
    if kept.get("type") != "object" or not isinstance(properties, dict):
        return _any_object({})
    if len(text) > MAX_SCHEMA_CHARS:
        return _any_object(properties)
    return {**kept, "properties": {name: one if isinstance(one, dict) else {} for name, one in properties.items()}}


def _any_object(properties: dict[str, Any]) -> dict[str, Any]:
    """A schema with only the names of the arguments, as many as fit."""
    names: dict[str, Any] = {}
    size = 0
    for name in properties:
        size += len(name) + 8
        if size > MAX_SCHEMA_CHARS:
            break
        names[name] = {}
    return {"type": "object", "properties": names}


def _bounded(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
