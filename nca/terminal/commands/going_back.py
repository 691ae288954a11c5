"""What a person is told and asked before files go back, and while they do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from rich.console import Group

from nca.file_history.plan import Choice
from nca.file_history.restore import Watch
from nca.humanize import counted
from nca.terminal.commands.command import App
from nca.terminal.render.file_changes import diffs, going_lines, path, paths
from nca.terminal.render.sanitize import one_line

if TYPE_CHECKING:
    from nca.file_history.plan import PlannedChange, RewindPlan

NOTHING = "Nothing was changed."
SHOWN_AFTER_SECONDS, EACH_SECONDS = 1.0, 0.25
_MERGE_LINES = 200
T = TypeVar("T")


async def agreed(app: App, plan: RewindPlan, *, is_shown: bool = False) -> Choice | None:
    """Name the files that go back, and ask about what nca cannot know. None if the person does not go back.

    is_shown  the person has seen the files
    """
    for line in () if is_shown else going_lines(plan):
        app.output.notice(line)
    choice = await _asked(app, plan)
    if choice is None:
        app.output.notice(NOTHING)
    return choice


async def _asked(app: App, plan: RewindPlan) -> Choice | None:
    if not await _jobs_ended(app, plan):
        return None
    keep: frozenset[str] = frozenset()
    unnamed = [one for one in plan.deleted if one.is_unnamed]
    if unnamed:
        question = (
            f"{counted(len(unnamed), 'file')} came up while a command ran that does not mention"
            f" {'it' if len(unnamed) == 1 else 'them'}, so nca cannot tell whose: {paths(unnamed)}."
        )
        answer = await app.reader.choose(question, (("d", "delete"), ("k", "keep"))) if app.reader.can_choose else "k"
        if not answer:
            return None
        keep = frozenset(one.path for one in unnamed) if answer == "k" else keep
    if not (plan.left and app.reader.can_choose):
        return Choice(keep=keep)
    choice = await _of_others(app, plan.left)
    return None if choice is None else Choice(choice.take, keep, choice.merges)


async def restoring(app: App, work: Callable[[Watch], Coroutine[Any, Any, T]]) -> T:
    """Do it, and say how far it is if it takes longer than a moment."""
    far = [0, 0]

    def progress(done: int, of: int) -> None:
        far[:] = done, of

    task = asyncio.ensure_future(work(Watch(progress)))
    try:
        await asyncio.wait({task}, timeout=SHOWN_AFTER_SECONDS)
        while not task.done():
            app.output.status(f"Restoring files: {far[0]:,} of {far[1]:,} steps")
            await asyncio.wait({task}, timeout=EACH_SECONDS)
    except asyncio.CancelledError:
        task.cancel()
    return await task


async def _jobs_ended(app: App, plan: RewindPlan) -> bool:
    """Whether no job can change the files meanwhile; the person may end those that run."""
    running = [job for job in app.conversation.jobs.all if job.is_running]
    if not (plan.touches_files and running and app.reader.can_choose):
        return True  # without a person, going back refuses and says so
    names = ", ".join(f"job {job.number} ({one_line(job.name, 60)})" for job in running)
    question = f"{names} still {'runs' if len(running) == 1 else 'run'} and may change files."
    if await app.reader.choose(question, (("s", "stop and go back"), ("w", "wait"))) != "s":
        return False
    await asyncio.gather(*(job.stop() for job in running))
    return True


async def _of_others(app: App, left: Sequence[PlannedChange]) -> Choice | None:
    """What becomes of files that somebody changed since."""
    merges = [found for one in left if (found := await app.conversation.rewinds.merged(one)) is not None]
    question = f"{counted(len(left), 'file')} changed since, and not by this session alone: {paths(left)}."
    keys = [("l", "leave as they are"), ("o", "take the older")]
    if merges:
        keys.append(("m", "merge"))
    while True:
        answer = await app.reader.choose(question, keys)
        if answer == "o":
            return Choice(take=frozenset(one.path for one in left))
        if answer != "m":
            return Choice() if answer else None
        lines, _ = diffs([one for one, _ in merges], _MERGE_LINES, "")
        app.output.show(Group(*lines))
        marked = [f"{path(one)} ({counted(conflicts, 'conflict')})" for one, conflicts in merges if conflicts]
        if marked:
            app.output.warn(f"With conflict marks: {', '.join(marked)}.")
        rest = len(left) - len(merges)
        says = f" The other {counted(rest, 'file')} cannot be merged and will be left." if rest else ""
        if await app.reader.choose(f"Write this?{says}", (("y", "yes"), ("n", "no"))) == "y":
            return Choice(merges=tuple(one for one, _ in merges))
