"""Write a session as one of another agent, in a file that the agent does not have yet."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import msgspec

from nca.errors import NcaError, UsageError
from nca.sessions.transfer import SessionCopy
from nca.transcripts.export_formats import write_private
from nca.transcripts.outgoing.conversation import Outgoing, outgoing

AGENTS = ("claude", "codex", "gemini", "pi")
"""The modules of this package that hold a format, as `AGENT`."""


class Agent(Protocol):
    """An agent whose sessions can be written. `name` is a word for the command line, `title` the agent's name."""

    name: str
    title: str

    def place(self, out: Outgoing, env: Mapping[str, str], home: Path) -> Path:
        """Where the agent looks for the session."""

    def beside(self, out: Outgoing, place: Path) -> dict[Path, str]:
        """Files that the agent needs to find the session, and what they hold if they are missing."""

    def command(self, out: Outgoing, file: Path) -> str:
        """What resumes the session, in its directory. `file`: where it is."""

    def left_out(self, out: Outgoing) -> dict[str, int]:
        """How many of what this agent has no place for, by name."""

    def rows(self, out: Outgoing) -> Iterator[dict[str, Any]]:
        """The lines of the file."""


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """What was written. `left_out` and `cut` as in `Outgoing`; `place`: where the agent looks for it."""

    file: Path
    place: Path
    agent: str
    command: str
    messages: int
    left_out: dict[str, int]
    cut: int


def agent_named(name: str) -> Agent:
    """Raises UsageError."""
    if name not in AGENTS:
        raise UsageError(f"--as: {name!r} is not valid; valid: {', '.join(AGENTS)}.")
    return _agents()[name]


@cache
def _agents() -> dict[str, Agent]:
    return {name: import_module(f"{__package__}.{name}").AGENT for name in AGENTS}


def write_for(agent: Agent, copy: SessionCopy, env: Mapping[str, str], home: Path, file: str = "") -> Written:
    """Write the session where the agent looks for it, or to `file`. Raises UsageError, NcaError."""
    out = outgoing(copy)
    place = agent.place(out, env, home)
    target = Path(file) if file else place
    if os.path.lexists(target):
        raise UsageError(f"{target} already exists; nothing was written", advice="Name another FILE.")
    lines = (json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in agent.rows(out))
    data = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
    if not file:
        _make_folder(place.parent)
        for marker, text in agent.beside(out, place).items():
            if not marker.exists():
                write_private(marker, text.encode())
    write_private(target, data)
    return Written(
        file=target,
        place=place,
        agent=agent.title,
        command=f"cd {shlex.quote(out.directory)} && {agent.command(out, target)}",
        messages=len(out.sent),
        left_out={name: count for name, count in {**out.left_out, **agent.left_out(out)}.items() if count},
        cut=out.cut,
    )


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise NcaError(f"{folder} cannot be made ({reason})", advice="Name a FILE to write to.") from error
