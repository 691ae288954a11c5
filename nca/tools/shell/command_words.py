"""Parse simple command lines into words, and refuse everything else.

An accepted command means the same to every shell, and without a shell. Python's bash parsers do not fit: they
accept text that must be refused here, and bashlex is GPL.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from pathlib import Path
from string import ascii_letters, digits
from typing import Any

from nca.humanize import WRITTEN_OUT, written_out

MOST_CHARS = 4_000
MOST_COMMANDS = 20
"""Of one list: each is checked by itself, and one of git takes 30 ms."""

ANY_TEXT = "\uf02a"
"""In a word: a `*` that a shell would take for a pattern. No word that is typed can have this character."""
_BARE = frozenset(ascii_letters + digits + "-_./:=@%+,^~")
_IN_SINGLE = frozenset(chr(code) for code in range(0x20, 0x7F)) - {"'"}
_IN_DOUBLE = _IN_SINGLE - frozenset('"$`\\!') | {"'"}
"""In double quotes a shell expands after these characters."""
_STAGE = re.compile(r"""((?: 2>&1|'[^']*'|"[^"]*"|[^|&;'"])+)(\|\||&&|[|;]|\Z)""")
"""A command of a list, and the operator after it."""
_VERSION = re.compile(r"(?<=[a-z])-?\d+(?:\.\d+)*$")
_ERRORS = re.compile(r"(?: 2>(?:&1|/dev/null))+ *\Z")


def plain_words(command: str, *, takes_patterns: bool = False) -> tuple[str, ...] | None:
    """The words of one simple command; None for anything else, or if in doubt. With patterns, `*` is ANY_TEXT.

    Accepted: bare words and quoted printable ASCII without expansion, separated by blanks. Refused: operators,
    redirections, expansions (variables, substitutions, tilde, braces, patterns), escapes, comments, assignments before
    the program, newlines, tabs, other control characters, non-ASCII characters, empty words, and a program that is
    quoted in whole or in part.
    """
    if len(command) > MOST_CHARS:
        return None
    words: list[str] = []
    position, line = 0, command.strip(" ")
    while position < len(line):
        word, position, is_bare = _word(line, position, takes_patterns)
        if not word or (not words and (not is_bare or "=" in word)):
            return None
        words.append(word)
        while position < len(line) and line[position] == " ":
            position += 1
    return tuple(words) or None


@dataclass(frozen=True, slots=True)
class Stage:
    """A simple command of a list.

    errors    where its errors go: "", ` 2>&1` or ` 2>/dev/null`
    operator  what joins the next one to it: `|`, `&&`, `||` or `;`; "" for the last
    prints    with `$?`: the whole `echo`, as it is written
    """

    words: tuple[str, ...]
    errors: str
    operator: str
    prints: str = ""


def command_list(command: str, *, takes_patterns: bool = False, takes_status: bool = False) -> tuple[Stage, ...] | None:
    """Simple commands joined by `|`, `&&`, `||` and `;`; None for anything else.

    takes_status: `$?` in the words of `echo`, a number that the shell puts there, is 0 in `words`.
    """
    if len(command) > MOST_CHARS:
        return None
    stages: list[Stage] = []
    position = 0
    while not stages or stages[-1].operator:
        found = _STAGE.match(command, position)
        if found is None or len(stages) == MOST_COMMANDS:
            return None
        text, operator = found.groups()
        prints = text.strip() if takes_status and "$?" in text and text.split()[0] == "echo" else ""
        text = text.replace("$?", "0") if prints else text
        errors = _ERRORS.search(text)
        words = plain_words(text[: errors.start()] if errors else text, takes_patterns=takes_patterns)
        if words is None:
            return None
        stages.append(Stage(words, errors[0].rstrip() if errors else "", operator, prints))
        position = found.end()
    return tuple(stages)


@cache
def table() -> dict[str, Any]:
    """The commands that nca knows."""
    # Only where a command is run.
    import tomllib

    return tomllib.loads(Path(__file__).with_name("commands.toml").read_text(encoding="utf-8"))


