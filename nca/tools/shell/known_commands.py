"""Known commands (commands.toml): which only read.

Commands that only read files of the project, git's among them, run without asking.

All of it must be provable: the command is plain words (`command_words`), the table has its program and every option,
and no word leads outside the project. A pattern counts as the names that it stands for (`patterns`). Such commands may
be joined by `|`, `&&`, `||` and `;`. What runs is what was checked, without a shell, or with the words quoted for one.
For everything else the person is asked.

The check need not parse options as the program does: every word that begins with a dash must be listed, wherever it is,
and every other word is treated as a path.

A repository's configuration can name programs that even `git status` runs: a file monitor, filters, diff drivers, a
signature checker. So its configuration is read first; with any key that is not known to be harmless, the person is
asked. The person's own configuration is trusted. Options are added so that a repository cannot make git do more.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from nca.tools.files.workspace import Workspace
from nca.tools.programs import find_program, find_shell, word_set
from nca.tools.shell.command_words import commands_here, table
from nca.tools.shell.computed import without_patterns
from nca.tools.tool import ToolError


@dataclass(frozen=True, slots=True)
class Options:
    """The options with which a program does nothing but what is known of it.

    flags       single letters, which may be combined
    values      single letters that take a value
    words       whole options; a trailing `=` marks those with a value
    is_counted  `-5` is a number of lines
    only_files  refuse directories, because the program follows links in them
    """

    flags: str = ""
    values: str = ""
    words: frozenset[str] = field(default_factory=frozenset)
    is_counted: bool = False
    only_files: bool = False

    def takes(self, word: str) -> bool:
        """Whether a word that begins with a dash is a listed option."""
        name, equals, _ = word.partition("=")
        if word in self.words or name + equals in self.words:
            return True
        if word.startswith("--"):
            return False
        if self.is_counted and word[1:].isdigit():
            return True
        for letter in word[1:]:
            if letter in self.values:
                return True  # the rest is its value, which is checked like any word
            if letter not in self.flags:
                return False
        return len(word) > 1


_LONGEST_WORD_CHARS = 500
_SED_LINES = re.compile(r"\d{1,9}(?:,(?:\d{1,9}|\$))?p")
"""A script of sed that prints lines by their numbers. Of sed's other scripts, some write files and run programs."""
TOUCH_NOTHING = frozenset({"echo", "true"})
"""Allowed with any words. Models write them between and after the commands of a list."""


def options_of(row: Mapping[str, Any]) -> Options:
    words = word_set(row.get("words", ""))
    is_counted, only_files = row.get("is_counted", False), row.get("only_files", False)
    return Options(row.get("flags", ""), row.get("values", ""), words, is_counted, only_files)


@cache
def _readers() -> dict[str, Options]:
    """Programs that only read, with their options."""
    return {name: options_of(row) for name, row in table()["readers"].items()}


@cache
def _git_reads() -> dict[str, frozenset[str]]:
    """Subcommands of git that only read, with their options."""
    return {name: word_set(words) for names, words in table()["git"]["reads"].items() for name in names.split()}


def read_only_argv(
    command: str, *, workspace: Workspace, directory: Path, environment: Mapping[str, str]
) -> tuple[str, ...] | None:
    """The program and arguments to run if the command only reads inside the project; None if it may do more.

    A list needs a shell. It gets exactly the words that were checked, quoted.
    """
    path = environment.get("PATH", "")
    named = without_patterns(command, workspace=workspace, directory=directory)
    stages = commands_here(named, directory) or ()
    checked: list[tuple[str, ...]] = []
    for stage in stages:
        words = _checked(stage.words, workspace, directory, path)
        if words is None:
            return None
        checked.append(words)
    if len(stages) == 1 and not stages[0].errors:
        return checked[0]
    shell = find_shell(path, outside=workspace.root) if stages else None
    if shell is None:
        return None
    quoted = (
        f"{shlex.join(words)}{stage.errors} {stage.operator}" for words, stage in zip(checked, stages, strict=True)
    )
    return str(shell), "-c", " ".join(quoted).rstrip()


