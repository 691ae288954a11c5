"""Which commits a command made, as git reports them: by its own line, or by a `git log` behind a quiet commit."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nca.context.record.changes import Change

COMMIT = "git commit "
"""Begins the line of a commit, which stands between those of the files."""
COMMITS = 2
"""As many commits keep their lines."""
SUBJECT_CHARS = 100
_REPORTED = re.compile(r"(?m)^\[[^\]\n]+ ([0-9a-f]{7,40})\] (.*)$")
"""How git reports a commit: `[main 3f2a9bc] Subject`."""
_SUBJECT = re.compile(r"\bgit\s[^|;&\n]*?\bcommit\s[^|;&\n]*?(?:-[a-z]*m|--message[= ])\s*(?:\"([^\"\n]+)|'([^'\n]+))")


def reported_commits(result: str) -> Iterator[Change]:
    """The commits that git reports in a result."""
    for commit, subject in _REPORTED.findall(result):
        yield Change(f"{COMMIT}{commit}", subject)


def logged_commits(command: str, result: str) -> list[Change]:
    """The commits of a command whose subjects a log in its result shows with their hashes, in the command's order."""
    if "commit" not in command:
        return []
    subjects = [" ".join((double or single).split()) for double, single in _SUBJECT.findall(command)]
    hashes = [(_hash_in_log(subject, result), subject) for subject in subjects]
    return [Change(f"{COMMIT}{commit}", subject[:SUBJECT_CHARS]) for commit, subject in hashes if commit]


def quiet_commit(change: Change, result: str) -> Change:
    """A commit that git did not report, by a log of it or by its subject alone."""
    subject, commit = change.new[:SUBJECT_CHARS], _hash_in_log(change.new, result)
    return Change(f"{COMMIT}{commit}", subject) if commit else Change(f"{COMMIT}`{subject}`", "done")


def drop_old_commits(files: dict[str, str]) -> None:
    """Of commits only the newest keep their lines: git has the others."""
    for path in [path for path in files if path.startswith(COMMIT)][:-COMMITS]:
        del files[path]


def known_by(path: str) -> str:
    """What tells that a text speaks of a changed file, or of a commit: its hash or its subject."""
    return path.removeprefix(COMMIT).strip("`") if path.startswith(COMMIT) else path


def _hash_in_log(subject: str, result: str) -> str:
    logged = re.search(rf"(?m)^([0-9a-f]{{7,40}}) (?:\(.*?\) )?{re.escape(subject)}$", result)
    return logged[1] if logged else ""
