"""What a shell computes in a command: the files of a pattern, and the rest, which nobody knows before it runs.

A command with patterns such as `src/*.py` is judged as if the files' names had been typed. A shell would look the names
up anew. So a command that runs because of this judgement runs with the names that were
judged, and a file that comes later, a link say, is none of them.
"""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from functools import cache
from itertools import islice, pairwise
from pathlib import Path

from nca.tools.files.workspace import Workspace
from nca.tools.programs import word_set
from nca.tools.shell.command_words import ANY_TEXT, MOST_CHARS, command_list, table
from nca.tools.tool import ToolError

_MOST_ENTRIES = 5_000
"""Of a folder: to look at this many takes 10 ms."""
_COMPUTED = re.compile(
    r"[$`\\*?]|\[(?!\[?[ \t])|\{(?![ \t\n}])|[@+!]\(|(?<!\w)~(?![/ \t\n]|$)"
    r"|(?:^|[ \t\n;&|(])=(?![ \t\n=]|$)"
)
"""The beginning of what a shell computes, outside of quotes: bash or zsh, which replaces =program with its path."""
_VARIABLE = re.compile(r"\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\}|[0-9?#@*$!])")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_UNREAD = re.compile(r"#|=[^ \t\n=]")
"""The beginning of a comment, or of a program's path in zsh."""
_REDIRECTION = re.compile(r"[<>](?!\()[<>&|]*")


def without_patterns(command: str, *, workspace: Workspace, directory: Path) -> str:
    """The command with the names of files for each pattern; as it is if it has none, or one that is not understood.

    Understood is `*` in the last part of a path. Its folder is in the project, and at least one file fits. Names are as
    bash finds them, without those that begin with a dot, in the order of their characters. One that could be taken for
    an option is not understood. Too many make a command that is too long to be judged.
    """
    if "*" not in command:
        return command
    lines: list[str] = []
    for stage in command_list(command, takes_patterns=True) or ():
        words = list(stage.words[:1])
        for word in stage.words[1:]:
            names = _names(word, workspace, directory) if ANY_TEXT in word else [word]
            if not names:
                return command
            words += names
        if ANY_TEXT in words[0]:
            return command
        lines.append(f"{shlex.join(words)}{stage.errors} {stage.operator}")
    return " ".join(lines).rstrip() or command


def _names(word: str, workspace: Workspace, directory: Path) -> list[str]:
    """The paths that a word with a pattern stands for; [] if it must not be taken for any."""
    folder, slash, last = word.rpartition("/")
    if ANY_TEXT in folder or ANY_TEXT * 2 in last or word.startswith("-") or last.startswith("."):
        return []
    try:
        with os.scandir(workspace.resolve(str(directory / f"{folder}{slash}"))) as entries:
            found = [entry.name for entry in islice(entries, _MOST_ENTRIES + 1)]
    except (ToolError, OSError):
        return []
    fitting = sorted(f"{folder}{slash}{name}" for name in found if name[0] != "." and _fits(name, last.split(ANY_TEXT)))
    is_plain = all(name.isascii() and name.isprintable() and name[0] != "-" for name in fitting)
    return fitting if is_plain and len(found) <= _MOST_ENTRIES else []


def _fits(name: str, parts: list[str]) -> bool:
    """Whether a name is these parts with any text between them."""
    first, *middle, last = parts
    at, end = len(first), len(name) - len(last)
    if at > end or not (name.startswith(first) and name.endswith(last)):
        return False
    for part in middle:
        at = name.find(part, at, end) + len(part)
        if at < len(part):
            return False
    return True


def computed_in(command: str) -> frozenset[str] | None:
    """The programs of a command whose arguments a shell computes; None if it may compute a program too.

    A shell computes variables and substitutions, patterns, braces, and a tilde that is not the person's home. All else
    that it comes to stands in the command, apart from quotes. `>` stands for a file that output goes to. Programs that
    open no file and start no other (`echo`) are left out. None as well for what is not understood: here-documents,
    comments and escapes beside something that is computed, arithmetic, and programs that may start others.
    """
    if len(command) > MOST_CHARS or not all(char.isprintable() or char in "\n\t" for char in command):
        return None
    if not _COMPUTED.search(command):
        return frozenset()
    try:
        line = _Line(command)
        line.read()
    except _Unclear:
        return None
    return frozenset(line.computed)


