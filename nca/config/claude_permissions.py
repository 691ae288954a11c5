"""Claude Code's settings files as JSON objects, its names of tools, and its permission rules.

Those that deny or ask hold at once: stricter needs no trust. A project's that allow hold once the user trusts them, the
user's own with `agent.use_claude_home`.

A rule is `Tool` or `Tool(what)`. For files `what` is a pattern of .gitignore: `//etc` is from the root of the disk,
`~/x` from the home directory, `/x` from where the settings are, and anything else from the working directory. For
commands it is the command; `*` matches any text and `:*` at the end any arguments.

nca never takes a rule that denies or asks for less than it says, nor one that allows for more. One that denies and
cannot be translated asks about every call that may be meant; one that allows is left out. Both are named.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple

from nca.config.document import read_json, shown_name, shown_path
from nca.config.tables import TOOLS, PermissionRule, is_file_pattern
from nca.errors import ConfigError
from nca.humanize import UsualNotice, counted, in_one, some_of

FILES = (".claude/settings.json", ".claude/settings.local.json")

UNKNOWN = "What it denies is not known, so nca asks about every call that acts or shows a file; correct the file."
"""A denial that cannot be read must not allow."""


def claude_files(folder: Path, notes: list[str]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The files with their content below a project or the user's home that can be read; a note for each that cannot.

    A file that is read twice gives the same note twice; it is shown once.
    """
    for path in (folder / name for name in FILES):
        data, problem = _read(path)
        if problem:
            notes.append(f"{problem} {UNKNOWN}")
        else:
            yield path, data


def _read(path: Path) -> tuple[dict[str, Any], str]:
    """A file's content, or why it cannot be read."""
    try:
        data = read_json(path)
    except ConfigError as error:
        return {}, f"{error} Its hooks do not run."
    return (data, "") if isinstance(data, dict) else ({}, f"{shown_path(path)}: it is not a JSON object.")


Decision = Literal["deny", "ask", "allow"]
_STRICTER: tuple[Decision, ...] = ("deny", "ask")
_ALLOW: Decision = "allow"
_RULE = re.compile(r"\s*([A-Za-z0-9_*-]+)\s*(?:\((.*)\))?\s*", re.DOTALL)
_READING = frozenset({"read", "grep", "glob", "ls", "notebookread"})
_CHANGING = frozenset({"edit", "write", "multiedit", "notebookedit"})
_TOOLS: Mapping[str, Sequence[str]] = {
    **{name.lower(): (tool,) for name, tool in TOOLS.items()},
    "read": ("read_file", "grep"),
    "edit": ("edit_file", "write_file"),
    "multiedit": ("edit_file",),
    "agent": ("task",),
}
"""nca's tools that a rule is about, by Claude Code's names in small letters."""
_WITHOUT = frozenset(
    {"websearch", "notebookread", "notebookedit", "exitplanmode", "enterplanmode", "askuserquestion", "bashoutput"}
    | {"killshell", "killbash", "taskoutput", "taskstop", "slashcommand", "lsp", "powershell", "monitor", "workflow"}
    | {"listmcpresourcestool", "readmcpresourcetool", "enterworktree", "exitworktree"}
)
"""Tools that nca does not have: whatever a rule denies of them, nca cannot do."""
ONLY_THEIRS = frozenset({*_TOOLS, *_WITHOUT} - {name.lower() for name in TOOLS})
"""Names of Claude Code's, in small letters, that are no tool of nca's by themselves."""
_SHOWING = tuple(map(PermissionRule, sorted({"shell"}.union(*(_TOOLS.get(name, ()) for name in _READING)))))
"""Calls that show what is in a file, or what files there are; a command may."""
_DENIABLE = (PermissionRule("*", for_changes=True), *_SHOWING)
"""Calls that a denial may mean that nobody can read: those that act or show."""
_ANY = ("", "*", "**", ":*")
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_MOST_EXPANSIONS = 100
_MOST_NAMED = 8
_MOST_WILDCARDS = 3
"""In one part of a path."""