def _checked(words: tuple[str, ...], workspace: Workspace, directory: Path, path: str) -> tuple[str, ...] | None:
    """The words of a simple command, with the program's path, if it only reads."""
    if max(map(len, words)) > _LONGEST_WORD_CHARS:
        return None
    if words[0] in TOUCH_NOTHING:
        rest: tuple[str, ...] | None = words[1:]
    elif not stays_inside(words[1:], workspace, directory):
        rest = None
    elif words[0] == "git":
        rest = git_words(words[1:], root=workspace.root, directory=directory)
    elif words[0] == "sed":
        rest = words[1:] if _prints_lines(words[1:]) else None
    else:
        reader = _readers().get(words[0])
        rest = words[1:] if reader is not None and _only_reads(reader, words[1:], directory) else None
    program = find_program(words[0], path, outside=workspace.root) if rest is not None else None
    return (str(program), *rest) if rest is not None and program is not None else None


def _only_reads(reader: Options, words: tuple[str, ...], directory: Path) -> bool:
    for word in words:
        if word.startswith("-"):
            if not reader.takes(word):
                return False
        elif reader.only_files and not os.path.isfile(directory / word):
            return False
    return True


def _prints_lines(words: tuple[str, ...]) -> bool:
    """Whether these are `-n`, a script for sed that only prints lines, and files."""
    is_script = words[:1] == ("-n",) and bool(words[1:]) and _SED_LINES.fullmatch(words[1]) is not None
    return is_script and not any(word.startswith("-") for word in words[2:])


def stays_inside(words: tuple[str, ...], workspace: Workspace, directory: Path) -> bool:
    """Whether no word, and no value inside one, leads outside the project as a path."""
    try:
        workspace.resolve(str(directory))
        for word in words:
            for path in _as_paths(word):
                workspace.resolve(str(directory / path))
    except ToolError:
        return False
    return True


def _as_paths(word: str) -> list[str]:
    """Everything in a word that could be a path: the word, what follows `=`, what is attached to an option letter."""
    begins = (
        position for position in range(len(word)) if word[0] == "-" or position == 0 or word[position - 1] in "=:,"
    )
    return [word[position:] for position in begins]


_PROGRAMS = (
    "core.hooksPath core.pager core.editor core.askPass core.sshCommand core.alternateRefsCommand credential.helper"
    " diff.external gpg.program gpg.openpgp.program gpg.x509.program gpg.ssh.program gpg.ssh.defaultKeyCommand"
)
"""Keys that name what git may start, also in the person's own configuration. Reading needs none of it."""
_SETTINGS = (
    *("core.fsmonitor=false", "log.showSignature=false", "safe.bareRepository=explicit", "protocol.allow=never"),
    "diff.submodule=short",  # or git runs another one in each submodule, by that one's configuration
    *(f"{key}={os.devnull}" for key in _PROGRAMS.split()),
)
_GLOBAL = ("--no-pager", "--no-optional-locks", *(word for setting in _SETTINGS for word in ("-c", setting)))
_WITHOUT_OPERANDS = frozenset({"branch", "tag", "remote"})
"""With an operand these create something."""
_ADDED = dict.fromkeys(("log", "show", "diff"), ("--no-ext-diff", "--no-textconv")) | {"blame": ("--no-textconv",)}
_LOOKS_INTO_MODULES = frozenset({"status", "diff"})
_PLAIN_FORMAT = re.compile(
    r"(?:[^%]|%[-+ ]?(?:[HhTtPpdDSsfbBNnm%]|[ac][nNeElLdDrtisIh]|g[dDsnNeE]|x[0-9a-fA-F]{2}"
    r"|C(?:red|green|blue|reset|\([a-z0-9#, ]*\))|[<>]{1,2}\|?\([a-z0-9, ]+\)))*"
)
"""A format without placeholders that start a program: %G?, %+GK and others check a signature, %(describe) runs git."""
_LARGEST_CONFIG_BYTES = 262_144
_MOST_ENTRIES = 20_000
"""git packs loose objects from 6,700 on (gc.auto). Looking at this many takes 30 ms."""
_NOT_READ = frozenset({"hooks", "lfs", "modules", "annex"})
"""Folders of a repository that reading does not look into."""


