"""All formats: which one a file has, by its content, or what it lies beside; the sessions in the agents' own stores."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path

import msgspec

from nca.errors import InvalidMessages, NcaError
from nca.transcripts.formats.records import PLACES, Format, StoredSession
from nca.transcripts.formats.source import Source


class Stored(msgspec.Struct, frozen=True):
    """Sessions of other agents, newest first, and a line for each file that could not be read."""

    sessions: tuple[StoredSession, ...]
    notes: tuple[str, ...] = ()


@cache
def formats() -> tuple[Format, ...]:
    """In the order in which a file is asked for."""
    modules = ((places.module or name.replace("-", "_")).partition(":") for name, places in PLACES.items())
    return tuple(getattr(import_module(f"{__package__}.{module}"), name or "FORMAT") for module, _, name in modules)


def format_named(name: str) -> Format | None:
    return next((one for one in formats() if one.name == name), None)


def recognise(source: Source) -> Format | None:
    """The format of a file; None if it is of no other agent. Raises InvalidMessages if the file cannot be read."""
    asked = formats()[:1] if source.is_folder else formats()
    return next((one for one in asked if one.knows(source)), None)


def stored_sessions(
    env: Mapping[str, str], home: Path, directory: str | None = None, *, agents: Iterable[str] = ()
) -> Stored:
    """The sessions in the agents' stores, but those of subagents: each belongs to another session.

    directory  only those that worked there; of named agents, those with an unknown directory as well
    agents     only those of these formats, by name; empty: of all
    """
    asked = set(agents)
    directories = {directory, ""} if asked else {directory}
    found: list[StoredSession] = []
    notes: list[str] = []
    for agent in formats():
        if asked and agent.name not in asked:
            continue
        for path in agent.files(env, home):
            try:
                sessions = (one for one in agent.sessions(Source.of_file(path)) if not one.parent)
                found += [one for one in sessions if directory is None or one.directory in directories]
            except NcaError as error:
                notes.append(f"{agent.title}: {error.message}")
    found.sort(key=lambda session: (-session.at, str(session.path), session.key))
    return Stored(tuple(found), tuple(notes))


def refuse_neighbour(source: Source) -> None:
    """Raises InvalidMessages, with the file to give instead, if this one lies beside an agent's session."""
    table = tomllib.loads(Path(__file__).with_name("neighbours.toml").read_text(encoding="utf-8"))
    for one in table["neighbour"]:
        begins = one["begins"].replace(" ", r"\s*").encode()
        if re.match(rb"\s*" + begins, source.head, re.DOTALL):
            raise InvalidMessages(f"{source.place}: is {one['what']}; valid: {one['valid']}.")
