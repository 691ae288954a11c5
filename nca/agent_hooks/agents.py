"""The agents that call nca's hooks: where each keeps hooks and sessions, and the meaning of its events.

By the hooks of Claude Code 2.1.197, Codex 0.171 and Gemini CLI 0.61, and the plugins of opencode 1.18.

nca's hooks are added to an agent's settings and taken out again: the file before and after, to be shown first. Every
other character of it stays. A hook of nca's is known by the program that it runs.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import msgspec

from nca.agent_hooks import client
from nca.config.paths import cache_dir
from nca.errors import ConfigError, UsageError
from nca.humanize import one_line
from nca.mcp_server.install import below, itself, kept_variables, text_of
from nca.mcp_server.json_insert import NotInsertable, appended, read, removed

Kind = Literal["begins", "compacting", "summarized", "compacted", "over", "prompt", "call", "ends"]
"""What an event means: a session begins or continues; a compaction is about to begin; its summary is written; the model
continues with it; a compaction is over, and a later event tells of it; the person has written, or a tool has answered;
a tool is about to be called, or has failed; the session ends."""
TELLING: tuple[Kind, ...] = ("begins", "prompt", "call")
"""Events with an answer that the model reads."""


class Agent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An agent, a row of agents.toml.

    name      also that of the format of its sessions
    own       its own folder: what `below` takes
    sessions  the folder of its sessions below that: a hook may name no file elsewhere; or the names of databases
    file      the file of its hooks in that folder
    project   the same for one project, from its folder
    events    its hooks, by name, and what each means
    matchers  the kinds of an event for which the agent calls, if not all
    timeout   how long the agent waits at most, in its own unit
    summary   text that a summary in its transcript contains, if no event reports a compaction
    limit     how many tokens of an answer count, where its hooks have to say so; 0: they have not
    note      what the person has to do besides, or ""
    data      the same of its database of sessions, where it keeps no files of them
    is_plugin the file is a plugin that is wholly nca's
    """

    name: str
    title: str
    own: tuple[str, str, str]
    sessions: str
    file: str
    project: str
    events: dict[str, Kind]
    matchers: dict[str, str] = {}
    timeout: int = 5
    summary: str = ""
    limit: int = 0
    note: str = ""
    data: tuple[str, str, str] | None = None
    is_plugin: bool = False

    def home(self, env: Mapping[str, str]) -> Path:
        return below(*self.own)(env)

    def folder(self, env: Mapping[str, str]) -> Path:
        """The folders of its sessions."""
        return below(*(self.data or self.own))(env).absolute()

    def kind(self, event: str, source: str) -> Kind | None:
        """The meaning of an event; None for one that nca does not know."""
        kind = self.events.get(event)
        return "compacted" if kind == "begins" and source == "compact" else kind


def agent_named(name: str) -> Agent:
    """Raises UsageError, which names those that there are."""
    if name in AGENTS:
        return AGENTS[name]
    raise UsageError(f"{one_line(name, 40)!r} has no hooks that nca knows; valid: {', '.join(AGENTS)}.")


_ROWS = tomllib.loads(Path(__file__).with_name("agents.toml").read_text(encoding="utf-8"))
AGENTS = {name: msgspec.convert({"name": name, **row}, Agent) for name, row in _ROWS.items()}


HOOKS = "hooks"
_MARK = "/nca/agent_hooks/client.py"
"""A command line with this program is nca's, wherever nca is or was installed."""
_PLUGIN = Path(__file__).with_name("plugin.js")
_COMMAND, _VARIABLES = "const COMMAND = ", "const VARIABLES = "
_LAST = re.compile(r"// nca-plugin ([0-9a-f]{64})\n\Z")
"""An agent that has no hooks gets a plugin. By its last line nca knows that the file is as it was written."""


@dataclass(frozen=True, slots=True)
class Change:
    """A settings file before and after; `before` is None if there is none."""

    file: Path
    before: str | None
    after: str

    @property
    def is_needed(self) -> bool:
        return self.after != (self.before or "")


_EMPTY = "{}\n"
"""What is left of a settings file that nca made itself."""


def folder_of(env: Mapping[str, str]) -> Path:
    """The folder of the hooks' socket and log."""
    return cache_dir(env).absolute() / HOOKS


def settings_file(agent: Agent, env: Mapping[str, str], project: Path | None) -> Path:
    """The file that holds the hooks: the person's, or that of a project."""
    file = project / agent.project if project is not None else (agent.home(env) / agent.file).absolute()
    return itself(file)


def command_line(agent: Agent, env: Mapping[str, str]) -> str:
    """The command that the agent runs. It succeeds and prints nothing, even without nca or if nca fails."""
    kept = "".join(f"{name}={shlex.quote(value)} " for name, value in kept_variables(env).items())
    return f"{kept}{shlex.join(_words(agent, env))} 2>{os.devnull} || true"


