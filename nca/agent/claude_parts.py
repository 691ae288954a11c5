"""The parts of a Claude Code set-up: which of them nca uses, and a line that names those that it does not.

The table in docs/other-agents.md is this one; a test compares them. Settings of other agents
(nca.config.other_agents) are named in the same line.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from nca.agent.instruction_files import Project, imports, real_home
from nca.agent.project_instructions import AGENTS_FILES, output_style, rule_files
from nca.config.claude_permissions import claude_files
from nca.config.claude_settings import agent_models, taken
from nca.config.document import shown_name
from nca.config.other_agents import unused_settings
from nca.humanize import some_of
from nca.safe_files import open_ordinary

USED, AT_ONCE, ONCE_TRUSTED, NOT_USED = "used", "used at once", "once trusted", "not used"
WITH_SETTING = "with `agent.use_claude_home`"
OUTSIDE = "outside of a repository"
"""Below the home directory the search for instructions goes up to it, unless a repository ends it."""
EITHER = f"{WITH_SETTING}, or {OUTSIDE}"
OWN_FILE = ".claude/CLAUDE.md"
PASSED_OVER = "CLAUDE.md"
"""`_parts` names it only where it is not read."""
_OTHER = "any other setting"
_MOST_NAMED = 12
_POINTER_BYTES = 100
_LOOKED_AT_BYTES = 65_536


class Part(NamedTuple):
    """How nca uses a part in a project's folder, and in the person's own `~/.claude`."""

    name: str
    project: str = NOT_USED
    own: str = NOT_USED


_SETTINGS = (
    Part("permissions.deny", AT_ONCE, AT_ONCE),
    Part("permissions.ask", AT_ONCE, AT_ONCE),
    Part("permissions.allow", ONCE_TRUSTED, WITH_SETTING),
    Part("permissions.defaultMode", ONCE_TRUSTED, WITH_SETTING),
    Part("permissions.additionalDirectories", ONCE_TRUSTED, WITH_SETTING),
    Part("hooks", ONCE_TRUSTED, WITH_SETTING),
    Part("statusLine", ONCE_TRUSTED, WITH_SETTING),
    Part("env", ONCE_TRUSTED, WITH_SETTING),
    Part("model", ONCE_TRUSTED, WITH_SETTING),
    Part("outputStyle", USED, WITH_SETTING),
    Part(_OTHER),
)
_FILES = (
    Part(PASSED_OVER, "used if there is no AGENTS.md", EITHER),
    Part("CLAUDE.local.md", USED, OUTSIDE),
    Part("rules", USED, EITHER),
    Part("rules with paths", USED, WITH_SETTING),
)
_FOLDERS = (
    Part("commands", USED, USED),
    Part("skills", USED, USED),
    Part("agents", USED, USED),
    Part("models of agents", ONCE_TRUSTED, WITH_SETTING),
    Part("output-styles", "the chosen one", "the chosen one"),
)
"""Folders of Markdown files in `.claude`."""
PARTS = (*_SETTINGS, *_FILES, *_FOLDERS)
_SETTING = {part.name: part for part in _SETTINGS}
_FOLDER = {part.name: part for part in _FOLDERS}
_FILE = {part.name: part for part in _FILES}


def unused_parts(directory: Path, home: Path | None, *, runs_own: bool) -> str:
    """One line that names the unused parts; "" if there are none.

    home: the person's; None: only the project's set-up is looked at. runs_own: the setting agent.use_claude_home.
    """
    directory = Path(os.path.realpath(directory))
    home = Path(os.path.realpath(home)) if home is not None else None
    reads_home = Project.around(directory, home or real_home()).top == home
    needed = set() if runs_own else {WITH_SETTING, *(() if reads_home else (EITHER,))}
    in_vain = {NOT_USED, *needed, *(() if reads_home else (OUTSIDE,))}
    own = [
        f"{shown} (with agent.use_claude_home only)" if part.own in needed else shown
        for part, shown in (_parts(home, home, runs_own, is_read=reads_home) if home is not None else ())
        # In the home directory itself, its set-up is the project's as well.
        if part.name == PASSED_OVER or (part.own in in_vain and (directory != home or part.project == NOT_USED))
    ]
    theirs = [
        shown
        for part, shown in (_parts(directory, home, runs_own) if directory != home else ())
        if part.name == PASSED_OVER or part.project == NOT_USED
    ]
    others = unused_settings(directory) if directory != home else ()
    found = ((".claude", theirs), *others, ("~/.claude", own))
    places = [f"of {name}: {some_of(names, _MOST_NAMED)}" for name, names in found if names]
    return f"Not used here {'; '.join(places)}." if places else ""


def _parts(folder: Path, home: Path | None, runs_own: bool, *, is_read: bool = True) -> Iterator[tuple[Part, str]]:
    """Each part that is there and says something, and how it is shown. is_read: whether instructions there are."""
    is_own = folder == home
    settings, why_not = dict[str, Any](), dict[str, str]()
    for _, data in claude_files(folder, []):
        settings |= dict(_settings(data))
        why_not |= {one.part: one.why_not for one in taken(data, os.environ)}
    name, file = output_style(folder, home if runs_own else None)
    if name.lower() not in ("", "default") and file is None:
        why_not["outputStyle"] = f"{shown_name(name)} is not a file"
    for name in settings:
        part = _SETTING.get(name, _SETTING[_OTHER])
        why = why_not.get(name, "")
        yield (Part(name), f"{name} ({why})") if why else (part, shown_name(name))
    for name, counts in _passed_over(folder, is_read=is_read, reads_own=is_own and runs_own):
        yield _FILE[PASSED_OVER], f"{name} ({counts} counts)" if counts else name
    rules = rule_files(folder)
    for name, found in (("rules", rules.always), ("rules with paths", rules.with_paths)):
        if found:
            yield _FILE[name], f"{name} ({len(found)})"
    known, unknown = agent_models(folder, os.environ)
    if known:
        yield _FOLDER["models of agents"], f"models of agents ({len(known)})"
    if unknown:
        yield Part("models of agents"), f"models of agents ({', '.join(dict.fromkeys(unknown.values()))})"


def _settings(data: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The settings of a file that say something; those of `permissions` each for itself."""
    for name, value in data.items():
        if name == "permissions" and isinstance(value, dict):
            yield from ((f"{name}.{below}", one) for below, one in value.items() if _says_something(one))
        elif not name.startswith("$") and _says_something(value):
            yield name, value


