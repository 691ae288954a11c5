"""Merge what somebody made of a file since with what it was before, as git does."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

from nca.file_history.changes import Read
from nca.file_history.disk import state_of
from nca.file_history.plan import PlannedChange

_SECONDS = 10.0
_MOST_CONFLICTS = 127
"""`git merge-file` exits with the number of conflicts, up to this; above it has failed."""
NOW, SESSION, EARLIER = "now", "as the session left it", "earlier"
"""The labels at the marks of a conflict."""


def merged(one: PlannedChange, read: Read, most_bytes: int) -> tuple[PlannedChange, int] | None:
    """The change that keeps what somebody changed since and takes back what the session did; and its conflicts.

    None where that cannot be told: no text, no git, or too large. Raises StoreError.
    """
    if {one.before.kind, one.base.kind, one.after.kind} != {"file"}:
        return None
    contents = [one.read(one.before), read(one.base), read(one.after)]
    git = shutil.which("git")
    if git is None or any(b"\0" in content for content in contents):
        return None
    with tempfile.TemporaryDirectory(prefix="nca-merge-") as folder:
        paths = [Path(folder) / name for name in ("now", "base", "then")]
        for path, content in zip(paths, contents, strict=True):
            path.write_bytes(content)
        labels = [part for label in (NOW, SESSION, EARLIER) for part in ("-L", label)]
        try:
            done = subprocess.run(  # noqa: S603  no part of it is anybody's text
                [git, "merge-file", "-p", "-q", *labels, *paths],
                cwd=folder,
                # The person's repository and settings have no part in it.
                env={"PATH": os.environ.get("PATH", ""), "GIT_CONFIG_NOSYSTEM": "1", "HOME": folder},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
    text, conflicts = done.stdout, done.returncode
    if not 0 <= conflicts <= _MOST_CONFLICTS or len(text) > most_bytes:
        return None
    after = state_of(text, one.before.mode, most_bytes)
    return replace(
        one,
        after=after,
        reason="",
        is_merged=True,
        read=lambda state: text if state.is_same(after) else one.read(state),
    ), conflicts
