"""A command that only shows something changes nothing, and says the same again: so it may run while nca works."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from nca.errors import NcaError
from nca.terminal.commands.command import Command, all_commands
from tests.terminal.stage import Stage, a_stage
from tests.terminal.test_commands import SUMMARY, a_long_chat, replies

WORDS = {
    **{"N": "1", "NAME": "grep", "TEXT": "parser", "PATH": "a.txt", "COMMAND": "context", "ID": "here", "MODE": "auto"},
    **{"GROUP": "context", "WORD": "window", "KEY": "context.auto", "VALUE": "off", "SERVER": "none"},
}


def arguments(command: Command) -> list[str]:
    """As its usage writes them, and in capitals, which some commands take for the same."""
    lines = [line.partition("  ")[0].removeprefix(f"/{command.name}") for line in command.usage.split("\n")]
    found = [" ".join(WORDS.get(word, word) for word in re.sub(r"[\[\]]", "", line).split()) for line in lines]
    return list(dict.fromkeys(["", *found, *map(str.upper, found)]))


SHOWING = [(one, argument) for one in all_commands() for argument in arguments(one) if one.only_shows(argument)]


def state(stage: Stage) -> list[Any]:
    """What a command could change."""
    conversation = stage.conversation
    session, approvals = conversation.session, conversation.approvals
    return [
        *(session.info, session.views.records(), session.views.pins(), len(conversation.context.entries)),
        *(conversation.loaded, conversation.model, approvals.mode, list(approvals.session_rules)),
        *(stage.app.preview, conversation.user_input.waiting, conversation.memory.notes()),
        *(conversation.store.list(None), conversation.context.next_request().tools),
    ]


async def said(stage: Stage, command: Command, argument: str) -> str:
    stage.take()
    try:
        await command.call(stage.app, argument)
    except NcaError as error:
        return f"{stage.take()}{error}"
    return stage.take()


async def test_it_changes_nothing_and_says_the_same_again(tmp_path: Path) -> None:
    with a_stage(tmp_path, [*replies(6), SUMMARY], window_tokens=40_000, context__target_ratio=0.1) as stage:
        await a_long_chat(stage)
        await stage.command("/compact")
        for command, argument in SHOWING:
            before = state(stage)
            first = await said(stage, command, argument)
            assert state(stage) == before, f"/{command.name} {argument}"
            assert await said(stage, command, argument) == first, f"/{command.name} {argument}"