def installed(agent: Agent, env: Mapping[str, str], file: Path) -> Change:
    """The file with nca's hooks. Raises ConfigError if it cannot be read or holds something else."""
    before = text_of(file)
    if agent.is_plugin:
        _command_of(file, before)
        return Change(file, before, _plugin_text(_words(agent, env), kept_variables(env)))
    wanted = {event: _group(agent, event, command_line(agent, env)) for event in agent.events}
    with _left_alone(file):
        if _own(before or "") == {event: [group] for event, group in wanted.items()}:
            return Change(file, before, before or "")
        after = _without_own(before or "")
        for event, group in wanted.items():
            after = appended(after, (HOOKS, event), group)
    return Change(file, before, after)


def uninstalled(agent: Agent, file: Path) -> Change:
    """The file without nca's hooks; "" for one that is to be removed. Raises as `installed` does."""
    before = text_of(file)
    if agent.is_plugin:
        _command_of(file, before)
        return Change(file, before, "")
    with _left_alone(file):
        after = _without_own(before or "")
    return Change(file, before, "" if after == _EMPTY != before else after)


def programs(agent: Agent, file: Path) -> list[str]:
    """The command lines of nca's hooks in a file. Raises as `installed` does."""
    if agent.is_plugin:
        words = _command_of(file, text_of(file))
        return [shlex.join(words)] if words else []
    with _left_alone(file):
        own = _own(text_of(file) or "")
    return sorted({str(hook["command"]) for groups in own.values() for group in groups for hook in group["hooks"]})


def problem_of(command: str) -> str:
    """Why a command line of nca's cannot do anything, or ""."""
    try:
        words = shlex.split(command)
    except ValueError:
        return "its command has an open quote; install again"
    missing = [word for word in words if word.startswith("/") and not os.path.exists(word)]
    needed = [word for word in missing if word.endswith(_MARK) or Path(word).name.startswith("python")]
    return f"{needed[0]} is gone; install again" if needed else ""


def _words(agent: Agent, env: Mapping[str, str]) -> list[str]:
    program = str(Path(client.__file__).absolute())
    return [sys.executable, "-I", "-S", program, str(folder_of(env)), agent.name, str(agent.folder(env))]


def _group(agent: Agent, event: str, command: str) -> dict[str, Any]:
    matcher = agent.matchers.get(event, "")
    hook: dict[str, Any] = {"type": "command", "command": command, "timeout": agent.timeout}
    if agent.limit and agent.events[event] in TELLING:
        hook["additionalContextLimit"] = agent.limit
    return ({"matcher": matcher} if matcher else {}) | {"hooks": [hook]}


def _own(text: str) -> dict[str, list[dict[str, Any]]]:
    """nca's groups of hooks by their event."""
    settings = read(text)
    found: dict[str, list[dict[str, Any]]] = {}
    for event, place in _places(settings):
        found.setdefault(event, []).append(settings[HOOKS][event][place])
    return found


def _without_own(text: str) -> str:
    for event, place in reversed(_places(read(text))):
        text = removed(text, (HOOKS, event, place))
    return text


def _places(settings: Any) -> list[tuple[str, int]]:
    """The places of nca's groups: their event, and their place in its list."""
    events = settings.get(HOOKS) if isinstance(settings, dict) else None
    return [
        (event, place)
        for event, groups in (events.items() if isinstance(events, dict) else ())
        for place, group in enumerate(groups if isinstance(groups, list) else ())
        if _is_own(group)
    ]


def _is_own(group: Any) -> bool:
    hooks = group.get(HOOKS) if isinstance(group, dict) else None
    return (
        isinstance(hooks, list)
        and bool(hooks)
        and all(isinstance(hook, dict) and _MARK in str(hook.get("command", "")) for hook in hooks)
    )


@contextmanager
def _left_alone(file: Path) -> Iterator[None]:
    """Around the reading of a file that may hold something else. Raises ConfigError."""
    try:
        yield
    except NotInsertable as reason:
        raise ConfigError(f"{file}: {reason}; nothing was changed.", advice="Mend the file and try again.") from reason


def _plugin_text(command: Sequence[str], variables: Mapping[str, str]) -> str:
    """The file. Its program runs `command` with these variables besides its own."""
    text = _PLUGIN.read_text(encoding="utf-8")
    text = text.replace(f"{_COMMAND}[]", f"{_COMMAND}{json.dumps(command)}", 1)
    text = text.replace(f"{_VARIABLES}{{}}", f"{_VARIABLES}{json.dumps(variables)}", 1)
    return f"{text}// nca-plugin {_digest(text)}\n"


def _command_of(file: Path, text: str | None) -> list[str]:
    """The command that nca's plugin runs; empty without a file.

    Raises ConfigError if somebody else wrote the file, or has changed it.
    """
    if text is None:
        return []
    last = _LAST.search(text)
    if last is None or last[1] != _digest(text[: last.start()]):
        raise ConfigError(
            f"{file}: nca did not write it so; nothing was changed.", advice="Move it away, or remove it yourself."
        )
    line = next(line for line in text.splitlines() if line.startswith(_COMMAND))
    return [str(word) for word in json.loads(line.removeprefix(_COMMAND))]


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
