"""nca's own tools for a conversation, the selection that a model is offered, and what each costs and did."""

from __future__ import annotations

import difflib
import json
import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Any

from nca.agent.state import SessionState
from nca.config.document import shown_name
from nca.config.loaded import LoadedSettings
from nca.config.tables import OWN_TOOLS, TOOLS
from nca.context.budget import Budget
from nca.context.file_reads import NOT_RUN
from nca.context.parts import split
from nca.context.tokens import entry_tokens
from nca.errors import ConfigError
from nca.messages import Entry
from nca.models.catalog import ModelFacts
from nca.tools.mcp.tool import server_of
from nca.tools.recall import Archive
from nca.tools.shell.runner import CommandRunner, directory_left
from nca.tools.shell.tool import Shell
from nca.tools.tool import Permission
from nca.tools.toolbox import Toolbox, ToolContext, default_toolbox

OUTSIDE_SHARE_OF_BUDGET = 5
"""All tools of MCP servers together take at most a fifth, so that the conversation keeps most of the budget."""
_LOOKED_AT = 500
"""Messages among which the directory of the last command is looked for when a session is continued."""
_CHARS_PER_TOKEN = 3
"""An estimate for JSON schemas."""


_SIMPLE = frozenset({"read_file", "edit_file", "write_file", "grep", "shell"})
"""Those of nca's own tools that a small model is offered, without flags and lists."""


def own_toolbox(
    state: SessionState, directory: Path, archive: Archive, outputs: Path | None, given: ToolContext
) -> Toolbox:
    """nca's own tools. Each call uses the model and the settings of that moment.

    outputs  the folder for command output that is too large to show; None: it is not kept
    given    what the tools get of the conversation beside its state
    """

    def readable() -> Sequence[Path]:
        added = (directory / os.path.expanduser(one) for one in state.settings.tools.readable)  # noqa: PTH111
        return (*given.readable(), *added)

    context = replace(
        given,
        can_see=lambda: state.can_see,
        is_small=lambda: state.facts.is_small,
        private_hosts=lambda: state.settings.tools.private_hosts,
        last_todo=lambda: state.last_todo,
        protected=_protected(state.loaded, directory),
        readable=readable,
        limits=lambda: state.limits,
        runner=CommandRunner(
            directory,
            settings=lambda: state.settings.tools,
            limits=lambda: state.limits,
            outputs=lambda: outputs,
            left_in=lambda: directory_left(_results(state)),
            terminal=given.editor.terminal if given.editor else None,
        ),
        reading=state.reading(directory),
    )
    return default_toolbox(directory, archive, context)


def _results(state: SessionState) -> Iterator[str]:
    """Of commands, newest first."""
    for entry in islice(state.history.backwards(), _LOOKED_AT):
        if entry.message.role == "tool" and entry.message.name == Shell.name:
            yield entry.message.text


def offered(toolbox: Toolbox, facts: ModelFacts, budget: Budget, off: Collection[str] = ()) -> list[dict[str, Any]]:
    """The tool definitions for every request to this model; fewer in a small window, and none that are `off`.

    The tools of MCP servers may have any length, so together they get only a share of the budget.
    """
    if not facts.can_use_tools:
        return []
    definitions = {one["function"]["name"]: one for one in toolbox.definitions(budget.budget_tokens)}
    by_server: dict[str, dict[str, int]] = {}
    for tool in (one for one in toolbox.outside if one.name not in off):
        size = len(json.dumps(definitions[tool.name]))
        by_server.setdefault(server_of(tool.name), {})[tool.name] = size
    room = budget.budget_tokens // OUTSIDE_SHARE_OF_BUDGET * _CHARS_PER_TOKEN
    left_out = _without_room(list(by_server.values()), room)
    left_out |= {*off, *(OWN_TOOLS - _SIMPLE if facts.is_small else ())}
    chosen = {name: one for name, one in definitions.items() if name not in left_out}
    if "shell" in chosen and "job" not in chosen:
        # A job that nobody can ask about later is not begun.
        chosen["shell"] = _without_parameter(chosen["shell"], "background")
    return [toolbox.simple(name) if facts.is_small and name in _SIMPLE else one for name, one in chosen.items()]


def check_names(loaded: LoadedSettings, own: Collection[str] = ()) -> None:
    """Raise ConfigError for a name of a tool that there is not, where it was to keep the model from something.

    Tools of MCP servers are not known before the servers are. `own`: those of the conversation's toolbox.
    """
    settings, names = loaded.settings, {*OWN_TOOLS, *own}
    rules = {key: getattr(settings.permissions, key) for key in ("deny", "ask")}
    named = {"tools.off": settings.tools.off} | {
        f"permissions.{key}": [rule.tool for rule in found if not rule.origin] for key, found in rules.items()
    }
    named["hooks"] = [one for hook in settings.hooks for one in hook.without_a_tool(names)]
    for key, found in named.items():
        for said, advice in _without_a_tool(loaded, key, found, names):
            raise ConfigError(f"{said}.", advice=advice)


