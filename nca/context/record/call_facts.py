"""What a tool call is about, from its name and arguments alone; found once for a call that several stages look at."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from nca.context.file_reads import FileUse, file_use, main_argument
from nca.context.record.outcomes import command_of, kind_of_command, says_little
from nca.messages import ToolCall

HINT_CHARS = 60
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
    return CallFacts(None, "", f"{name} {main_argument(call)[:HINT_CHARS]}".strip(), says_little=False)
