"""The tools of a conversation: nca's own, with the context they need, and which of them the model is told of."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from nca.agent.calls import most_bytes
from nca.agent.window import Window
from nca.config.paths import data_dir, user_config_file
from nca.context.budget import Budget
from nca.models.catalog import ModelFacts
from nca.tools.files.read_files import FilesRead
from nca.tools.mcp.tool import server_of
from nca.tools.recall import Archive
from nca.tools.shell.runner import CommandRunner
from nca.tools.skill import SkillFile
from nca.tools.task import Subtasks
from nca.tools.toolbox import Toolbox, ToolContext, default_toolbox

OUTSIDE_SHARE_OF_BUDGET = 5
"""All tools of MCP servers together: with nca's own and the prompt, the talk keeps most of the budget."""
_CHARS_PER_TOKEN = 3
"""JSON schemas have few characters a token."""


def own_toolbox(
    directory: Path,
    archive: Archive,
    window: Callable[[], Window],
    outputs: Callable[[], Path | None],
    *,
    files_read: FilesRead | None = None,
    skills: Sequence[SkillFile] = (),
    subtasks: Subtasks | None = None,
) -> Toolbox:
    """nca's own tools; they ask the window when they run, which may then have another model or other settings.

    outputs  the folder for what a command says beyond what is shown; None: nowhere
    files_read  which files the model knows; None: none yet
    """
    return default_toolbox(
        directory,
        archive,
        ToolContext(
            can_see=lambda: window().facts.can_see,
            private_hosts=lambda: window().settings.tools.private_hosts,
            last_todo=lambda: (window().history.newest_list or (0, {}))[1],
            protected=_protected(directory),
            runner=CommandRunner(
                directory,
                settings=lambda: window().settings.tools,
                limits=lambda: replace(window().context.admission, max_bytes=most_bytes(window())),
                outputs=outputs,
            ),
            files_read=files_read,
            skills=skills,
            subtasks=subtasks,
        ),
    )


def offered(toolbox: Toolbox, facts: ModelFacts, budget: Budget) -> list[dict[str, Any]]:
    """The definitions that go into every request to this model; fewer where there is little room.

    What MCP servers offer has any length, so all of that together takes at most a share of the budget.
    """
    if not facts.can_use_tools:
        return []
    definitions = {one["function"]["name"]: one for one in toolbox.definitions(budget.budget_tokens)}
    by_server: dict[str, dict[str, int]] = {}
    for tool in toolbox.outside:
        size = len(json.dumps(definitions[tool.name]))
        by_server.setdefault(server_of(tool.name), {})[tool.name] = size
    room = budget.budget_tokens // OUTSIDE_SHARE_OF_BUDGET * _CHARS_PER_TOKEN
    left_out = _without_room(list(by_server.values()), room)
    return [one for name, one in definitions.items() if name not in left_out]


def _without_room(servers: list[dict[str, int]], room_chars: int) -> set[str]:
    """The tools, given with their sizes for each server, that do not fit.

    No server crowds out another: each has the same share, and what a small one leaves of it is for the larger ones.
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


def _protected(directory: Path) -> list[Path]:
    """The person's own settings, with all that stands beside them, and nca's data."""
    settings = user_config_file(os.environ)
    # A project may lie inside that folder (NCA_HOME is anyone's choice): then it is the file.
    is_above = directory.resolve().is_relative_to(settings.parent.resolve())
    return [settings if is_above else settings.parent, data_dir(os.environ)]