def idle_rules(loaded: LoadedSettings, own: Collection[str] = ()) -> Iterator[str]:
    """A line for each tool that there is not in the rules that allow.

    No error as in `check_names`: such a rule keeps nobody safe, and a program saves those of its own tools.
    """
    named = dict.fromkeys(rule.tool for rule in loaded.settings.permissions.allow if not rule.origin)
    for said, advice in _without_a_tool(loaded, "permissions.allow", named, {*OWN_TOOLS, *own}):
        yield f"{said}; the rule allows nothing. {advice}"


def _without_a_tool(
    loaded: LoadedSettings, key: str, named: Iterable[str], names: set[str]
) -> Iterator[tuple[str, str]]:
    """What is wrong with each of the `named` that is none of the tools, and what to do."""
    for one in named:
        if not one.startswith("mcp__") and not any(fnmatchcase(name, one) for name in names):
            near = difflib.get_close_matches(one[:80], TOOLS, n=1)
            near += difflib.get_close_matches(one.lower()[:80], sorted(names), n=1)
            hint = f"Did you mean {near[0]}?" if near else f"Valid: {', '.join(sorted(names))}, mcp__SERVER__TOOL."
            where = f"{loaded.origin(key)}: " if loaded.origin(key) else ""
            yield f"{where}{key}: there is no tool {shown_name(one)}", hint


def _without_parameter(definition: dict[str, Any], name: str) -> dict[str, Any]:
    function = definition["function"]
    parameters = function["parameters"]
    kept = {key: value for key, value in parameters.get("properties", {}).items() if key != name}
    return {**definition, "function": {**function, "parameters": {**parameters, "properties": kept}}}


def _without_room(servers: list[dict[str, int]], room_chars: int) -> set[str]:
    """The tools that do not fit. `servers`: the sizes of each server's tools by name.

    Every server gets the same share; what a small server leaves of it goes to the larger ones.
    """
    left_out: set[str] = set()
    for count, sizes in zip(
        range(len(servers), 0, -1), sorted(servers, key=lambda one: sum(one.values())), strict=True
    ):
        share = room_chars // count
        for name, size in sizes.items():
            if size > share:
                left_out.add(name)
                continue
            share -= size
            room_chars -= size
    return left_out


def _protected(loaded: LoadedSettings, directory: Path) -> list[Path]:
    """The folders of the person's own settings, and nca's data."""
    (files, folders), root = loaded.own_places(), directory.resolve()
    # The project may lie inside such a folder, because NCA_HOME is anyone's choice: then protect only the file.
    is_above = [root.is_relative_to(file.parent.resolve()) for file in files]
    return [*(file if above else file.parent for file, above in zip(files, is_above, strict=True)), *folders]


BUILT_IN = "built in"


@dataclass(frozen=True, slots=True)
class ToolCount:
    """One tool.

    source             "built in", or the server that offers it
    is_offered         it is in the requests; a small window leaves some out
    definition_tokens  its part of each request, as the meter counts them
    calls, failures    in the whole session; `refused` of the failures were not allowed
    result_tokens      an estimate for all its results in the session
    """

    name: str
    description: str
    permission: Permission
    source: str
    is_offered: bool
    definition_tokens: int
    calls: int
    failures: int
    refused: int
    result_tokens: int


def tool_counts(
    toolbox: Toolbox,
    offered: Sequence[Mapping[str, Any]],
    entries: Iterable[Entry],
    *,
    definitions_tokens: int,
    sources: Mapping[str, str],
) -> list[ToolCount]:
    """Every tool, in the order in which the model sees them.

    offered             the definitions that go along with a request
    definitions_tokens  what these take together; the tools' parts add up to it
    sources             the server of each tool that is one's
    """
    weights = {tool["function"]["name"]: len(json.dumps(tool)) for tool in offered}
    tokens = split(definitions_tokens, weights) if weights else {}
    counts = _history(entries)
    found = []
    for tool in toolbox.definitions():
        name, permission = tool["function"]["name"], toolbox.permission(tool["function"]["name"])
        if permission is not None:
            source, part = sources.get(name, BUILT_IN), tokens.get(name, 0)
            about = tool["function"]["description"]
            found.append(ToolCount(name, about, permission, source, name in weights, part, *counts[name]))
    return found


def _history(entries: Iterable[Entry]) -> dict[str, list[int]]:
    """Calls, failures, refusals and tokens of results by tool."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0] * 4)
    names: dict[str, str] = {}
    for entry in entries:
        message = entry.message
        for call in message.tool_calls:
            names[call.id] = call.name
            counts[call.name][0] += 1
        if message.role == "tool":
            count = counts[message.name or names.get(message.tool_call_id, "")]
            count[1] += message.is_error
            count[2] += message.is_error and message.text.startswith(NOT_RUN)
            count[3] += entry_tokens(entry)
    return counts
