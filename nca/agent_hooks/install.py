"""Add nca's hooks to another agent's settings, and take them out again: the file before and after, to be shown first.

Every other character of the file stays. A hook of nca's is known by the program that it runs.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from nca.agent_hooks import client
from nca.agent_hooks.agents import TELLING, Agent
from nca.config.paths import cache_dir
from nca.errors import ConfigError
from nca.mcp_server.install import itself, kept_variables, text_of
from nca.mcp_server.json_insert import NotInsertable, appended, read, removed

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
        if before is not None:
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
        if before is not None:
            _command_of(file, before)
        return Change(file, before, "")
    with _left_alone(file):
        return Change(file, before, _without_own(before or ""))


def programs(agent: Agent, file: Path) -> list[str]:
    """The command lines of nca's hooks in a file. Raises as `installed` does."""
    if agent.is_plugin:
        text = text_of(file)
        return [] if text is None else [shlex.join(_command_of(file, text))]
    with _left_alone(file):
        own = _own(text_of(file) or "")
    return sorted({str(hook["command"]) for groups in own.values() for group in groups for hook in group["hooks"]})


def problem_of(command: str) -> str:
    """Why a command line of nca's cannot do anything, or ""."""
    missing = [word for word in shlex.split(command) if word.startswith("/") and not Path(word).exists()]
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


def _command_of(file: Path, text: str) -> list[str]:
    """The command that nca's plugin runs. Raises ConfigError if somebody else wrote the file, or has changed it."""
    last = _LAST.search(text)
    if last is None or last[1] != _digest(text[: last.start()]):
        raise ConfigError(
            f"{file}: nca did not write it so; nothing was changed.", advice="Move it away, or remove it yourself."
        )
    line = next(line for line in text.splitlines() if line.startswith(_COMMAND))
    return [str(word) for word in json.loads(line.removeprefix(_COMMAND))]


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
