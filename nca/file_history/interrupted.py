"""End a rewind in the record: finished, taken back, or cut off by a crash and finished now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from nca.file_history.disk import remove_temporaries
from nca.file_history.restore import NotRestored, Watch, restore
from nca.file_history.scope import Scope
from nca.sessions.file_states import Change

NAMED = 10
"""Files that a message names."""
NOT_FINISHED = "A rewind of files was cut off and cannot be finished, so it was taken back"


def finish(scope: Scope, begun: Sequence[Change], left: Mapping[str, str]) -> None:
    """All but what was left is restored."""
    done = [one for one in begun if one.path not in left]
    scope.record.finish(done, dropped=[one for one in begun if one.path in left])


def settle(scope: Scope, rewind: int, begun: Sequence[Change], stuck: Mapping[str, str]) -> None:
    """Nothing is restored: the record keeps what could not go back, and forgets the rest."""
    if not stuck:
        scope.record.drop_rewind(rewind)
        return
    scope.record.leave_chat(rewind)
    finish(scope, begun, {one.path: "" for one in begun if one.path not in stuck})


def told(failed: NotRestored) -> tuple[str, str]:
    """What a person is told of it, and the advice."""
    if not failed.path:
        said = "Stopped: the files are what they were"
    else:
        said = f"{failed.path} could not be restored: {failed.reason}"
    if not failed.stuck:
        return f"{said}.", "Nothing was changed, neither files nor chat."
    rows = [f"{path} ({reason})" for path, reason in sorted(failed.stuck.items())]
    rest = f" and {len(rows) - NAMED} more" if len(rows) > NAMED else ""
    advice = f"These could not go back and have their other state: {', '.join(rows[:NAMED])}{rest}."
    return f"{said}.", f"{advice} All other files and the chat are what they were; /changes shows the rest."


def finish_interrupted(scope: Scope, unfinished: Sequence[Change], watch: Watch) -> list[str]:
    """Finish the rewinds that a crash cut off, or take them back. Returns what a person should know."""
    remove_temporaries(scope.root, [one.path for one in unfinished])
    notices = []
    rewinds = [one for one in unfinished if one.rewind is not None]
    for rewind, group in groupby(rewinds, key=lambda one: one.rewind or 0):
        begun = list(group)
        try:
            left = restore(scope.root, begun, scope.record.content, scope.limits().max_file_bytes, watch)
        except NotRestored as failed:
            settle(scope, rewind, begun, failed.stuck)
            notices.append(" ".join((NOT_FINISHED + ".", *told(failed))))
        else:
            finish(scope, begun, left)
    return notices