class HeldRule(NamedTuple):
    """One rule of a settings file. `rules` are nca's for it; `is_exact`: they mean the same."""

    decision: Decision
    written: str
    file: str
    rules: tuple[tuple[Decision, PermissionRule], ...]
    is_exact: bool

    def of(self, decision: Decision) -> tuple[PermissionRule, ...]:
        return tuple(rule for found, rule in self.rules if found == decision)


def held_rules(
    project: Path | None, home: Path | None, notes: list[str], *, projects_allow: bool = False, own_allow: bool = False
) -> tuple[HeldRule, ...]:
    """The rules of the project's files and of the person's own. Adds to `notes` what holds, and what is unclear.

    projects_allow, own_allow: whether their rules that allow hold.
    """
    own, *folders = [Path(os.path.realpath(one)) if one is not None else None for one in (home, project)]
    found: list[HeldRule] = []
    for folder in filter(None, dict.fromkeys((own, *folders))):
        is_own = folder == own
        may_allow = own_allow if is_own else projects_allow
        decisions = (*_STRICTER, _ALLOW) if may_allow else _STRICTER
        for name in FILES:
            path = folder / name
            data, problem = _read(path)
            problems = [problem] if problem else []
            shown = f"~/{name}" if is_own else name
            base = path.parent if is_own else folder
            rules = [
                allowing(written, shown, "" if is_own else str(folder))
                if decision == "allow"
                else restricting(decision, written, shown, base)
                for decision, written in _written(data, decisions, shown_path(path), notes, problems)
            ]
            notes += [f"{problem} {UNKNOWN}" for problem in dict.fromkeys(problems)]
            notes += _said(rules, shown)
            found += [*rules, *([_asking(shown)] if problems else [])]
    return tuple(found)


def _written(
    data: Mapping[str, object], decisions: Sequence[Decision], where: str, notes: list[str], problems: list[str]
) -> Iterator[tuple[Decision, str]]:
    """The rules. Adds to `problems` where one that denies or asks cannot be read, to `notes` where one that allows."""
    permissions = data.get("permissions", {})
    if not isinstance(permissions, dict):
        problems.append(f"{where}: permissions is not a JSON object.")
        return
    for decision in decisions:
        entries, what = permissions.get(decision, []), ""
        if not isinstance(entries, list):
            entries, what = [], f"permissions.{decision} is not a list"
        elif not all(isinstance(entry, str) for entry in entries):
            what = f"a rule of permissions.{decision} is not text"
        if what and decision == _ALLOW:
            notes.append(f"{where}: {what}, so it does not hold; correct the file.")
        elif what:
            problems.append(f"{where}: {what}.")
        yield from ((decision, entry) for entry in entries if isinstance(entry, str))


def _asking(file: str) -> HeldRule:
    """The rule that stands for those that cannot be read."""
    origin = f"{file} cannot be read whole, so what it denies is not known"
    rules = tuple[tuple[Decision, PermissionRule], ...](("ask", replace(rule, origin=origin)) for rule in _DENIABLE)
    return HeldRule("ask", "rules that cannot be read", file, rules, is_exact=False)


def restricting(decision: Decision, written: str, file: str, base: Path) -> HeldRule:
    """One rule that denies or asks. `base`: where a pattern that begins with one slash is anchored."""
    found: list[tuple[Decision, PermissionRule]] = []
    is_exact = True
    for one in _of_each_tool(written):
        exact = list(_exact(decision, one, base))
        is_exact &= bool(exact) or _is_of_no_tool(one)
        found += exact or [("ask", rule) for rule in _stricter(one)]
    return _of_file(HeldRule(decision, written, file, tuple(found), is_exact))


def allowing(written: str, file: str, directory: str) -> HeldRule:
    """One rule that allows. `directory`: the only place where its commands are allowed; "": everywhere."""
    found = tuple((_ALLOW, rule) for rule in _allowed(written, directory))
    return _of_file(HeldRule(_ALLOW, written, file, found, bool(found) or _needs_no_rule(written)))


def _of_file(held: HeldRule) -> HeldRule:
    """The same; its rules say where they come from."""
    origin = f"{shown_name(held.written)} in {held.file}"
    return held._replace(rules=tuple((one, replace(rule, origin=origin)) for one, rule in held.rules))


