"""What a tool call is about, from its name and arguments alone; found once for a call that several stages look at."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from nca.context.file_reads import FileUse, file_use, main_argument
from nca.context.record.changes import HINT_CHARS, Change, change_by_tool, changes_by_patch, patch_of
from nca.context.record.command_changes import changes_by_command
from nca.context.record.outcomes import command_of, kind_of_command, says_little
from nca.messages import ToolCall

CHANGE = "change"
"""Begins the key of a failure to change a file."""
CALLS_REMEMBERED = 8_192


class CallFacts(NamedTuple):
    """What one call is about.

    use           what it does to a file
    command       the shell command that it runs; "" for none
    key           under what its failure is kept, and its success ends that: the file, the kind of command or the call
    says_little   it runs a command whose success says nothing about the work
    """

    use: FileUse | None
    command: str
    key: str
    says_little: bool


def call_facts(call: ToolCall) -> CallFacts:
    return _facts(call.name, call.arguments)


def changes_of(call: ToolCall) -> tuple[Change, ...]:
    """The files that a call changes when it succeeds."""
    return _changes(call.name, call.arguments)


@lru_cache(maxsize=CALLS_REMEMBERED)
def _facts(name: str, arguments: str) -> CallFacts:
    call = ToolCall("", name, arguments)
    use = file_use(call)
    if use is not None:
        return CallFacts(use, "", f"{CHANGE if use.is_write else 'read'} {use.path}", says_little=False)
    command = command_of(call)
    if command:
        kind = kind_of_command(command)
        return CallFacts(None, command, kind, says_little(kind))
    if changes := changes_of(call):
        return CallFacts(None, "", f"{CHANGE} {changes[0].path}", says_little=False)
    return CallFacts(None, "", f"{name} {main_argument(call)[:HINT_CHARS]}".strip(), says_little=False)


@lru_cache(maxsize=CALLS_REMEMBERED)
def _changes(name: str, arguments: str) -> tuple[Change, ...]:
    call = ToolCall("", name, arguments)
    use = file_use(call)
    if use is not None:
        return (change_by_tool(use, call),) if use.is_write else ()
    command = command_of(call)
    return changes_by_command(command) if command else changes_by_patch(patch_of(call))
