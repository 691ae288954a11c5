"""The chat's slash commands for a client without a screen; permission mode, model and reasoning as it sets them."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from acp import schema

from nca.acp.tool_calls import fenced
from nca.agent.prompt_commands import find_prompts
from nca.errors import UsageError
from nca.models.lookup import offers
from nca.terminal.commands.command import find_whole
from nca.terminal.commands.model import MEANINGS, RECENT_SESSIONS
from nca.terminal.commands.permissions import MODES
from nca.terminal.render.plain import PlainDraw
from nca.terminal.render.sanitize import one_line
from nca.terminal.session_switcher import SessionSwitcher
from nca.words import Words

if TYPE_CHECKING:
    from nca.acp.client import EditorPerson
    from nca.agent.compaction_diff import Preview
    from nca.agent.conversation import Conversation
    from nca.agent.prompt_commands import PromptCommand
    from nca.terminal.commands.command import Command

OFFERED = (
    *("context", "compact", "undo", "redo", "rewind", "changes"),
    *("model", "effort", "permissions", "btw", "cost", "tools", "jobs", "mcp", "memory", "config", "rename", "export"),
)
"""Commands that need no screen. The others are for the terminal, or the client does the same in its own way."""
_HINT_CHARS, _ABOUT_CHARS = 100, 200
_COLUMNS = "100"
"""Of tables; a client shows them in a font of fixed width."""


class EditorCommands:
    """The app that commands work with (`nca.terminal.commands.command.App`), without a screen.

    models  names that the choice of a model came across
    """

    def __init__(self, conversation: Conversation, person: EditorPerson, models: Sequence[str]) -> None:
        self.conversation = conversation
        self.reader = person
        self.models = models
        self._said = io.StringIO()
        self.output = PlainDraw(self._said, self._said, {**os.environ, "COLUMNS": _COLUMNS})
        self.sessions = SessionSwitcher(conversation, self.output, person, self.put_in_prompt)
        self.preview: Preview | None = None
        person.take_shown = self._take_shown

    @property
    def can_walk(self) -> bool:
        return False

    @property
    def argument(self) -> Words:
        """An editor does not say which text was typed, and no command that it may call asks."""
        return ()

    def hold_preview(self, preview: Preview | None) -> None:
        self.preview = preview

    def put_in_prompt(self, said: Words, *, is_new: bool = False) -> None:
        """Nothing to do: the prompt is the client's."""

    async def run(self, command: Command, argument: str) -> str:
        """A command's output, as Markdown. Raises NcaError."""
        try:
            await command.call(self, argument)
        finally:
            shown = self._take_shown()
        return shown

    def _take_shown(self) -> str:
        said = self._said.getvalue().rstrip("\n")
        self._said.seek(0)
        self._said.truncate()
        return fenced(said, "text") if "\n" in said else said

    async def prompts(self) -> dict[str, PromptCommand]:
        """Skills and custom commands, as they are on disk now."""
        return await asyncio.to_thread(find_prompts, self.conversation.directory)

    async def available(self) -> list[schema.AvailableCommand]:
        """All that can be called, for the client to suggest."""
        own = [(name, prompt.about, prompt.hint or "what to do") for name, prompt in (await self.prompts()).items()]
        of_servers = [(name, about, wanted) for name, wanted, about in self.conversation.servers.prompts()]
        more = [_available(*one) for one in (*own, *of_servers) if one[0] not in OFFERED]
        return [_offer(name) for name in OFFERED] + more


def offered(name: str) -> Command | None:
    """The chat's command of this name, whole and in any case. Raises UsageError for one that needs the terminal."""
    if (command := find_whole(name)) is None:
        return None
    if command.name not in OFFERED:
        raise UsageError(f"/{command.name} works in the terminal (nca loop); nothing was sent.")
    return command


def _offer(name: str) -> schema.AvailableCommand:
    command = find_whole(name)
    assert command is not None, name
    forms = [line.partition("  ")[0].removeprefix(f"/{name}").strip() for line in command.usage.split("\n")]
    return _available(name, command.about, " · ".join(form for form in forms if form))


def _available(name: str, about: str, hint: str) -> schema.AvailableCommand:
    asks = (
        schema.AvailableCommandInput(schema.UnstructuredCommandInput(hint=one_line(hint, _HINT_CHARS)))
        if hint
        else None
    )
    return schema.AvailableCommand(name=name, description=one_line(about, _ABOUT_CHARS) or name, input=asks)


_Category = Literal["mode", "model", "thought_level"]
MODE, MODEL, REASONING = "mode", "model", "reasoning"
_COMMANDS = {MODE: "permissions", MODEL: "model", REASONING: "effort"}
"""The command that the person would type to set each."""
_NAMES = {"ask": "Ask", "accept-edits": "Accept edits", "plan": "Plan", "auto": "Auto"}


def mode_state(conversation: Conversation) -> schema.SessionModeState:
    modes = [
        schema.SessionMode(id=one, name=_NAMES.get(one, one), description=f"nca {about}")
        for one, about in MODES.items()
    ]
    return schema.SessionModeState(current_mode_id=conversation.approvals.mode, available_modes=modes)


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


def config_options(conversation: Conversation, models: Sequence[str]) -> list[schema.SessionConfigOptionSelect]:
    """The options with their current values. `models`: names that the choice of a model came across."""
    settings, in_use = conversation.loaded.settings, conversation.model.facts.name
    recent = conversation.store.models_that_answered(RECENT_SESSIONS)
    listed = offers(settings.model, os.environ, in_use=in_use, found=models, recent=recent)
    return [
        _select(MODE, "Permissions", "mode", conversation.approvals.mode, {one: _NAMES.get(one, one) for one in MODES}),
        _select(MODEL, "Model", "model", in_use, {one.name: one.name for one in listed}),
        _select(REASONING, "Reasoning", "thought_level", settings.model.reasoning, {one: one for one in MEANINGS}),
    ]


def _select(
    number: str, name: str, category: _Category, current: str, values: dict[str, str]
) -> schema.SessionConfigOptionSelect:
    about = {MODE: MODES, REASONING: MEANINGS}.get(number, {})
    return schema.SessionConfigOptionSelect(
        type="select",
        id=number,
        name=name,
        category=category,
        current_value=current,
        options=[
            schema.SessionConfigSelectOption(value=value, name=one_line(shown), description=about.get(value))
            for value, shown in values.items()
        ],
    )
