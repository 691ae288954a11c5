"""/sessions: what was talked about before."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from rich.text import Text

from nca.errors import UsageError
from nca.terminal.commands.command import CommandContext, Suggestion
from nca.terminal.sanitize import one_line
from nca.terminal.tables import new_table

_SHOWN = 20


class SessionsCommand:
    name = "sessions"
    aliases = ("session",)
    usage = "/sessions"
    about = "Earlier sessions; nca loop --resume ID opens one"

    async def run(self, context: CommandContext, argument: str) -> None:
        if context.store is None:
            raise UsageError("Sessions are not kept here.")
        found = context.store.list(limit=_SHOWN)
        if not found:
            context.output.show("No sessions yet.")
            return
        table = new_table(has_header=True)
        table.add_column("id", no_wrap=True)
        table.add_column("last used", no_wrap=True)
        table.add_column("messages", justify="right")
        table.add_column("about", overflow="ellipsis", no_wrap=True, ratio=1)
        for info in found:
            is_this = info.id == context.conversation.info.id
            when = datetime.fromtimestamp(info.updated_at).astimezone().strftime("%Y-%m-%d %H:%M")
            table.add_row(
                Text(info.id[:12], style="accent"),
                when,
                str(info.messages),
                Text(("(this) " if is_this else "") + one_line(info.name or info.title, 200)),
            )
        context.output.show(table)

    def complete(self, context: CommandContext, argument: str) -> Iterable[Suggestion]:
        return ()