def _parts(written: str) -> tuple[str, str]:
    """The tool of a rule, and what it says of it; "" for both if it is not a rule."""
    match = _RULE.fullmatch(written)
    return (match[1], (match[2] or "").strip()) if match is not None else ("", "")


def _allowed(written: str, directory: str) -> Iterator[PermissionRule]:
    """nca's rules that allow the same or less; none if there are none."""
    tool, what = _parts(written)
    name = tool.lower()
    if not tool or name in _READING or "*" in name:
        return
    if tool.startswith("mcp__"):
        yield from map(PermissionRule, () if what else _outside_tools(tool))
    elif what in _ANY:
        yield from (PermissionRule(tool, directory=directory) for tool in _TOOLS.get(name, ()))
    elif name == "bash" and (command := _plain_command(what)):
        yield PermissionRule("shell", command, directory)
    elif name in _CHANGING and (path := _plain_path(what)):
        yield from (PermissionRule(tool, path, directory) for tool in ("edit_file", "write_file"))
    elif name == "webfetch" and what.lower().startswith("domain:"):
        host = what[len("domain:") :].strip()
        yield from () if not host or "*" in host else (PermissionRule("fetch_url", host.lower()),)


def _needs_no_rule(written: str) -> bool:
    """Reading below the directory is allowed anyway, and what nca does not have needs no rule."""
    tool, what = _parts(written)
    return not what.startswith(("//", "~")) if tool.lower() in _READING else _is_of_no_tool(written)


def _plain_command(pattern: str) -> str:
    """The subject of a rule that covers the same command: alone, or with any arguments (` *` at the end)."""
    plain = re.sub(r"(:| )\*$", "", pattern)
    try:
        words = shlex.split(plain)
    except ValueError:
        return ""
    if not words or "*" in plain or words[0].startswith("/") or shlex.join(words).split() != plain.split():
        return ""
    return plain if plain == pattern else f"{plain} *"


def _plain_path(pattern: str) -> str:
    """The subject of a rule that covers the same file, or all below the same folder."""
    plain = pattern.removeprefix("./")
    folder = plain.removesuffix("/**")
    is_clear = folder and not re.search(r"[*?\[\]{}!#\\\0]", folder) and not folder.startswith(("/", "~"))
    return plain if is_clear and ".." not in folder.split("/") else ""


def _of_each_tool(written: str) -> list[str]:
    """The rule by itself, or if `*` in its name stands for several tools, the rule of each of them."""
    tool, what = _parts(written)
    if "*" not in tool or tool.startswith("mcp__") or (not tool.strip("*") and what in _ANY):
        return [written]
    names = sorted(name for name in {*_TOOLS, *_WITHOUT} if fnmatchcase(name, tool.lower()))
    own = [written] if not names or _may_be_of_a_server(tool) else []
    return own + [f"{name}({what})" if what else name for name in names]


def _may_be_of_a_server(tool: str) -> bool:
    """Whether the name, which may hold `*`, may be that of a tool of an MCP server."""
    begins, star, _ = tool.partition("*")
    return begins.startswith("mcp__") or (bool(star) and "mcp__".startswith(begins))


def _exact(decision: Decision, written: str, base: Path) -> Iterator[tuple[Decision, PermissionRule]]:
    """nca's rules that mean the same, or more where nca judges more strictly; none if there are none."""
    named, what = _parts(written)
    name = named.lower()
    if not named:
        return
    if _may_be_of_a_server(named):
        if not what:
            yield from ((decision, PermissionRule(tool)) for tool in _outside_tools(named))
    elif what in _ANY:
        yield from ((decision, PermissionRule(tool)) for tool in _TOOLS.get(name, ()))
        if name == "read":
            # Commands read files as well, and nca cannot recognize all that do.
            yield "ask", PermissionRule("shell")
    elif name in _READING:
        yield from ((decision, PermissionRule("*", paths=path)) for path in file_patterns(what, base))
    elif name in _CHANGING:
        for path in file_patterns(what, base):
            yield from ((decision, PermissionRule(tool, paths=path)) for tool in ("edit_file", "write_file"))
            # A command that names the file may change it or not: the person decides.
            yield "ask", PermissionRule("shell", paths=path, for_changes=True)
    elif name == "bash":
        yield decision, PermissionRule("shell", pattern=re.sub(r":\*$", " *", what))
    elif name == "webfetch" and what.lower().startswith("domain:") and what[len("domain:") :].strip():
        yield decision, PermissionRule("fetch_url", pattern=what[len("domain:") :].strip())


