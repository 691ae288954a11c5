"""From a view to the messages that are sent: resolved, repaired, and the same bytes for the same log and view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nca.context.history import History
from nca.context.rules import REPAIRS, AssistantAfterTool
from nca.context.rules.ids import UniqueIds
from nca.context.view import Verbatim, View
from nca.messages import Message
from nca.wire import message_to_dict

PROVIDERS_WITHOUT_USER_AFTER_TOOL = ("mistral", "codestral")


def resolve(history: History, view: View | None = None) -> list[Message]:
    """What the view shows, in order, not yet repaired."""
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
    """The conversation so that the provider takes it; with no provider named, so that every one does."""
    repaired = list(messages)
    for rule in REPAIRS:
        repaired = rule.repair(repaired)
    if not provider or provider in PROVIDERS_WITHOUT_USER_AFTER_TOOL:
        repaired = AssistantAfterTool().repair(repaired)
    if provider in PROVIDERS_WITHOUT_USER_AFTER_TOOL:
        repaired = UniqueIds(exactly_nine=True).repair(repaired)
    return repaired


def request_messages(
    history: History, *, view: View | None = None, system_prompt: str = "", provider: str = ""
) -> list[dict[str, Any]]:
    """The messages of the next request, OpenAI-shaped."""
    messages = resolve(history, view)
    if system_prompt:
        messages.insert(0, Message("system", system_prompt))
    return [message_to_dict(message) for message in repair(messages, provider)]
