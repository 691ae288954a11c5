"""/effort: how much the model reasons before it answers."""

from __future__ import annotations

from collections.abc import Iterable

from nca.errors import UsageError
from nca.models.reasoning import AUTO, LEVELS, OFF
from nca.terminal.commands.command import App, Command, Suggestion, beginning_with
from nca.terminal.render.sanitize import one_line

MEANINGS = {
    AUTO: "the provider's default",
    OFF: "answer at once",
    "low": "a little",
    "medium": "more",
    "high": "the most, which takes time and tokens",
}


class EffortCommand(Command):
    name = "effort"
    aliases = ("reasoning",)
    usage = f"/effort\n/effort {'|'.join(LEVELS)}"
    about = "How much the model reasons before it answers"

    async def run(self, app: App, argument: str) -> None:
        level, conversation = argument.lower(), app.conversation
        facts = conversation.model.facts
        if level and level not in LEVELS:
            raise UsageError(f"/effort takes no {one_line(argument, 40)}.", advice=f"Valid: {', '.join(LEVELS)}.")
        if level:
            conversation.set("model.reasoning", level)
        now = conversation.loaded.settings.model.reasoning
        app.output.show(f"Reasoning: {now} ({MEANINGS[now]}). /config model.reasoning {now} --save keeps it.")
        if now not in (AUTO, OFF) and not facts.can_reason:
            app.output.warn(f"{one_line(facts.name)} does not reason, as far as is known; this has no effect.")

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        return beginning_with(argument, MEANINGS.items())


COMMAND = EffortCommand()