@cache
def _understood() -> dict[str, frozenset[str]]:
    """What is known of words that a shell computes, by the program that gets them."""
    return {name: word_set(words) for name, words in table()["shell"]["computed"].items()}


class _Unclear(Exception):
    """A shell may take the line in more than one way, or compute a program."""


@dataclass(slots=True)
class _Word:
    """is_computed: a shell computes a part; is_split: it may become many words, or none; is_bare: without quotes."""

    text: str = ""
    is_computed: bool = False
    is_split: bool = False
    is_bare: bool = True
    is_assignment: bool = False


class _Line:
    """Reads a command line as a shell would, to know what it computes."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self.computed: set[str] = set()

    def read(self, *, is_inner: bool = False) -> None:
        """Read to the end, or behind the parenthesis that ends a substitution."""
        words: list[_Word] = []
        inside, is_target = 0, False
        while self._at < len(self._text):
            char = self._text[self._at]
            if char in " \t":
                self._at += 1
            elif found := _REDIRECTION.match(self._text, self._at):
                if found[0] == "<<":
                    raise _Unclear
                self._at, is_target = found.end(), True
            elif char in "\n;&|()<>":
                self._close(words)
                words, self._at = [], self._at + 1
                inside += (char == "(") - (char == ")")
                if inside < 0:
                    if is_inner:
                        return
                    raise _Unclear
            else:
                word = self._word()
                if is_target:
                    self.computed.update({">"} if word.is_computed else ())
                else:
                    words.append(word)
                is_target = False
        if is_inner:
            raise _Unclear
        self._close(words)

    def _close(self, words: list[_Word]) -> None:
        """A simple command: after keywords and assignments, its program and arguments."""
        own = _understood()
        while words and (words[0].is_assignment or (words[0].is_bare and words[0].text in own["before"])):
            del words[0]
        if not any(word.is_computed for word in words):
            return
        program, *arguments = words
        if program.is_computed or program.text not in own["alone"] | own["opens"] | own["evaluates"]:
            raise _Unclear
        if program.text in own["opens"]:
            self.computed.add(program.text)
        if program.text in own["evaluates"]:
            in_a_row = any(one.is_computed and other.is_computed for one, other in pairwise(arguments))
            if in_a_row or any(word.is_split or word.text == "-v" for word in arguments):
                raise _Unclear

    def _word(self) -> _Word:
        start = self._at
        word = _Word(is_assignment=_ASSIGNMENT.match(self._text, start) is not None)
        while self._at < len(self._text) and (char := self._text[self._at]) not in " \t\n;&|()<>":
            if char == "'":
                word.text += self._until("'")
                word.is_bare = False
            elif char == '"':
                self._in_double(word)
                word.is_bare = False
            elif char == "$":
                self._value(word)
                word.is_split = True
            elif char in "\\`" or (self._at == start and _UNREAD.match(self._text, start)):
                raise _Unclear
            else:
                word.is_split |= _COMPUTED.match(self._text, self._at) is not None
                word.text, self._at = word.text + char, self._at + 1
        if self._text[self._at : self._at + 1] == "(" and word.text[-1:] in ("@", "+", "!", "?", "*", "="):
            raise _Unclear
        word.is_computed |= word.is_split
        return word

    def _until(self, quote: str) -> str:
        end = self._text.find(quote, self._at + 1)
        if end < 0:
            raise _Unclear
        text, self._at = self._text[self._at + 1 : end], end + 1
        return text

    def _in_double(self, word: _Word) -> None:
        self._at += 1
        while (char := self._text[self._at : self._at + 1]) != '"':
            if char == "$":
                self._value(word)
            elif char in ("", "`") or self._text[self._at : self._at + 2] in ("\\$", "\\`", "\\\n", "\\"):
                raise _Unclear
            else:
                # An escaped quote ends no text, and an escaped backslash escapes nothing.
                count = 2 if char == "\\" else 1
                word.text, self._at = word.text + self._text[self._at : self._at + count], self._at + count
        self._at += 1

    def _value(self, word: _Word) -> None:
        """A variable, or the output of commands, which are read like any others."""
        word.is_computed = True
        if found := _VARIABLE.match(self._text, self._at):
            self._at, word.is_split = found.end(), word.is_split or found[0] == "$@"
        elif self._text.startswith("$(", self._at) and not self._text.startswith("$((", self._at):
            self._at += 2
            self.read(is_inner=True)
        else:
            raise _Unclear