def _stricter(written: str) -> Iterator[PermissionRule]:
    """The calls to ask about for an untranslatable rule: its tool's, or all that it may deny."""
    tool, _ = _parts(written)
    if not tool or tool.lower() in _READING:
        yield from _SHOWING if tool else _DENIABLE
    elif _may_be_of_a_server(tool):
        yield from map(PermissionRule, _outside_tools(tool))
    elif tool.lower() in _TOOLS:
        yield from map(PermissionRule, _TOOLS[tool.lower()])
    elif not _is_of_no_tool(written):
        yield PermissionRule("*", for_changes=True)


def _is_of_no_tool(written: str) -> bool:
    name = _parts(written)[0].lower()
    return name in _WITHOUT and name not in _CHANGING | _READING


def _outside_tools(name: str) -> Sequence[str]:
    """A server's name alone means all its tools."""
    is_server = name.startswith("mcp__") and "__" not in name.removeprefix("mcp__")
    return (name, f"{name}__*") if is_server and not name.endswith("*") else (name,)


def file_patterns(pattern: str, base: Path) -> list[str]:
    """The patterns as a rule's `paths`; none if .gitignore would read them as something else."""
    if pattern.startswith(("!", "#")) or "\0" in pattern or "\n" in pattern or _takes_long(pattern):
        return []
    if pattern.startswith("//"):
        pattern = "/" + pattern.lstrip("/")
    elif pattern.startswith("/"):
        pattern = f"{_escaped(base)}{pattern}"
    while pattern.startswith("./"):
        pattern = pattern[2:].lstrip("/")
    if not pattern.strip("/."):
        return []
    found = [pattern, *(one for one in _expanded(pattern) if one != pattern)]
    return found if all(map(is_file_pattern, found)) else []


def _takes_long(pattern: str) -> bool:
    """Whether it has so many wildcards that to compare it with a long name could take years."""
    parts = pattern.split("/")
    return parts.count("**") > _MOST_WILDCARDS or any(
        part.count("*") > _MOST_WILDCARDS for part in parts if part != "**"
    )


def _escaped(folder: Path) -> str:
    return re.sub(r"([\\*?\[])", r"\\\1", str(folder))


def _expanded(pattern: str) -> list[str]:
    """Each choice of `{a,b}`. Claude Code takes braces literally; whoever wrote them meant this."""
    pieces = _BRACES.split(pattern)
    choices = [piece.split(",") if number % 2 else [piece] for number, piece in enumerate(pieces)]
    found = ["".join(chosen) for _, chosen in zip(range(_MOST_EXPANSIONS), product(*choices), strict=False)]
    return found if len(pieces) > 1 else []


def _said(rules: Sequence[HeldRule], file: str) -> Iterator[str]:
    exact = [rule for rule in rules if rule.is_exact]
    words = []
    for decision in (*_STRICTER, _ALLOW):
        if count := sum(rule.decision == decision and (decision != "allow" or bool(rule.rules)) for rule in exact):
            words.append(counted(count, f"{decision} rule"))
    if words:
        holds = "holds" if len(words) == 1 and words[0].startswith("1 ") else "hold"
        yield UsualNotice(f"{in_one(words)} of {file} {holds} here.")
    others = [rule for rule in rules if not rule.is_exact]
    if wider := list(dict.fromkeys(shown_name(rule.written) for rule in others if rule.decision == "allow")):
        allow = "allows" if len(wider) == 1 else "allow"
        yield UsualNotice(f"{file}: {some_of(wider, _MOST_NAMED)} {allow} more than a rule of nca can, so nca asks.")
    if unclear := list(dict.fromkeys(shown_name(rule.written) for rule in others if rule.decision != "allow")):
        asked = "are not clear to nca, so it asks" if len(unclear) > 1 else "is not clear to nca, so it asks"
        yield f"{file}: {some_of(unclear, _MOST_NAMED)} {asked} about every call that may be meant."