def _says_something(value: Any) -> bool:
    return value is not None and value not in ("", [], {})


def _passed_over(folder: Path, *, is_read: bool, reads_own: bool) -> Iterator[tuple[str, str]]:
    """Instructions for Claude that are not read, each with the file of the folder that counts instead, if one does.

    Of a home directory that is not read, only `.claude/CLAUDE.md` was written for every project.
    """
    if not is_read:
        if not reads_own and _is_file(folder / OWN_FILE):
            yield "CLAUDE.md", ""
        return
    there = [name for name in AGENTS_FILES if _is_file(folder / name)]
    for name in there[1:]:
        if (
            "CLAUDE" in name
            and not (reads_own and name == OWN_FILE)
            and not _is_pointer(folder / name, folder / there[0])
        ):
            yield name, there[0]


def _is_file(path: Path) -> bool:
    return os.path.isfile(path)


def _is_pointer(file: Path, to: Path) -> bool:
    """Whether a file is the other one under a second name, only imports it, or is imported by it."""
    try:
        if file.samefile(to):
            return True
        with open_ordinary(file) as opened:
            if opened.read(_POINTER_BYTES).strip() == f"@{to.name}".encode():
                return True
        with open_ordinary(to) as opened:
            text = opened.read(_LOOKED_AT_BYTES).decode("utf-8", "replace")
        return any(file.samefile(target) for _, target in imports(to, text))
    except (OSError, ValueError):
        return False
