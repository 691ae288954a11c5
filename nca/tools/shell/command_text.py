"""What is unusual about a command line, and the names by which permission rules can match it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from nca.tools.shell.command_words import command_list, versionless
from nca.visible import WRITTEN_OUT, written_out

LONG_CHARS = 500
_MOST_WORDS_OF_A_RULE = 3
"""A rule that denies, up to so many words, is looked for anywhere in a command."""
_NO_NAME = re.compile(r"[^A-Za-z0-9_./+@:~-]+")
_BORDER = re.compile(r"[;&|\n(){}<>`$]+")
_MOST_FOLDERS = 20
_SEARCHERS = ("grep", "rg")
_QUOTING = re.compile(r"[\"'\\]")
_MINOR = re.compile(r"(?<=\d)(?:\.\d+)+$")


def remarks(command: str) -> Iterator[str]:
    """What a person may overlook in the command, one sentence each."""
    lines = command.strip("\n").count("\n") + 1
    if lines > 1:
        yield f"The command has {lines:,} lines."
    if len(command) > LONG_CHARS:
        yield f"The command is long: {len(command):,} characters."
    shown_as = written_out(command)
    if shown_as != command:
        yield WRITTEN_OUT
    if strange := sorted({char for char in command if char in shown_as and not char.isascii()}):
        shown = ", ".join(f"{char} (U+{ord(char):04X})" for char in strange[:5])
        yield f"Not all of the command is ASCII: {shown}{', …' if len(strange) > 5 else ''}."


def mentioned_names(command: str, directory: Path) -> tuple[str, ...]:
    """What a deny rule may match: everything in the command that may be a program or a path.

    Errs on the side of too much: every word, with quotes and backslashes removed, with and without its folder and its
    version (`python3.11`, `python3`, `python`), and two and three words in a row. It does not see what a shell would
    compute first.
    """
    found: dict[str, None] = {}
    for text in (_QUOTING.sub("", command), _QUOTING.sub(" ", command)):
        words = [word for word in _NO_NAME.split(text) if word]
        bases = [word.rpartition("/")[2] for word in words]
        majors = [_MINOR.sub("", base) for base in bases]
        for row in (words, bases, majors, [versionless(base) for base in bases]):
            for count in range(1, _MOST_WORDS_OF_A_RULE + 1):
                found.update((" ".join(row[at : at + count]), None) for at in range(len(row) - count + 1))
        folders = _folders(words, directory)
        # Of `HEAD:a` and `--file=a` the end is a path too.
        for name in {end for word in words for end in (word, word.rpartition(":")[2])} - {""}:
            for folder in folders:
                path = os.path.join(folder, os.path.expanduser(name))  # noqa: PTH111, PTH118  neither raises
                found.update({os.path.normpath(path): None, os.path.realpath(path): None})
    found.pop("", None)
    return tuple(found)


def mentioned_commands(command: str) -> tuple[str, ...]:
    """What may be the simple commands in a command, with their words one blank apart: whole, and without folders.

    Everything that a shell would take apart is a border. Quotes are removed, since a program may run what is in them.
    """
    found: dict[str, None] = {}
    for text in (_QUOTING.sub("", command), _QUOTING.sub(" ", command)):
        for piece in _BORDER.split(text):
            words = piece.split()
            found[" ".join(words)] = None
            found[" ".join(word.rstrip("/").rpartition("/")[2] for word in words)] = None
    found.pop("", None)
    return tuple(found)


def searched_folders(command: str, directory: Path) -> tuple[str, ...]:
    """The folders in whose files a simple command searches: those that it names, else the directory."""
    found: dict[str, None] = {}
    for stage in command_list(command) or ():
        program, *words = stage.words[1:] if stage.words[:2] == ("git", "grep") else stage.words
        if program not in _SEARCHERS or (program == "grep" and stage.words[0] != "git" and not _is_recursive(words)):
            continue
        paths = [os.path.join(directory, word) for word in words if not word.startswith("-")]  # noqa: PTH118
        folders = [path for path in paths if os.path.isdir(path)]  # noqa: PTH112
        # The first word may be the pattern, and a file that is named is judged by its name.
        if not folders and not any(os.path.isfile(path) for path in paths[1:]):  # noqa: PTH113
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


def _folders(words: Sequence[str], directory: Path) -> list[str]:
    """Where the words may be paths: the directory, and each folder among them that a command may go to."""
    folders = [str(directory)]
    for word in words:
        inner = [os.path.join(folder, word) for folder in folders]  # noqa: PTH118
        known = {os.path.normpath(one) for one in folders}
        folders += [one for one in inner if os.path.normpath(one) not in known and os.path.isdir(one)]  # noqa: PTH112
        if len(folders) >= _MOST_FOLDERS:
            break
    return folders[:_MOST_FOLDERS]
