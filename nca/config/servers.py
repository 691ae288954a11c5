"""Settings of MCP servers: `[mcp.servers.NAME]`, one table for each server.

A server is a program to start or an address to connect to, so a project's file may define one only if the user trusts
exactly this definition (nca.config.projects). A server in a later layer replaces one of the same name.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from nca.config import value_types as types
from nca.config.document import shown_name
from nca.config.tables import Row, read_row
from nca.config.value_types import InvalidValue, ValueType, is_web_address, setting

_VARIABLE = re.compile(r"\$\{[^}]*\}")
"""Filled in when the server is used; it may be a host or a port."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
"""A server's name is part of its tools' names, which providers limit to 64 characters."""
Pairs = tuple[tuple[str, str], ...]


def pairs() -> ValueType:
    """A table of texts, as (name, value) pairs in the file's order."""

    def read(value: Any) -> Pairs:
        items = tuple(value.items()) if isinstance(value, Mapping) else value
        if not isinstance(items, tuple) or not all(isinstance(one, str) for pair in items for one in pair):
            raise ValueError("not valid")
        one_text = types.text().read
        if any(not name.strip() or "=" in name or not name.isprintable() for name, _ in items):
            raise ValueError("not valid")
        return tuple((name, one_text(text)) for name, text in items)

    return ValueType("a table of texts", read)


class McpServer(Row):
    """One MCP server. `name` is the name of its table."""

    EXAMPLE: ClassVar[tuple[str, ...]] = ('command = "npx"', 'args = ["-y", "@modelcontextprotocol/server-everything"]')

    name: str = ""
    command: str = setting("", types.text())
    args: tuple[str, ...] = setting((), types.texts())
    env: Pairs = setting((), pairs())
    environment: tuple[str, ...] = setting((), types.texts())
    cwd: str = setting("", types.text())
    url: str = setting("", types.text())
    headers: Pairs = setting((), pairs())
    token_variable: str = setting("", types.text())
    client_id: str = setting("", types.text())
    timeout_seconds: float = setting(60.0, types.number(0.1, 86400))
    enabled: bool = setting(True, types.boolean())

    def __post_init__(self) -> None:
        if bool(self.command.strip()) == bool(self.url.strip()):
            raise ValueError("either command or url must be given" + (", not both" if self.url.strip() else ""))
        if self.client_id and not self.url:
            raise ValueError("client_id is for an HTTP server, which has a url")
        if self.url and not is_web_address(_VARIABLE.sub("1", self.url)):
            raise ValueError("url must begin with http:// or https:// and name a host")

    def __str__(self) -> str:
        return " ".join((self.command, *self.args)) if self.command else self.url

    @property
    def has_own_token(self) -> bool:
        """Whether the settings say how it knows the person, so that there is nothing to log in to."""
        return bool(self.token_variable) or any(name.lower() == "authorization" for name, _ in self.headers)

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders that its arguments name, except for values of options: there the person lets it work."""
        before = ("", *self.args)
        named = (Path(one) for option, one in zip(before, self.args, strict=False) if not option.startswith("--"))
        return tuple(path for path in named if path.is_absolute() and os.path.isdir(path))

    @property
    def digest(self) -> str:
        """A hash of the definition: a rule that allows its tools does not apply to another server of the same name."""
        import hashlib

        what = (self.command, self.args, self.env, self.environment, self.cwd, self.url, self.headers)
        written = json.dumps((*what, self.token_variable))
        return hashlib.sha256(written.encode("utf-8", "backslashreplace")).hexdigest()[:12]

    def plain(self) -> dict[str, Any]:
        """The fields for display. Values of variables and headers are hidden, because they are often keys."""
        shown = super().plain()
        hidden = {
            name: dict.fromkeys((key for key, _ in shown[name]), "…") for name in ("env", "headers") if shown.get(name)
        }
        return shown | hidden


def named_servers() -> ValueType:
    """Tables by name, as a tuple of servers. The path of an InvalidValue is the server's name and the field."""

    def read(value: Any) -> tuple[McpServer, ...]:
        if isinstance(value, tuple) and all(isinstance(one, McpServer) for one in value):
            return value
        if not isinstance(value, Mapping):
            raise ValueError("not valid")
        return tuple(_read(name, raw) for name, raw in value.items())

    return ValueType("tables by name, in a file", read, row=McpServer, merge=merged, is_named=True)


def merged(current: tuple[McpServer, ...], new: tuple[McpServer, ...]) -> tuple[McpServer, ...]:
    names = {one.name for one in new}
    return (*(one for one in current if one.name not in names), *new)


def _read(name: str, raw: Any) -> McpServer:
    if not NAME.fullmatch(name):
        raise InvalidValue(f" {shown_name(name)}: a server's name is 1 to 32 letters, digits, _ and -.", name)
    return replace(read_row(McpServer, raw, name), name=name)
