"""What a permission rule for a command covers: one command of the shell, or each command of a list.

A rule must mean what it says: "always" for `sed -n 1,5p a.txt` must not let `sed -n '1e touch X'` run. So a rule names
the whole command. Only for the commands that commands.toml lists does it name the program, because there the arguments
change often: it then covers the listed options and files of the project, and nothing else.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from nca.tools.files.workspace import Workspace
from nca.tools.programs import word_set
from nca.tools.shell.command_words import Stage, commands_here, table, versionless
from nca.tools.shell.known_commands import TOUCH_NOTHING, Options, options_of, read_only_argv, stays_inside

_FILTERS = frozenset({"head", "tail", "grep", "wc"})
"""Models pipe long output into these. With options that only read, they add nothing to the command before them."""


@cache
def _with_any_options() -> dict[tuple[str, ...], Options]:
    """Commands that a rule covers with all of these options."""
    known = ((command, options_of(row)) for row in table()["known"] for command in row["commands"])
    return {tuple(command.split()): options for command, options in known}


def rule_names(
    command: str, *, workspace: Workspace, directory: Path, environment: Mapping[str, str]
) -> tuple[str, ...]:
    """The subjects of an allow rule that covers the command. The first is the rule to offer; empty if none covers it.

    Besides that: the exact words, and its first words with ` *` after them, which a person may write for "with any
    arguments". Only a simple command has names, alone or piped into filters. None has a program outside of the project
    given by its absolute path, because a rule could mistake that for a file.
    """
    first, *filters = commands_here(command, directory) or (None,)
    if first is None or any(one.operator not in ("|", "") for one in (first, *filters)):
        return ()
    words = _by_its_path_from(directory, first.words, workspace)
    if words[0].startswith("/"):
        return ()
    for one in filters:
        line = shlex.join(one.words)
        argv = read_only_argv(line, workspace=workspace, directory=directory, environment=environment)
        if one.words[0] not in _FILTERS or argv is None:
            return ()
    known = _known_command(words, workspace, directory)
    any_arguments = (f"{shlex.join(words[:count])} *" for count in range(1, len(words) + 1))
    return (*([known] if known else []), shlex.join(words), *any_arguments)


UNASKED = ""
"""The name of a command that needs no rule."""


def rule_steps(
    command: str, *, workspace: Workspace, directory: Path, environment: Mapping[str, str]
) -> tuple[tuple[tuple[str, ...], ...], str]:
    """For commands joined by `&&`, `||` and `;`: of each what an allow rule may name, as in `rule_names`; and the line
    to run.

    A command that only reads has the name UNASKED too. It is in the line as it would run alone.

    Empty if the list could do more than its commands one after the other: if one changes what the shell does with the
    next, or if what a name means depends on files that one before may have changed. So behind a command that acts, a
    name is the exact words, and what runs unasked names no file. Filters read only what is piped into them.
    """
    stages = commands_here(command, directory, takes_status=True) or ()
    if all(stage.operator in ("|", "") for stage in stages):
        return (), command
    found: list[tuple[str, ...]] = []
    line, begin = "", 0
    for end, stage in enumerate(stages, 1):
        if stage.operator == "|":
            continue
        piped, begin = stages[begin:end], end
        is_unchanged = all(UNASKED in one for one in found)
        prints = any(one.prints for one in piped)
        text = " | ".join(f"{shlex.join(one.words)}{one.errors}" for one in piped)
        names: tuple[str, ...] = ()
        argv = None
        if not prints and piped[0].words[0] not in _understood_by_shell() and all(map(_names_no_file, piped[1:])):
            names = rule_names(text, workspace=workspace, directory=directory, environment=environment)
            exact = shlex.join(_by_its_path_from(directory, piped[0].words, workspace))
            if not is_unchanged:
                names = names[names.index(exact) :] if exact in names else ()
        if is_unchanged or all(map(_names_no_file, piped)):
            argv = read_only_argv(text, workspace=workspace, directory=directory, environment=environment)
        if argv is not None and not (prints and len(piped) > 1):
            names, text = (*names, UNASKED), piped[0].prints or shlex.join(argv)
        if not names:
            return (), command
        found.append(names)
        line += f"{text} {stage.operator} "
    return tuple(found), line.rstrip()


def _by_its_path_from(directory: Path, words: tuple[str, ...], workspace: Workspace) -> tuple[str, ...]:
    """The words, with a program of the project that is given by its absolute path named from the directory."""
    program = Path(words[0])
    is_plain = program.is_absolute() and os.path.normpath(words[0]) == words[0]
    # Behind a link, the folder above the directory would be another one.
    if not (is_plain and program.is_relative_to(workspace.root) and os.path.realpath(directory) == str(directory)):
        return words
    return f"{os.path.relpath(program.parent, directory)}/{program.name}", *words[1:]


@cache
def _understood_by_shell() -> frozenset[str]:
    return word_set(table()["shell"]["own"])


def _names_no_file(stage: Stage) -> bool:
    """Whether none of its words is a file: they are options or numbers, but for grep's pattern and git's subcommand."""
    words = stage.words
    if words[0] in TOUCH_NOTHING:
        return True
    named = [word for word in words[1:] if not word.startswith("-") and not word.isdigit()]
    has_pattern = any(re.match("-[A-Za-z]*e", word) for word in words[1:])
    return len(named) <= (words[0] == "git" or (words[0] == "grep" and not has_pattern))


def _known_command(words: tuple[str, ...], workspace: Workspace, directory: Path) -> str:
    """The listed command that these words call with nothing but listed options and files of the project, or ""."""
    folder, slash, program = words[0].rpartition("/")
    program = versionless(program)
    for count in range(len(words), 0, -1):
        options = _with_any_options().get((program, *words[1:count]))
        if options is not None:
            rest = words[count:]
            is_plain = all(_is_plain_word(word, options) for word in rest) and stays_inside(rest, workspace, directory)
            return shlex.join((folder + slash + program, *words[1:count])) if is_plain else ""
    return ""


def _is_plain_word(word: str, options: Options) -> bool:
    """Whether it is a listed option, or may be a file: not a variable, nor a file of arguments (`@more`)."""
    return options.takes(word) if word.startswith("-") else "=" not in word and not word.startswith(("@", "+"))