def answers_with_1(command: str) -> bool:
    """Whether exit code 1 of a command is an answer: nothing found, files that differ. A step before it can have a part
    in the code only behind the last `;`."""
    stages = command_list(command, takes_patterns=True) or ()
    last = list(takewhile(lambda stage: stage.operator != ";", reversed(stages)))
    if not last or any(stage.operator == "&&" for stage in last):
        return False
    words = last[0].words
    return bool({words[0], " ".join(words[:2])} & set(table()["answers"]["with_1"]))


def commands_here(command: str, directory: Path, *, takes_status: bool = False) -> tuple[Stage, ...] | None:
    """As `command_list`, without a `cd` at the beginning to `directory`, in which the command runs anyway.

    Only where it changes nothing, not even the shell's name for the directory: through a link, that would be another.
    """
    stages = command_list(command, takes_status=takes_status)
    while stages and stages[0].operator == "&&" and stages[0].words[0] == "cd" and len(stages[0].words) == 2:
        if stages[0].words[1] not in (".", "./", str(directory), f"{directory}/"):
            break
        stages = stages[1:]
    return stages


def versionless(program: str) -> str:
    """The name of a program without a version: `python3.11` and `python` are one program."""
    return _VERSION.sub("", program)


def _word(line: str, start: int, takes_patterns: bool) -> tuple[str, int, bool]:
    """The word at `start`, where it ends, and whether no part of it is quoted; "" if it must be refused."""
    word, position, is_bare = "", start, True
    while position < len(line) and line[position] != " ":
        char = line[position]
        if char in ("'", '"'):
            end = line.find(char, position + 1)
            quoted = line[position + 1 : end] if end > 0 else "\0"
            if not set(quoted) <= (_IN_SINGLE if char == "'" else _IN_DOUBLE):
                return "", len(line), False
            word, position, is_bare = word + quoted, end + 1, False
        elif char in _BARE and not (char == "~" and word[-1:] in ("", "=", ":")):
            word, position = word + char, position + 1
        elif char == "*" and takes_patterns:
            word, position = word + ANY_TEXT, position + 1
        else:
            return "", len(line), False
    # zsh replaces =program with its path.
    return ("" if line[start] == "=" else word), position, is_bare


LONG_CHARS = 500
_MOST_WORDS_OF_A_RULE = 3
"""A rule that denies, up to so many words, is looked for anywhere in a command."""
_NO_NAME = re.compile(r"[^A-Za-z0-9_./+@:~-]+")
_BORDER = re.compile(r"[;&|\n(){}<>`$]+")
_LIKE_SIGNS = frozenset("‐‑‒–—―−⁃﹘‘’‚‛′‵´“”„‟″‶⁄∕⧸⟋∖⧵⧹⟍∣│∶։׃‧·٫،∗⁎٭∼⁓∽‹›⟨⟩❮❯❨❩❲❳❴❵٪‗")
"""Signs that look like one of ASCII, by Unicode's list of confusable characters (UTS #39)."""
_QUOTED = r"""'[^']*'|"(?:\\.|[^"\\])*\""""
_MOST_FOLDERS = 20
_MOST_LOOKED_AT = 30
"""Words that may be programs, and words behind one that may be its subcommand."""
_QUOTING = re.compile(r"[\"'\\]")
_MINOR = re.compile(r"(?<=\d)(?:\.\d+)+$")


def remarks(command: str) -> Iterator[str]:
    """Details of the command that a person may overlook, one sentence each."""
    lines = command.strip("\n").count("\n") + 1
    sizes = [f"{lines:,} lines"] if lines > 1 else []
    sizes += [f"{len(command):,} characters"] if len(command) > LONG_CHARS else []
    if sizes:
        yield f"The command has {' and '.join(sizes)}."
    shown_as = written_out(command, is_command=True)
    if shown_as != command:
        yield WRITTEN_OUT
    # A sign in quoted text of several words is one of prose: to the shell it is text, whatever it looks like.
    outside = re.sub(_QUOTED, lambda found: _letters(found[0]) if " " in found[0] else found[0], command)
    if strange := sorted({char for char in outside if char in shown_as and may_be_mistaken(char)}):
        shown = ", ".join(f"{char} (U+{ord(char):04X})" for char in strange[:5])
        yield f"What looks like ASCII may be something else: {shown}{', …' if len(strange) > 5 else ''}."


