"""Permission modes and rules: what a mode decides about a permission, and which rule matches a call.

Allowing rules come only from the person (a flag, their own file, the environment, the chat). Rules that deny or ask may
also come from other programs' settings (nca.config.claude_permissions). If a mode or a rule says "ask" and nobody can
be asked, the call does not run and the model is told why.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from nca.config.tables import BELOW, PermissionRule
from nca.tools.tool import Approval, Permission

if TYPE_CHECKING:
    import pathspec

_OF_FILES = {
    "read_file": ("*",),
    "edit_file": ("edit_file", "write_file"),
    "write_file": ("edit_file", "write_file"),
    "*": ("*",),
}
"""By the tool that a rule about a file names: the tools that it means."""
_WILD = re.compile(r"[*?\[\\]")

Decision = Literal["allow", "ask", "deny"]

_DECISIONS: dict[str, dict[Permission, Decision]] = {
    "ask": {"read": "allow", "write": "ask", "execute": "ask"},
    "accept-edits": {"read": "allow", "write": "allow", "execute": "ask"},
    "plan": {"read": "allow", "write": "deny", "execute": "deny"},
    "auto": {"read": "allow", "write": "allow", "execute": "allow"},
}


def decide(mode: str, permission: Permission) -> Decision:
    """The mode's decision on a call that needs this permission."""
    return _DECISIONS[mode][permission]


def about(rules: Iterable[PermissionRule], tool: str, needed: Permission) -> list[PermissionRule]:
    """The rules for calls of this tool that need this permission. A tool's name may hold `*`."""
    meant = (rule for rule in rules if not (rule.for_changes and needed == "read"))
    return [rule for rule in meant if fnmatchcase(tool, _as_glob(rule.tool))]


def matching(
    rules: Iterable[PermissionRule],
    tool: str,
    subjects: Collection[str],
    directory: Path,
    commands: Collection[str] = (),
    *,
    only_reads: bool = False,
) -> PermissionRule | None:
    """The first rule that matches a call, or None.

    subjects    what a rule may match, such as the resolved path, the command, the host
    directory   the project's folder, with links resolved; subjects of rules may be relative to it
    commands    the simple commands of a command line; a rule's pattern may begin at any of their words
    only_reads  every command was proved to read only, so no word but the first is a program
    """
    return next(
        (
            rule
            for rule in about(rules, tool, "execute")
            if not rule.directory or _normal(rule.directory, directory) == str(directory)
            if _covers(rule, subjects, directory, commands, only_reads=only_reads)
        ),
        None,
    )


@lru_cache(maxsize=64)
def widened(rules: tuple[PermissionRule, ...]) -> tuple[PermissionRule, ...]:
    """Rules that deny or ask, with what each must mean to hold, as its writer sees it.

    A file that `read_file` may not show is shown by nothing. What may not be edited may not be written anew, and the
    other way round. A folder is all that is below it.
    """
    found: list[PermissionRule] = []
    for rule in rules:
        found.append(rule)
        if rule.tool not in _OF_FILES or not (rule.paths or rule.subject):
            continue
        subjects = (rule.subject, rule.subject and f"{rule.subject.removesuffix(BELOW)}{BELOW}")
        meant = dict.fromkeys((tool, subject) for tool in _OF_FILES[rule.tool] for subject in subjects)
        meant.pop((rule.tool, rule.subject), None)
        found += (replace(rule, tool=tool, subject=subject, origin=str(rule)) for tool, subject in meant)
    return tuple(found)


@lru_cache(maxsize=64)
def asking(deny: tuple[PermissionRule, ...], ask: tuple[PermissionRule, ...]) -> tuple[PermissionRule, ...]:
    """The rules that ask: about commands too that name a file that may not be edited, as they may change it."""
    of_changes = [rule for rule in widened(deny) if rule.tool in ("edit_file", "write_file") and not rule.is_for_all]
    commands = (replace(rule, tool="shell", for_changes=True, origin=str(rule)) for rule in of_changes)
    return (*widened(ask), *commands)


def may_hide(rule: PermissionRule, approval: Approval) -> bool:
    """Whether what a rule is about may be in a call though it is not to be seen there.

    Where a shell computes arguments alone, of programs that start no other, a rule about another program is not meant.
    """
    computed = approval.computed
    if rule.is_for_all or approval.path or approval.subject or computed == frozenset():
        return False
    words = (rule.subject or rule.pattern).split()
    is_about_program = rule.tool == "shell" and not rule.for_changes and bool(words) and shutil.which(words[0])
    return computed is None or not is_about_program or words[0] in computed


def reading_rule(rules: Iterable[PermissionRule], path: Path, directory: Path) -> PermissionRule | None:
    """The first rule that is about reading a file, whatever reads it. `path` has its links resolved.

    A rule for read_file is one about the file's content: what that tool may not show, nothing shows.
    """
    return matching(widened(tuple(rules)), "read_file", names_of(str(path), directory), directory)


