"""In plan mode: once a plan is written, ask whether to carry it out, and leave the mode with the answer."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING

from nca.context.file_reads import arguments_of
from nca.context.todo import NAME as TODO
from nca.terminal.commands.permissions import set_mode

if TYPE_CHECKING:
    from nca.agent.conversation import Conversation
    from nca.messages import Message
    from nca.terminal.reader import Reader
    from nca.terminal.render.output import Output

CARRY_OUT = "Carry the plan out."
"""The message that is sent for a yes."""
_QUESTION = "Carry this plan out?"
_KEYS = (("y", "yes, ask before each change"), ("e", "yes, edit without asking"), ("n", "no: say what to change"))
_MODES = {"y": "ask", "e": "accept-edits"}
_STEP = re.compile(r"(?m)^ {0,3}(?:#+ |\*\*)?([12])[.)] ")


def is_plan_written(conversation: Conversation) -> bool:
    """Whether the last turn, in plan mode, ended with numbered steps or left open ones in the list of steps.

    An answer that ends with a question waits for another answer than yes or no.
    """
    if conversation.approvals.mode != "plan" or conversation.session.is_read_only:
        return False
    turn = list(_last_turn(conversation))
    answer = turn[0].text if turn and turn[0].role == "assistant" else ""
    return not _asks(answer) and ({"1", "2"} <= set(_STEP.findall(answer)) or any(map(_lists_steps, turn)))


def _asks(answer: str) -> bool:
    """Whether a text ends with a question mark of any script, except for what marks or closes it."""
    signs = takewhile(lambda char: not char.isalnum(), reversed(answer))
    return any("QUESTION MARK" in unicodedata.name(char, "") for char in signs)


async def carry_out(conversation: Conversation, reader: Reader, output: Output) -> bool:
    """Ask. True: the plan is to be carried out, in the mode that the person chose; else they say what to change."""
    mode = _MODES.get(await reader.choose_or_type(_QUESTION, _KEYS))
    if mode is not None:
        output.notice(f"{set_mode(conversation, mode)}.")
    return mode is not None


def _last_turn(conversation: Conversation) -> Iterator[Message]:
    """Its messages after the person's, newest first."""
    messages = (entry.message for entry in conversation.context.backwards())
    return takewhile(lambda message: message.role != "user" or message.is_synthetic, messages)


def _lists_steps(message: Message) -> bool:
    return any(call.name == TODO and arguments_of(call).get("open") for call in message.tool_calls)
