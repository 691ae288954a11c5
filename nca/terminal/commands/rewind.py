"""/rewind, /undo, /redo and /changes: go back to before one of your messages, forward again, and see what changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args

from rich.console import Group
from rich.text import Text

from nca.agent.instruction_files import head_moved
from nca.agent.rewinding import Point, What
from nca.errors import UsageError
from nca.file_history.changes import unchanged
from nca.file_history.plan import EVERYTHING_CERTAIN, LINKED, Choice
from nca.file_history.restore import Watch
from nca.humanize import counted, local_time, natural
from nca.terminal.commands.command import App, Command, Suggestion, beginning_with, takes_no
from nca.terminal.input.line_kind import line_of
from nca.terminal.panels.context import in_effect
from nca.terminal.render.file_changes import (
    changed_line,
    diffs,
    excerpt,
    going_lines,
    left_lines,
    open_lines,
    path,
    paths,
    summary,
    totals,
    unset_lines,
)
from nca.terminal.render.layout import fitting_table
from nca.terminal.render.sanitize import one_line

if TYPE_CHECKING:
    from nca.file_history.history import RewindOutcome
    from nca.file_history.plan import PlannedChange, RewindPlan
    from nca.tools.shell.jobs import Job


DIFF_LINES = 120
"""Shown before the question; a key shows the rest."""
MOST_LINES = 20_000
_LISTED = 20
_ABOUT_CHARS = 50
_LINE_CHARS = 200
HEAD_STAYS = "Git's changes stay: HEAD was at {} before that message and is at {} now."
UNRECORDED = "Not recorded, so not taken back: changes that commands made {}."
FORWARD = "/redo goes forward again."
FILES_FORWARD = "Your next message tells the model; until then /redo goes forward again."
_ASKED = "asked about"
_NOT_FILES = "Databases, the network and installed packages do not come back."


class RewindCommand(Command):
    name = "rewind"

    async def run(self, app: App, argument: str) -> None:
        number, _, rest = argument.partition(" ")
        what = rest.strip().lower()
        if what not in ("", *get_args(What)):
            raise takes_no(self.name, what, "Valid: both, chat, files.")
        if not argument:
            point = await _chosen(app)
        elif (seq := natural(number)) is not None:
            point = app.conversation.rewinds.point(seq)
        else:
            raise UsageError(
                f"{one_line(number, 40)} is not a message's number.", advice="/rewind without a number lists yours."
            )
        if point is not None:
            await go_back(app, point, what)

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        number, blank, rest = argument.partition(" ")
        if blank:
            return beginning_with(rest, (("both", "chat and files"), ("chat", "chat only"), ("files", "files only")))
        points = [point for point in islice(app.conversation.rewinds.points(), _LISTED) if not point.rewind]
        return beginning_with(number, ((str(one.seq), one_line(one.text, _ABOUT_CHARS)) for one in points))


async def go_back(app: App, point: Point, what: str = "") -> None:
    """Go back, once the person has seen what would change and has chosen. The prompt gets the message's text back."""
    rewinds = app.conversation.rewinds
    plan = await rewinds.plan(point)
    is_shown = not what
    if not what:
        what = await _what(app, point, plan) if summary(plan) else "chat"
        if not what:
            app.output.notice(NOTHING)
            return
    choice = await agreed(app, plan, is_shown=is_shown) if what != "chat" else EVERYTHING_CERTAIN
    if choice is None:
        return
    chosen = choice
    outcome = await restoring(app, lambda watch: rewinds.go_back(point, plan, cast(What, what), chosen, watch))
    stay = outcome.left or outcome.blocked or outcome.not_stored
    files = "Not all files are as they were" if stay else "The files are as they were"
    said = files if what == "files" else "Went back to"
    then = FILES_FORWARD if what == "files" else FORWARD
    say_done(app, f"{said} {_where(point)}", outcome, plan if what != "chat" else None, then)
    if what != "chat":
        await _say_head(app, point)
    if what != "files" and not point.rewind:
        app.put_in_prompt(line_of(point.said))