def names_of(path: str, directory: Path) -> tuple[str, ...]:
    """An absolute path by all its names: first as it is written, last with links resolved. Any text is a path here."""
    absolute = _absolute(path, directory)
    plain = os.path.normpath(absolute)
    try:
        return tuple(dict.fromkeys((plain, os.path.realpath(absolute))))
    except ValueError:  # no file has such a name: it holds a zero byte or half of a surrogate pair
        return (plain,)


def _covers(
    rule: PermissionRule, subjects: Collection[str], directory: Path, commands: Collection[str], *, only_reads: bool
) -> bool:
    if rule.is_for_all:
        return True
    if rule.paths:
        files = [subject for subject in subjects if Path(subject).is_absolute()]
        return any(_is_below(file, *place) for place in _places(rule.paths, directory) for file in files)
    if rule.pattern:
        globs = _command_globs(rule.pattern, only_reads=only_reads)
        if any(fnmatchcase(command, glob) for command in commands for glob in globs):
            return True
        hosts = () if commands else map(_host, subjects)
        return any(fnmatchcase(host, _as_glob(_host(rule.pattern))) for host in hosts)
    return any(_matches(rule.subject, subject, directory) for subject in subjects)


def _command_globs(pattern: str, *, only_reads: bool) -> list[str]:
    """A blank before `*` at the end covers the command without arguments."""
    words = " ".join(pattern.split())
    ends = (words, words.removesuffix(" *")) if words.endswith(" *") else (words,)
    return [begin + _as_glob(end) for end in ends for begin in (("",) if only_reads else ("", "* "))]


def _as_glob(pattern: str) -> str:
    """Only `*` means more than itself."""
    return pattern.replace("[", "[[]").replace("?", "[?]")


def _host(name: str) -> str:
    """A redirect may lead from a host to the same one with `www.`, so they are one."""
    return name.lower().rstrip(".").removeprefix("www.")


def _places(pattern: str, directory: Path) -> Iterator[tuple[str, str]]:
    """Folders, each with a pattern of .gitignore for what is below it.

    The part of a pattern without wildcards is looked up too: a denial holds for a file by all its names.
    """
    if "/" not in pattern.rstrip("/") and not pattern.startswith("~"):
        yield str(directory), pattern
        return
    begin, _, inside = pattern.partition("/") if pattern.startswith(("~", "/")) else (str(directory), "", pattern)
    folder = _absolute(begin or "/", directory)
    *parts, last = inside.strip("/").split("/")
    last, ending = last or "**", "/" if last and pattern.endswith("/") else ""
    while parts and not _WILD.search(parts[0]):
        folder = os.path.join(folder, parts.pop(0))  # noqa: PTH118
    for found in names_of(folder, directory):
        yield found, f"/{'/'.join([*parts, last])}{ending}"
    if not parts and not _WILD.search(last):
        above, _, name = names_of(os.path.join(folder, last), directory)[-1].rpartition("/")  # noqa: PTH118
        yield above or "/", "/" + _WILD.sub(lambda found: f"\\{found[0]}", name) + ending


def _is_below(file: str, folder: str, pattern: str) -> bool:
    if not Path(file).is_relative_to(folder):
        return False
    inside = os.path.relpath(file, folder)
    return inside != "." and _spec(pattern).match_file(inside)


@lru_cache(maxsize=1_000)
def _spec(pattern: str) -> pathspec.GitIgnoreSpec:
    import pathspec

    return pathspec.GitIgnoreSpec.from_lines([pattern])


def _matches(pattern: str, subject: str, directory: Path) -> bool:
    if pattern == subject:
        return True
    if not Path(subject).is_absolute():
        return False
    if not pattern.endswith(BELOW):
        return _normal(pattern, directory) == subject
    # Component by component: /work is not a prefix of /work-evil.
    return Path(subject).is_relative_to(_normal(pattern.removesuffix(BELOW) or "/", directory))


def _normal(path: str, directory: Path) -> str:
    """Normalize without looking at the disk: a rule must not follow a link that somebody may change later."""
    return os.path.normpath(_absolute(path, directory))


def _absolute(path: str, directory: Path) -> str:
    """Where a path leads, with its links: from the directory, or from a user's home. `~NAME` of no user is a name."""
    with suppress(ValueError):  # no user has such a name
        path = os.path.expanduser(path)  # noqa: PTH111  Path raises for an unknown user
    # To normpath `//` is a root of its own; to Linux and macOS it is not.
    return f"/{os.path.join(directory, path).lstrip('/')}"  # noqa: PTH118  paths are texts here


def refusal(mode: str, permission: Permission | None, decision: Decision) -> str:
    """The result of a call that did not run, for the model. permission: None if it is not why the person is asked."""
    if decision == "deny":
        return f"[not run: the permission mode is {mode}, which only allows reading]"
    what = f"a tool that may {permission}" if permission else "this call"
    return f"[not run: {what} needs the person's approval, and nobody can give it here]"
