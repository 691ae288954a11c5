"""/jobs: show the commands that the model runs in the background, and their output; stop one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.text import Text

from nca.errors import UsageError
from nca.humanize import duration
from nca.terminal.commands.command import App, Command, Suggestion, beginning_with
from nca.terminal.render.sanitize import one_line, to_terminal
from nca.terminal.render.tables import new_table

if TYPE_CHECKING:
    from nca.tools.shell.jobs import Job, Jobs


class JobsCommand(Command):
    name = "jobs"
    usage = "/jobs\n/jobs N\n/jobs stop N"
    about = "Commands that the model runs in the background; N shows the end of one's output, stop ends it"

    async def run(self, app: App, argument: str) -> None:
        jobs = app.conversation.jobs
        match argument.split():
            case []:
                _show_all(app, jobs)
            case ["stop", number]:
                job = _find(jobs, number)
                if not job.is_running:
                    raise UsageError(f"Job {job.number} has ended already ({job.state}).")
                await job.stop()
            case [number] if number != "stop":
                job = _find(jobs, number)
                app.output.show(Text(to_terminal(job.recent).rstrip("\n") or "No output."))
                app.output.notice(job.headline()[1:-1])
            case _:
                raise UsageError("/jobs takes a number, or stop and a number.", advice="/jobs shows them.")

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        jobs = app.conversation.jobs.all
        word, blank, rest = argument.partition(" ")
        if not blank:
            known = [(str(job.number), one_line(job.command, 60)) for job in jobs]
            return beginning_with(word, [("stop", "end one"), *known])
        running = [(str(job.number), one_line(job.command, 60)) for job in jobs if job.is_running]
        return beginning_with(rest, running) if word == "stop" else ()


def _find(jobs: Jobs, number: str) -> Job:
    for job in jobs.all:
        if str(job.number) == number:
            return job
    raise UsageError(f"There is no job {one_line(number, 40)}.", advice="/jobs shows them.")


def _show_all(app: App, jobs: Jobs) -> None:
    if not jobs.all:
        app.output.show("No command runs in the background. The model starts one for a server, say, or a long build.")
        return
    table = new_table(has_header=True)
    for title in ("job", "state", "for", "command"):
        table.add_column(title, overflow="fold")
    for job in jobs.all:
        style = "accent" if job.is_running else "quiet"
        command = Text(one_line(job.command, 200))
        table.add_row(Text(str(job.number)), Text(job.state, style), Text(duration(job.seconds)), command)
    app.output.show(table)
