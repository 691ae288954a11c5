"""/model: which model answers, and another one."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from nca.errors import UsageError
from nca.terminal.commands.command import CommandContext, Suggestion
from nca.terminal.render.sanitize import one_line


class ModelCommand:
    name = "model"
    aliases = ("models",)
    usage = "/model\n/model NAME"
    about = "Which model answers; /model NAME switches"

    async def run(self, context: CommandContext, argument: str) -> None:
        if not argument:
            self._show(context)
            return
        if context.switch_model is None:
            raise UsageError("The model of this chat cannot be changed.")
        context.output.show(await context.switch_model(argument))

    def complete(self, context: CommandContext, argument: str) -> Iterable[Suggestion]:
        return [Suggestion(name) for name in context.models() if argument.lower() in name.lower()]

    def _show(self, context: CommandContext) -> None:
        conversation = context.conversation
        facts = conversation.model.facts
        # The window in force: a provider or a person may have told another one than what is known of the model.
        tokens = conversation.context.stats(with_details=False).window_tokens
        is_assumed = facts.window_is_assumed and tokens == facts.window_tokens
        window = f"{tokens:,} tokens" + (" (assumed)" if is_assumed else "")
        text = Text()
        text.append(one_line(facts.name), style="accent")
        text.append(f" · window {window}")
        if facts.note:
            text.append(f"\n{one_line(facts.note)}")
        how = "/model NAME switches, as in /model openai/gpt-4.1; /config model.name NAME --save keeps it."
        text.append(f"\n{how}", "quiet")
        context.output.show(text)
