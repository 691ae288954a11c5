"""/changes: what this session changed in the files, as a diff against its beginning."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from rich.text import Text

from nca.errors import UsageError
from nca.terminal.commands.command import App, Command, Suggestion, beginning_with
from nca.terminal.commands.rewind import MOST_LINES
from nca.terminal.render.diffs import diff_lines
from nca.terminal.render.rewinds import path, totals
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.tables import new_table

DIFF_LINES = 200


class ChangesCommand(Command):
    name = "changes"
    usage = "/changes\n/changes PATH\n/changes all"
    about = "What this session changed, by file, against its beginning; PATH or all shows whole diffs"

    async def run(self, app: App, argument: str) -> None:
        changes = await asyncio.to_thread(app.conversation.files.changed_since, 0)
        if not changes:
            app.output.show("This session changed no file that is recorded.")
            return
        wanted = [one for one in changes if argument in ("", "all", path(one))]
        if not wanted:
            raise UsageError(f"This session did not change {one_line(argument, 200)}.", advice="/changes lists them.")
        table = new_table()
        for one in wanted:
            table.add_row(f"+{one.added:,} −{one.removed:,}", Text(path(one)))
        app.output.show(table)
        most = MOST_LINES if argument else DIFF_LINES
        diff = "\n".join(one.diff() for one in wanted)
        app.output.show(Text("\n").join(diff_lines(diff, most, "(/changes all shows them)")))
        app.output.notice(f"{totals(wanted)}.")

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        changes = app.conversation.files.changed_since(0)
        return beginning_with(argument, (("all", "every diff in full"), *((path(one), "") for one in changes)))


COMMAND = ChangesCommand()
