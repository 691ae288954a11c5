"""Recognize commands that only read files of the project, which run without asking.

All of it must be provable: the command is plain words (`command_words`), its program is listed below, so is every
option, and no word leads outside the project. Such commands may be joined by `|`, `&&`, `||` and `;`. What runs is
what was checked, without a shell, or with the words quoted for one. For everything else the person is asked.

The check need not parse options as the program does: every word that begins with a dash must be listed, wherever it is,
and every other word is treated as a path.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nca.tools.files.workspace import Workspace
from nca.tools.programs import find_program, find_shell
from nca.tools.shell.command_words import command_list, word_set
from nca.tools.shell.read_only_git import git_words
from nca.tools.tool import ToolError


@dataclass(frozen=True, slots=True)
class Options:
    """The options with which a program does nothing but what is known of it.

    flags       single letters, which may be combined
    values      single letters that take a value
    words       whole options (`--all`, find's `-name`); a trailing `=` marks those with a value
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
_TOUCH_NOTHING = frozenset({"echo", "true"})
"""Whatever their words are. Models write them between and behind the commands of a list."""
_COLOR = "--color=never --colour=never"
_READERS = {
    "cat": Options("nbsAetTvE", words=word_set("--number --show-all")),
    "head": Options("qv", "nc", word_set("--lines= --bytes= --quiet"), is_counted=True),
    "tail": Options("qv", "nc", word_set("--lines= --bytes= --quiet"), is_counted=True),
    "nl": Options("", "bwsv"),
    "wc": Options("lwcmL", words=word_set("--lines --words --bytes --chars")),
    "pwd": Options("PL"),
    "ls": Options("aAlhrtSR1dFinspgGoUXk", words=word_set(f"--all --almost-all --recursive --full-time {_COLOR}")),
    "tree": Options("adfspuhDFirtn", "LIP", word_set("--dirsfirst --noreport --prune --du")),
    "stat": Options("t", "c", word_set("--format=")),
    "file": Options("bi", words=word_set("--brief --mime --mime-type --mime-encoding")),
    "du": Options("shackmbx", "d", word_set("--max-depth= --summarize --human-readable --apparent-size")),
    "cmp": Options("bls", only_files=True),
    "diff": Options(
        "uqyswbBNicadt", "U", word_set(f"--unified= --brief --side-by-side --no-dereference {_COLOR}"), False, True
    ),
    "grep": Options(
        "rnivwxclLoqshHEFPGaI",
        "ABCme",
        word_set(f"--include= --exclude= --exclude-dir= --line-number --ignore-case --fixed-strings --count {_COLOR}"),
        is_counted=True,
    ),
    "rg": Options(
        "niSswxlcovFPUHNu",
        "ABCmgetTM",
        word_set(
            "--files --hidden --no-ignore --line-number --ignore-case --smart-case --fixed-strings --count --glob="
            " --type= --files-with-matches --no-heading --heading --type-list --color=never --max-depth= --stats"
        ),
    ),
    "find": Options(
        words=word_set(
            "-name -iname -path -ipath -wholename -regex -iregex -type -maxdepth -mindepth -not -a -o -and -or -size"
            " -mtime -mmin -empty -print -print0 -ls -prune -perm -depth -daystart -mount -xdev -readable -executable"
        )
    ),
}


def read_only_argv(
    command: str, *, workspace: Workspace, directory: Path, environment: Mapping[str, str]
) -> tuple[str, ...] | None:
    """The program and arguments to run if the command only reads inside the project; None if it may do more.

    A list needs a shell. It gets exactly the words that were checked, quoted.
    """
    path = environment.get("PATH", "")
    stages = command_list(command) or ()
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
    if words[0] in _TOUCH_NOTHING:
        rest: tuple[str, ...] | None = words[1:]
    elif not stays_inside(words[1:], workspace, directory):
        rest = None
    elif words[0] == "git":
        rest = git_words(words[1:], root=workspace.root, directory=directory)
    elif words[0] == "sed":
        rest = words[1:] if _prints_lines(words[1:]) else None
    else:
        reader = _READERS.get(words[0])
        rest = words[1:] if reader is not None and _only_reads(reader, words[1:], directory) else None
    program = find_program(words[0], path, outside=workspace.root) if rest is not None else None
    return (str(program), *rest) if rest is not None and program is not None else None


def _only_reads(reader: Options, words: tuple[str, ...], directory: Path) -> bool:
    for word in words:
        if word.startswith("-"):
            if not reader.takes(word):
                return False
        elif reader.only_files and not (directory / word).is_file():
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