def git_words(words: Sequence[str], *, root: Path, directory: Path) -> tuple[str, ...] | None:
    """The arguments with which git only reads; None if it may do more."""
    words = tuple(words[1:] if words[:1] == ("--no-pager",) else words)
    if not words or words[0] not in _git_reads() or not _is_harmless_repository(root, directory, words[0]):
        return None
    name, rest = words[0], words[1:]
    if name == "stash" and rest != ("list",):
        return None
    for word in rest:
        if not word.startswith("--date=") and not _PLAIN_FORMAT.fullmatch(word):
            return None
        if word.startswith("-"):
            if not takes_of_git(name, word):
                return None
        elif name in _WITHOUT_OPERANDS:
            return None
    modules = ("--ignore-submodules=all",) if name in _LOOKS_INTO_MODULES else ()
    return (*_GLOBAL, name, *_ADDED.get(name, ()), *modules, *rest)


def takes_of_git(subcommand: str, word: str) -> bool:
    """Whether an option is listed. Abbreviated long options, which git accepts, are not."""
    if word == "--":
        return True
    options = _git_reads()[subcommand]
    name, equals, _ = word.partition("=")
    if word.startswith("--"):
        return name + equals in options
    is_number = word[1:].isdigit() or (word[1:2] in "nULMC" and word[2:].isdigit())
    attached = word[:2] in ("-L", "-S", "-G") and word[:2] in options
    return word in options or attached or (is_number and (word[1:].isdigit() or word[:2] in options | {"-U"}))


def _is_harmless_repository(root: Path, directory: Path, command: str) -> bool:
    """Whether the repository is wholly inside the project, and its configuration names no program."""
    for place in (directory, *directory.parents):
        if not place.is_relative_to(root):
            return False
        repository = place / ".git"
        if os.path.lexists(repository):
            has_modules = command in _LOOKS_INTO_MODULES and os.path.exists(place / ".gitmodules")
            return not has_modules and _is_plain(repository)
        if os.path.exists(place / "HEAD") and os.path.exists(place / "objects"):
            return False  # git takes this for a repository without a work tree
    return False


def _is_plain(repository: Path) -> bool:
    """Whether it is a folder without links that uses no objects or settings from elsewhere."""
    if os.path.islink(repository) or not os.path.isdir(repository):
        return False
    try:
        if not _holds_only_files(repository):
            return False
        elsewhere = ("commondir", "config.worktree", "objects/info/alternates", "info/grafts")
        if any(os.path.exists(repository / name) for name in elsewhere):
            return False
        config = repository / "config"
        return config.stat().st_size <= _LARGEST_CONFIG_BYTES and only_harmless_keys(config.read_bytes())
    except OSError:
        return False


def _holds_only_files(repository: Path) -> bool:
    """Whether there are only folders and ordinary files in it, as far as git reads; a link could show another one."""
    count, folders = 0, [str(repository)]
    while folders:
        folder = folders.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                count += 1
                is_folder = entry.is_dir(follow_symlinks=False)
                if count > _MOST_ENTRIES or not (is_folder or entry.is_file(follow_symlinks=False)):
                    return False
                if is_folder and not (folder == str(repository) and entry.name in _NOT_READ):
                    folders.append(entry.path)
    return True


def only_harmless_keys(config: bytes) -> bool:
    """Whether every key of a git configuration is known to run no program and read no other file."""
    text = config.replace(b"\r\n", b"\n")
    if b"\\" in text or any(byte < 0x20 and byte not in b"\t\n" for byte in text):
        return False
    keys, section = table()["git"]["harmless_keys"], ""
    for raw in text.decode("utf-8", "replace").split("\n"):
        line = raw.strip(" \t")
        if not line or line[0] in "#;":
            continue
        if line.startswith("["):
            section = _section(line)
            if section not in keys:
                return False
        elif line.partition("=")[0].strip(" \t").lower() not in keys.get(section, "").split():
            return False
    return True


def _section(line: str) -> str:
    """The name in `[name]` or `[name "part"]`; "" for any other line."""
    if not line.endswith("]"):
        return ""
    name, blank, part = line[1:-1].partition(" ")
    is_quoted = len(part) >= 2 and part[0] == part[-1] == '"' and '"' not in part[1:-1]
    return name.lower() if name.isalnum() and (not blank or is_quoted) else ""