def say_done(app: App, said: str, outcome: RewindOutcome, plan: RewindPlan | None, then: str = FORWARD) -> None:
    """Report a rewind: its effect, the files it left, and the unrecorded changes. `plan`: None without files."""
    done = summary(outcome, names=True)
    app.output.notice(f"{said}.{f' Files: {done}.' if done else ''} {then}")
    unrecorded = plan.unrecorded if plan is not None else ()
    for line in (*left_lines(outcome), *unset_lines(outcome), *(UNRECORDED.format(one) for one in unrecorded)):
        app.output.warn(line)
    if plan is not None and plan.unknown:
        count = len(plan.unknown)
        stays, them = ("stays", "it") if count == 1 else ("stay", "them")
        names = one_line(", ".join(plan.unknown), _LINE_CHARS)
        app.output.warn(f"{counted(count, 'file')} {stays} as now: there is no record of {them} here ({names}).")
    if waiting := ", ".join(app.conversation.user_input.waiting):
        app.output.notice(f"Attached to your next message (! alone detaches it): {one_line(waiting, _LINE_CHARS)}")
    for job in _running(app):
        if job not in app.conversation.jobs.known:
            app.output.warn(f"Still runs: job {job.number}, {one_line(job.name, 60)}. /jobs stop {job.number} ends it.")


async def _say_head(app: App, point: Point) -> None:
    """A commit goes back with nothing; the end of a branch has no time from which git could have moved."""
    if not point.rewind and (moved := await asyncio.to_thread(head_moved, app.conversation.directory, point.at)):
        app.output.warn(HEAD_STAYS.format(*moved))


def _where(point: Point) -> str:
    where = ("the end of the branch with" if point.is_left else "after") if point.rewind else "before"
    return f"{where} {excerpt(point)}"


async def _chosen(app: App) -> Point | None:
    if not app.can_walk:
        _list(app)
        return None
    # Imported here: only a screen needs prompt_toolkit.
    from nca.terminal.panels.pickers import RewindPicker

    picker = RewindPicker(app.conversation.rewinds, app.conversation.loaded.settings.terminal.theme)
    if picker.is_empty:
        raise UsageError("You have not sent a message yet.")
    return await app.reader.walk(picker)


def _list(app: App) -> None:
    """The newest messages of the person, for output where nobody can pick one with the keys."""
    points = [point for point in islice(app.conversation.rewinds.points(), _LISTED) if not point.rewind]
    if not points:
        raise UsageError("You have not sent a message yet.")
    columns = {
        "number": [Text(str(point.seq)) for point in points],
        "when": [Text(local_time(point.at)) for point in points],
        "tokens": [Text(f"{point.tokens:,}") for point in points],
        "what": [Text(f"{'(other branch) ' if point.is_left else ''}{one_line(point.text, 200)}") for point in points],
    }
    app.output.show(fitting_table(columns, numbers=("number", "tokens"), gives_way="what"))
    app.output.notice("/rewind N goes back to before that message.")


async def _what(app: App, point: Point, plan: RewindPlan) -> str:
    """Show what would change, and ask. "" if the person does not go back."""
    if not app.reader.can_choose:
        raise UsageError(
            f"Files have changed since: {summary(plan, reasons=True)}.",
            advice=f"/rewind {point.seq} both, chat or files says what goes back.",
        )
    most = DIFF_LINES
    while True:
        lines, are_all = diffs(sorted((*plan.restored, *plan.deleted), key=path), most, "(d shows all of it)")
        if lines:
            app.output.show(Group(*lines))
        for line in open_lines(plan):
            app.output.warn(line)
        rest = () if are_all else (("d", "whole diff"),)
        question = f"Go back to {_where(point)}? Files: {summary(plan, left=_ASKED)}. {_NOT_FILES}"
        answer = await app.reader.choose(
            question, (("b", "chat and files"), ("c", "chat only"), ("f", "files only"), *rest)
        )
        if answer != "d":
            return {"b": "both", "c": "chat", "f": "files"}.get(answer, "")
        most = MOST_LINES


class UndoCommand(Command):
    name = "undo"

    async def run(self, app: App, argument: str) -> None:
        rewinds = app.conversation.rewinds
        turn = rewinds.last_turn()
        if turn is None:
            is_new = next(iter(rewinds.points()), None) is None
            advice = "" if is_new else "/redo goes forward, /rewind to another branch."
            raise UsageError("There is nothing to take back.", advice=advice)
        history = app.conversation.context.history
        compactions = len(in_effect(history()))
        plan = await rewinds.plan(turn)
        choice = await agreed(app, plan)
        if choice is None:
            return
        outcome = await restoring(app, lambda watch: rewinds.go_back(turn, plan, "both", choice, watch))
        taken = [f"{excerpt(turn)} {'and its answer' if turn.last > turn.seq else '(no answer)'}"]
        if gone := compactions - len(in_effect(history())):
            taken.append(f"{counted(gone, 'compaction')} since")
        say_done(app, f"Took back {', '.join(taken)}", outcome, plan)
        await _say_head(app, turn)
        app.put_in_prompt(line_of(turn.said))


