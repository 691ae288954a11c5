"""List the tools of a conversation: what each may do, what it costs in every request, and what it did so far."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nca.context.parts import split
from nca.context.repeats import NOT_RUN
from nca.context.tokens import entry_tokens
from nca.messages import Entry
from nca.tools.tool import Permission
from nca.tools.toolbox import Toolbox

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
    calls, failures, refused, results = _history(entries)
    found = []
    described = {tool["function"]["name"]: tool["function"]["description"] for tool in toolbox.definitions()}
    for name in dict.fromkeys((*toolbox.names, *calls)):
        permission = toolbox.permission(name)
        if permission is None:
            continue
        found.append(
            ToolCount(
                name,
                described.get(name, ""),
                permission,
                sources.get(name, BUILT_IN),
                name in weights,
                tokens.get(name, 0),
                calls[name],
                failures[name],
                refused[name],
                results[name],
            )
        )
    return found


def _history(entries: Iterable[Entry]) -> tuple[Counter[str], Counter[str], Counter[str], Counter[str]]:
    """Calls, failures, refusals and tokens of results by tool."""
    calls: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    results: Counter[str] = Counter()
    names: dict[str, str] = {}
    for entry in entries:
        message = entry.message
        for call in message.tool_calls:
            names[call.id] = call.name
            calls[call.name] += 1
        if message.role == "tool":
            name = message.name or names.get(message.tool_call_id, "")
            results[name] += entry_tokens(entry)
            failures[name] += message.is_error
            refused[name] += message.is_error and message.text.startswith(NOT_RUN)
    return calls, failures, refused, results
