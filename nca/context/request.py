"""Build the messages of a request from a view: resolved, repaired, and always the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from nca.context.history import History
from nca.context.rules import OF_A_PROGRAM, PROGRAM_REPAIRS, RULE_SETS, USUAL
from nca.context.rules.cut_points import regular_spans
from nca.context.rules.messages import without_media
from nca.context.validate import family_of
from nca.context.view import Verbatim, View
from nca.messages import SIGNED_THOUGHTS, Message
from nca.wire import message_to_dict

BLOCKS = "provider_specific_fields"
"""litellm's key for a provider's blocks of compaction."""


def resolve(history: History, view: View | None = None) -> list[Message]:
    """The messages that the view shows, in order, not yet repaired."""
    view = view or history.view
    messages: list[Message] = []
    for item in view.items:
        if isinstance(item, Verbatim):
            messages.extend(entry.message for entry in history.entries[item.first - 1 : item.last])
        else:
            shown = history.shown(item)
            if shown is not None:
                messages.append(shown)
    messages.extend(entry.message for entry in history.entries[view.tail - 1 :])
    return messages


def repair(messages: Sequence[Message], provider: str = "") -> list[Message]:
    """The conversation so that the provider takes it; with no provider named, so that every one does.

    provider  also what `of_a_program` makes of its name
    """
    repaired = list(messages)
    rules = RULE_SETS.get(provider, USUAL)
    for rule in rules.all if regular_spans(repaired) is None else rules.of_regular:
        repaired = rule(repaired)
    return repaired


def of_a_program(provider: str) -> str:
    """The rules for messages that a program keeps: only what the provider, or the shape's, would refuse is repaired.

    The repairs of the chat's own messages also suit servers that are stricter than the provider they are named like.
    """
    return provider and OF_A_PROGRAM + (provider if provider in PROGRAM_REPAIRS else family_of(provider))


def request_messages(
    history: History,
    *,
    view: View | None = None,
    system_prompt: str = "",
    provider: str = "",
    model: str = "",
    with_blocks: bool = False,
    can_see: bool = True,
    also: Sequence[Message] = (),
) -> list[dict[str, Any]]:
    """The messages of the next request, OpenAI-shaped; for `model`, if one is named (see `meant_for`).

    with_blocks: the model's provider compacts by itself, and gets its own blocks back (see `_rows`).
    can_see: the model takes images; another one is told of images in tool results.
    also: messages after those of the view.
    """
    messages = [*resolve(history, view), *also]
    if not can_see:
        messages = [without_media(message) for message in messages]
    if system_prompt:
        messages.insert(0, Message("system", system_prompt))
    rows: list[dict[str, Any]] = []
    for message in repair(messages, provider):
        is_first = all(row["role"] in ("system", "developer") for row in rows)
        rows += _rows(meant_for(model, message), with_blocks=with_blocks and is_first and bool(model))
    return rows


def meant_for(model: str, message: Message) -> Message:
    """Without other models' additions to words and calls: a signature is valid for its maker, others refuse it.

    Signed thoughts of an unknown maker are nobody's.
    """
    if not model:
        return message
    calls, extra = message.tool_calls, message.extra
    if not all(call.made_by == model or not call.extra for call in calls):
        own = tuple(call if call.made_by == model else msgspec.structs.replace(call, extra={}) for call in calls)
        message = msgspec.structs.replace(message, tool_calls=own)
    if not extra or message.made_by == model:
        return message
    kept = {} if message.made_by else {key: value for key, value in extra.items() if key != SIGNED_THOUGHTS}
    return message if kept == extra else msgspec.structs.replace(message, extra=kept)


def _rows(message: Message, *, with_blocks: bool) -> list[dict[str, Any]]:
    """A message as it is sent; a summary that its provider made is followed by the provider's own block.

    The provider leaves out everything before the block, so the block goes only after a summary that comes first.
    """
    row = message_to_dict(message)
    block = row.pop(BLOCKS, None) if message.is_synthetic and message.role != "assistant" else None
    if block is None or not with_blocks:
        return [row]
    return [row, {"role": "assistant", "content": None, BLOCKS: block}]