def _letters(text: str) -> str:
    return "".join(filter(str.isalpha, text))


def may_be_mistaken(char: str) -> bool:
    """Whether somebody may read this character as one of ASCII: a dash, a quote, ı or ｘ.

    Letters of other scripts that look like Latin ones are written out (`written_out`).
    """
    return not char.isascii() and (
        char in _LIKE_SIGNS
        or unicodedata.normalize("NFKC", char).isascii()
        or (len(char.upper()) == 1 and char.upper().isascii())
    )


def mentioned_names(command: str, directory: Path) -> tuple[str, ...]:
    """The words that a deny rule may match: everything in the command that may be a program or a path.

    Errs on the side of too much: every word, with quotes and backslashes removed, with and without its folder and its
    version (`python3.11`, `python3`, `python`), and two and three words in a row, also without the options between a
    program and its subcommand. It does not see what a shell would compute first.
    """
    found: dict[str, None] = {}
    for text in (_QUOTING.sub("", command), _QUOTING.sub(" ", command)):
        words = [word for word in _NO_NAME.split(text) if word]
        bases = [word.rpartition("/")[2] for word in words]
        majors = [_MINOR.sub("", base) for base in bases]
        for row in (words, bases, majors, [versionless(base) for base in bases]):
            for count in range(1, _MOST_WORDS_OF_A_RULE + 1):
                found.update((" ".join(row[at : at + count]), None) for at in range(len(row) - count + 1))
        for piece in _BORDER.split(text):
            row = [versionless(word) for word in _bases(piece.split())]
            for at, place in _subcommands(row):
                found.update((" ".join([row[at], *row[place : place + count]]), None) for count in (1, 2))
        folders = _folders(words, directory)
        # Of `HEAD:a` and `--file=a` the end is a path too.
        for name in {end for word in words for end in (word, word.rpartition(":")[2])} - {""}:
            for folder in folders:
                path = os.path.join(folder, os.path.expanduser(name))  # noqa: PTH111, PTH118  neither raises
                found.update({os.path.normpath(path): None, os.path.realpath(path): None})
    found.pop("", None)
    return tuple(found)


def mentioned_commands(command: str) -> tuple[str, ...]:
    """Possible simple commands in a command, with their words one blank apart: whole, and without folders.

    Everything that a shell would take apart is a border. Quotes are removed, since a program may run what is in them.
    Options between a program and its subcommand are there in one reading and not in the other.
    """
    found: dict[str, None] = {}
    for text in (_QUOTING.sub("", command), _QUOTING.sub(" ", command)):
        for piece in _BORDER.split(text):
            words = piece.split()
            for row in (words, _bases(words)):
                found[" ".join(row)] = None
                found.update((" ".join([*row[: at + 1], *row[place:]]), None) for at, place in _subcommands(row))
    found.pop("", None)
    return tuple(found)


def _bases(words: Sequence[str]) -> list[str]:
    """The words without their folders; an option stays one."""
    return [word if word.startswith("-") else word.rstrip("/").rpartition("/")[2] for word in words]


def _subcommands(words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The places of a program, and of what may be its subcommand: behind options, each with or without a value."""
    for at in range(min(len(words) - 2, _MOST_LOOKED_AT)):
        places, seen = [at + 1], set[int]()
        while places:
            place = places.pop()
            if place in seen or place >= min(len(words), at + _MOST_LOOKED_AT):
                continue
            seen.add(place)
            if words[place].startswith("-"):
                places += (place + 1, place + 2)
            elif place > at + 1:
                yield at, place


def _folders(words: Sequence[str], directory: Path) -> list[str]:
    """The folders in which the words may be paths: the directory, and each folder that a command may go to."""
    folders = [str(directory)]
    for word in words:
        inner = [os.path.join(folder, word) for folder in folders]  # noqa: PTH118
        known = {os.path.normpath(one) for one in folders}
        folders += [one for one in inner if os.path.normpath(one) not in known and os.path.isdir(one)]
        if len(folders) >= _MOST_FOLDERS:
            break
    return folders[:_MOST_FOLDERS]