class RedoCommand(Command):
    name = "redo"

    async def run(self, app: App, argument: str) -> None:
        rewinds = app.conversation.rewinds
        plan = await rewinds.plan_forward()
        if plan is None:
            is_offered = app.can_walk and rewinds.has_branch  # a line has no number to name a branch by
            where = "/rewind offers what you left" if is_offered else "/rewind goes to any message"
            raise UsageError("There is nothing to go forward to.", advice=f"{where}; /context redo is for compactions.")
        choice = await agreed(app, plan)
        if choice is None:
            return
        outcome = await restoring(app, lambda watch: rewinds.go_forward(plan, choice, watch))
        if outcome is not None:
            say_done(app, "Went forward again", outcome, plan, "/undo takes back the last turn.")


CHANGES_LINES = 200
"""Shown without an argument; then the files follow by name."""


class ChangesCommand(Command):
    name = "changes"
    shows = "always"

    async def run(self, app: App, argument: str) -> None:
        changes = await asyncio.to_thread(app.conversation.files.changed_since, 0)
        if not changes:
            recorded = await asyncio.to_thread(app.conversation.files.recorded_paths)
            app.output.show(unchanged(has_records=bool(recorded)))
            return
        wanted = [one for one in changes if argument in ("", "all", path(one))]
        if not wanted:
            raise UsageError(f"This session did not change {one_line(argument, 200)}.", advice="/changes lists them.")
        lines, are_all = diffs(wanted, MOST_LINES if argument else CHANGES_LINES, "(/changes all shows all)")
        app.output.show(Group(*lines))
        if not are_all:
            app.output.show("\n".join(changed_line(one) for one in wanted))
        app.output.notice(f"{totals(wanted)}.")

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        changes = app.conversation.files.changed_since(0)
        return beginning_with(argument, (("all", "every diff in full"), *((path(one), "") for one in changes)))


NOTHING = "Nothing was changed."
SHOWN_AFTER_SECONDS, EACH_SECONDS = 1.0, 0.25
_MERGE_LINES = 200
T = TypeVar("T")


async def agreed(app: App, plan: RewindPlan, *, is_shown: bool = False) -> Choice | None:
    """Ask about files that nca cannot judge, below the names of all files. None if the person does not go back.

    is_shown  the person has seen the files
    """
    asks = plan.left or any(one.is_unnamed for one in plan.deleted) or (plan.touches_files and _running(app))
    for line in going_lines(plan) if asks and not is_shown and app.reader.can_choose else ():
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
            f"{counted(len(unnamed), 'file')} appeared while a command ran that does not mention"
            f" {'it' if len(unnamed) == 1 else 'them'}, so nca cannot tell who made them: {paths(unnamed)}."
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
    """Do it, and show its progress if it takes longer than a moment."""
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


def _running(app: App) -> list[Job]:
    return [job for job in app.conversation.jobs.all if job.is_running]


async def _jobs_ended(app: App, plan: RewindPlan) -> bool:
    """Whether no job can change the files meanwhile; the person may end those that run."""
    running = _running(app)
    if not (plan.touches_files and running and app.reader.can_choose):
        return True  # without a person, going back refuses and says so
    names = ", ".join(f"job {job.number} ({one_line(job.name, 60)})" for job in running)
    question = f"{names} still {'runs' if len(running) == 1 else 'run'} and may change files."
    if await app.reader.choose(question, (("s", "stop and go back"), ("w", "wait"))) != "s":
        return False
    await asyncio.gather(*(job.stop() for job in running))
    return True


async def _of_others(app: App, left: Sequence[PlannedChange]) -> Choice | None:
    """Ask about files that somebody changed since."""
    merges = [found for one in left if (found := await app.conversation.rewinds.merged(one)) is not None]
    it = "it" if len(left) == 1 else "them"
    linked = [one for one in left if one.reason == LINKED]
    changed = [one for one in left if one.reason != LINKED]
    question = f"You or another program changed {counted(len(changed), 'file')} in the meantime: {paths(changed)}."
    parted = f"Hard links would be separated from {counted(len(linked), 'file')}: {paths(linked)}."
    question = " ".join([question] * bool(changed) + [parted] * bool(linked))
    without = "; /redo brings those changes back" if changed else ""
    keys = [("l", f"leave {it}"), ("o", f"take {it} back anyway{without}")]
    if merges:
        keys.append(("m", "merge: keep those changes, take back the session's"))
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
