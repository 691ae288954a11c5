"""Permission mode, model and reasoning, as the client shows and sets them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from acp.schema import SessionConfigOptionSelect, SessionConfigSelectOption, SessionMode, SessionModeState

from nca.errors import UsageError
from nca.models.lookup import offers
from nca.terminal.commands.model import MEANINGS, RECENT_SESSIONS
from nca.terminal.commands.permissions import MODES
from nca.terminal.render.sanitize import one_line

if TYPE_CHECKING:
    from nca.agent.conversation import Conversation

_Category = Literal["mode", "model", "thought_level"]
MODE, MODEL, REASONING = "mode", "model", "reasoning"
_COMMANDS = {MODE: "permissions", MODEL: "model", REASONING: "effort"}
"""What the person would type to set each."""
_NAMES = {"ask": "Ask", "accept-edits": "Accept edits", "plan": "Plan", "auto": "Auto"}


def mode_state(conversation: Conversation) -> SessionModeState:
    modes = [SessionMode(id=one, name=_NAMES.get(one, one), description=f"nca {about}") for one, about in MODES.items()]
    return SessionModeState(current_mode_id=conversation.approvals.mode, available_modes=modes)


def check_mode(mode: str) -> None:
    if mode not in MODES:
        raise UsageError(f"There is no mode {one_line(mode, 40)!r}; valid: {', '.join(MODES)}.")


def command_for(option: str, value: str | bool) -> tuple[str, str]:
    """The command that sets an option, and its argument. Raises UsageError."""
    if option not in _COMMANDS:
        raise UsageError(f"There is no option {one_line(option, 40)!r}; valid: {', '.join(_COMMANDS)}.")
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"{option} takes the name of one of its values.")
    if option == MODE:
        check_mode(value)
    return _COMMANDS[option], value.strip()


def config_options(conversation: Conversation, models: Sequence[str]) -> list[SessionConfigOptionSelect]:
    """The options with their current values. `models`: names that the choice of a model came across."""
    settings, in_use = conversation.loaded.settings, conversation.model.facts.name
    recent = [info.model for info in conversation.store.list(limit=RECENT_SESSIONS) if info.model]
    listed = offers(settings.model, os.environ, in_use=in_use, found=models, recent=recent)
    return [
        _select(MODE, "Permissions", "mode", conversation.approvals.mode, {one: _NAMES.get(one, one) for one in MODES}),
        _select(MODEL, "Model", "model", in_use, {one.name: one.name for one in listed}),
        _select(REASONING, "Reasoning", "thought_level", settings.model.reasoning, {one: one for one in MEANINGS}),
    ]


def _select(
    number: str, name: str, category: _Category, current: str, values: dict[str, str]
) -> SessionConfigOptionSelect:
    about = {MODE: MODES, REASONING: MEANINGS}.get(number, {})
    return SessionConfigOptionSelect(
        type="select",
        id=number,
        name=name,
        category=category,
        current_value=current,
        options=[
            SessionConfigSelectOption(value=value, name=one_line(shown), description=about.get(value))
            for value, shown in values.items()
        ],
    )
