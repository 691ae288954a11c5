"""/model and /effort: show or switch the model, and how much it reasons."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from rich.text import Text

from nca.errors import ConfigError
from nca.models import keys
from nca.models.choose import named, open_model
from nca.models.lookup import Offer, known, look_up, offers, once, served_beside
from nca.models.reasoning import AUTO, LEVELS, OFF, split_level
from nca.terminal.commands.command import App, Command, Suggestion, beginning_with, takes_no
from nca.terminal.render.event_lines import reserve_line
from nca.terminal.render.layout import Parted
from nca.terminal.render.sanitize import one_line
from nca.terminal.session_switcher import go_back, remember

if TYPE_CHECKING:
    from nca.models.catalog import ModelFacts

DEFAULT = "default"
"""Instead of a name: the model that the settings lead to."""
RECENT_SESSIONS = 50
"""Sessions whose models are offered."""


class ModelCommand(Command):
    name = "model"
    shows = "alone"

    def needs_person(self, app: App, argument: str) -> str:
        return "chooses who sees the conversation" if argument else ""

    async def run(self, app: App, argument: str) -> None:
        # A key may have been stored since the chat began. One that cannot be read is reported where it is needed.
        with suppress(ConfigError):
            keys.use(os.environ)
        argument = argument or await self._chosen(app)
        if not argument:
            return
        conversation = app.conversation
        if argument == DEFAULT:
            choice = await go_back(conversation, app.output)
            app.output.show(f"{choice.model} answers from now on: {choice.why}.")
            return
        name, level = split_level(argument)
        choice = named(name, conversation.loaded.for_model(name).settings.model, os.environ)
        caution = await asyncio.to_thread(look_up, choice.model, choice.api_base, choice.api_key)
        is_other = choice.model != conversation.model.facts.name
        await conversation.use_model(await open_model(choice, conversation.loaded, app.output.on_event))
        before = conversation.loaded.settings.model.reasoning
        conversation.choose_level(level)
        is_other |= conversation.loaded.settings.model.reasoning != before
        app.output.show(f"{choice.model} answers from now on. {conversation.model.facts.note}".rstrip())
        # Who names the model that answers already has chosen nothing for later chats.
        if (is_other or level) and (remembered := remember(conversation, argument)):
            app.output.notice(remembered)
        for line in filter(None, (reserve_line(conversation), caution)):
            app.output.warn(line)

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        return [Suggestion(name) for name in (*app.models, DEFAULT) if argument.lower() in name.lower()]

    async def _chosen(self, app: App) -> str:
        """The name that the person picks; if nobody can pick, what there is to choose is shown."""
        facts = self._show(app)
        conversation = app.conversation
        settings = conversation.loaded.for_model("").settings
        recent = conversation.store.models_that_answered(RECENT_SESSIONS)
        likely = offers(settings.model, os.environ, in_use=facts.name, found=app.models, recent=recent)
        choice = named(facts.name, conversation.loaded.settings.model, os.environ)

        def served() -> list[Offer]:
            return served_beside(choice.model, choice.api_base, choice.api_key)

        if not app.can_walk or app.reader.is_line_queued:
            others = once([*likely, *await asyncio.to_thread(served)])[1:]
            if others:
                app.output.show("\n".join(f"{one_line(one.name)}  {one.why}" for one in others))
            return ""
        # Imported here: only a screen needs prompt_toolkit.
        from nca.terminal.panels.pickers import ModelPicker

        picker = ModelPicker(likely, lambda: known(settings.model, os.environ), settings.terminal.theme, facts, served)
        chosen = await app.reader.walk(picker)
        return "" if chosen in (None, facts.name) else str(chosen)

    def _show(self, app: App) -> ModelFacts:
        """Returns the facts about the model, with the current window."""
        facts = app.conversation.context.facts
        note = f"\n{one_line(facts.note)}" if facts.note else ""
        how = "/model NAME switches, as in /model openai/gpt-4.1; /model default goes back to the configured one."
        name = one_line(facts.name), "accent"
        app.output.show(Parted(Text.assemble(name, f" · window {facts.window_in_words}{note}", (f"\n{how}", "quiet"))))
        return facts


MEANINGS = {
    AUTO: "the provider's default",
    OFF: "answer at once",
    "low": "a little",
    "medium": "more",
    "high": "the most, which takes time and tokens",
}


class EffortCommand(Command):
    name = "effort"
    shows = "alone"

    async def run(self, app: App, argument: str) -> None:
        level, conversation = argument.lower(), app.conversation
        facts = conversation.model.facts
        if level and level not in LEVELS:
            raise takes_no(self.name, argument, f"Valid: {', '.join(LEVELS)}.")
        if level:
            conversation.set("model.reasoning", level)
        now = conversation.loaded.settings.model.reasoning
        next_step = (
            f"/config model.reasoning {now} --save keeps it" if level else f"Another level: /effort {'|'.join(LEVELS)}"
        )
        has_effect = now in (AUTO, OFF) or facts.can_reason
        app.output.show(f"Reasoning: {now}{f' ({MEANINGS[now]})' if has_effect else ''}. {next_step}.")
        if not has_effect:
            app.output.warn(f"{one_line(facts.name)} is not known to reason; this has no effect.")

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        return beginning_with(argument, MEANINGS.items())
