"""What a simple command shows without naming it: files in folders that it searches, and files that git shows.

Where it is not sure, a command counts as one that shows them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from nca.tools.programs import word_set
from nca.tools.shell.command_words import command_list, table
from nca.tools.shell.known_commands import takes_of_git

_SEARCHERS = ("grep", "rg")
_WITH_VALUE = ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path")
"""Options between `git` and its subcommand that take the next word."""
_OF_A_FILE = re.compile(r"[\w./@~^-]+:[^:]+")
"""`REVISION:PATH`."""
_MORE_THAN_A_PATH = re.compile(r"^:|[*?\[\\]")
"""A pathspec that is a pattern, or says where it counts from."""


def searched_folders(command: str, directory: Path) -> tuple[str, ...]:
    """The folders that a simple command searches: those that it names, else the directory."""
    found: dict[str, None] = {}
    for stage in command_list(command, takes_status=True) or ():
        program, *words = stage.words[1:] if stage.words[:2] == ("git", "grep") else stage.words
        if program not in _SEARCHERS or (program == "grep" and stage.words[0] != "git" and not _is_recursive(words)):
            continue
        paths = [os.path.join(directory, word) for word in words if not word.startswith("-")]  # noqa: PTH118
        folders = [path for path in paths if os.path.isdir(path)]
        # The first word may be the pattern, and a file that is named is judged by its name.
        if not folders and not any(os.path.isfile(path) for path in paths[1:]):
            folders = [str(directory)]
        found.update(dict.fromkeys(folders))
    return tuple(found)


def _is_recursive(words: Sequence[str]) -> bool:
    return any(
        word.startswith("--rec")
        or word.startswith("--deref")
        or (word[:1] == "-" != word[1:2] and set("rR") & set(word))
        for word in words
    )


def shown_by_git(command: str, directory: Path) -> tuple[str, ...]:
    """The folders of whose files a simple command has git show lines, as they are or as they were."""
    found: dict[str, None] = {}
    for stage in command_list(command, takes_status=True) or ():
        if stage.words[0] != "git":
            continue
        words, folder = _subcommand(stage.words, directory)
        if words and _shows_lines(words, folder):
            found.update(dict.fromkeys(_places(words, folder)))
    return tuple(found)


def _subcommand(words: Sequence[str], directory: Path) -> tuple[Sequence[str], Path]:
    """What follows the options for all of git, and the folder in which it runs."""
    at = 1
    while at < len(words) and words[at].startswith("-"):
        if words[at] == "-C" and at + 1 < len(words):
            directory = directory / words[at + 1]
        at += 2 if words[at] in _WITH_VALUE else 1
    return words[at:], directory


def _shows_lines(words: Sequence[str], directory: Path) -> bool:
    name, rest, shows = words[0], words[1:], table()["git"]["shows"]
    options = [word for word in rest if word.startswith("-")]
    if {name, " ".join(words[:2])} & set(shows["always"]):
        # Such a path begins at the work tree's top.
        is_named = rest and all(map(_OF_A_FILE.fullmatch, rest)) and os.path.lexists(directory / ".git")
        return name != "show" or not is_named
    if name not in ("diff", "log"):
        return False
    names = {word.partition("=")[0] for word in options} | {word[:2] for word in options}
    if names & word_set(shows["with"]) or not all(takes_of_git(name, word) for word in options):
        return True
    return name == "diff" and not names & word_set(shows["diff_without"])


def _places(words: Sequence[str], directory: Path) -> list[str]:
    """The folders among the words if these name places, else the whole work tree. A file is judged by its name."""
    named = [word for word in words[1:] if not word.startswith("-")]
    paths = [os.path.join(directory, word) for word in named]  # noqa: PTH118
    if (
        words[0] in ("diff", "log")
        and any(map(os.path.exists, paths))
        and not any(map(_MORE_THAN_A_PATH.search, named))
    ):
        return [path for path in paths if os.path.isdir(path)]
    top = next((above for above in (directory, *directory.parents) if os.path.lexists(above / ".git")), directory)
    return [str(top)]
