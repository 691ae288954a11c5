"""Which commands only read files of the project, and so run without asking.

Provable or nothing: the command is plain words (`command_words`), its program one of those below, each option one
that is listed for it, and no word leads outside of the project. It is then run without a shell, so that what was judged
is what runs. Everything else is asked about.

How options are read here need not agree with the program: whatever begins with a dash must be listed wherever it
stands, and whatever does not is taken for a path, a pattern and a number too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nca.tools.files.workspace import Workspace
from nca.tools.programs import find_program
from nca.tools.shell.command_words import plain_words, word_set
from nca.tools.shell.read_only_git import git_words
from nca.tools.tool import ToolError


@dataclass(frozen=True, slots=True)
class Reader:
    """A program that reads, and the options with which it does nothing else.

    flags       single letters, also in a bunch
    values      single letters with a value behind or attached
    words       whole options (`--all`, find's `-name`), those with a value after `=` written with the `=`
    is_counted  `-5` is a number of lines
    only_files  no directories: it would follow the links in them
    """

    flags: str = ""
    values: str = ""
    words: frozenset[str] = field(default_factory=frozenset)
    is_counted: bool = False
    only_files: bool = False

    def takes(self, word: str) -> bool:
        """Whether a word that begins with a dash is an option without harm."""
        name, equals, _ = word.partition("=")
        if word.startswith("--") or word in self.words:
            return word in self.words or name + equals in self.words
        if self.is_counted and word[1:].isdigit():
            return True
        for letter in word[1:]:
            if letter in self.values:
                return True  # what is attached is its value, and judged like any word
            if letter not in self.flags:
                return False
        return len(word) > 1


_LONGEST_WORD_CHARS = 500
_COLOR = "--color=never --colour=never"
_READERS = {
    "cat": Reader("nbsAetTvE", words=word_set("--number --show-all")),
    "head": Reader("qv", "nc", word_set("--lines= --bytes= --quiet"), is_counted=True),
    "tail": Reader("qv", "nc", word_set("--lines= --bytes= --quiet"), is_counted=True),
    "nl": Reader("", "bwsv"),
    "wc": Reader("lwcmL", words=word_set("--lines --words --bytes --chars")),
    "pwd": Reader("PL"),
    "ls": Reader("aAlhrtSR1dFinspgGoUXk", words=word_set(f"--all --almost-all --recursive --full-time {_COLOR}")),
    "tree": Reader("adfspuhDFirtn", "LIP", word_set("--dirsfirst --noreport --prune --du")),
    "stat": Reader("t", "c", word_set("--format=")),
    "file": Reader("bi", words=word_set("--brief --mime --mime-type --mime-encoding")),
    "du": Reader("shackmbx", "d", word_set("--max-depth= --summarize --human-readable --apparent-size")),
    "cmp": Reader("bls", only_files=True),
    "diff": Reader(
        "uqyswbBNicadt", "U", word_set(f"--unified= --brief --side-by-side --no-dereference {_COLOR}"), False, True
    ),
    "grep": Reader(
        "rnivwxclLoqshHEFPGaI",
        "ABCme",
        word_set(f"--include= --exclude= --exclude-dir= --line-number --ignore-case --fixed-strings --count {_COLOR}"),
        is_counted=True,
    ),
    "rg": Reader(
        "niSswxlcovFPUHNu",
        "ABCmgetTM",
        word_set(
            "--files --hidden --no-ignore --line-number --ignore-case --smart-case --fixed-strings --count --glob="
            " --type= --files-with-matches --no-heading --heading --type-list --color=never --max-depth= --stats"
        ),
    ),
    "find": Reader(
        words=word_set(
            "-name -iname -path -ipath -wholename -regex -iregex -type -maxdepth -mindepth -not -a -o -and -or -size"
            " -mtime -mmin -empty -print -print0 -ls -prune -perm -depth -daystart -mount -xdev -readable -executable"
        )
    ),
}


def read_only_argv(
    command: str, *, workspace: Workspace, directory: Path, environment: Mapping[str, str]
) -> tuple[str, ...] | None:
    """What to run, without a shell, for a command that only reads inside of the project; None where it may do more."""
    words = plain_words(command)
    if (
        words is None
        or max(map(len, words)) > _LONGEST_WORD_CHARS
        or not _stays_inside(words[1:], workspace, directory)
    ):
        return None
    if words[0] == "git":
        rest = git_words(words[1:], root=workspace.root, directory=directory)
    else:
        reader = _READERS.get(words[0])
        rest = words[1:] if reader is not None and _only_reads(reader, words[1:], directory) else None
    program = find_program(words[0], environment.get("PATH", ""), outside=workspace.root) if rest is not None else None
    return (str(program), *rest) if rest is not None and program is not None else None


def _only_reads(reader: Reader, words: tuple[str, ...], directory: Path) -> bool:
    for word in words:
        if word.startswith("-"):
            if not reader.takes(word):
                return False
        elif reader.only_files and not (directory / word).is_file():
            return False
    return True


def _stays_inside(words: tuple[str, ...], workspace: Workspace, directory: Path) -> bool:
    """Whether no word, and no value inside of one, leads outside when taken for a path."""
    try:
        workspace.resolve(str(directory))
        for word in words:
            for path in _as_paths(word):
                workspace.resolve(str(directory / path))
    except ToolError:
        return False
    return True


def _as_paths(word: str) -> list[str]:
    """All that a program could take for a path in a word: itself, what is behind `=`, what is attached to a letter."""
    begins = (
        position for position in range(len(word)) if word[0] == "-" or position == 0 or word[position - 1] in "=:,"
    )
    return [word[position:] for position in begins]
