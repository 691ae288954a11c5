"""A rule that allows, written as one line: `nca run --allow RULE`.

`TOOL` or `TOOL SUBJECT`, as `permissions.allow` has them (`shell make test`, `edit_file src/**`), or a rule of Claude
Code's (`Bash(npm run test:*)`). The tool's name says which: nca's tools have small letters.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from nca.config.claude_permissions import allowing
from nca.config.document import shown_name, shown_path
from nca.config.tables import BELOW, OWN_TOOLS, TOOLS, PermissionRule, why_nothing
from nca.errors import UsageError

ASKING = {
    "shell": "commands; 'shell make test': only this one; 'shell git *': with any arguments",
    "edit_file": "'edit_file FILE', 'edit_file DIR/**'",
    "write_file": "'write_file FILE', 'write_file DIR/**'",
    "fetch_url": "'fetch_url HOST'",
}
"""The tools of nca that ask before they run, with what a rule may say. A test compares them with the tools."""
OPTION = "--allow"
VALID = (
    "Valid: shell, 'shell COMMAND', 'shell PROGRAM *', edit_file, 'edit_file FILE', 'edit_file DIR/**', write_file"
    " (likewise), 'fetch_url HOST', mcp__SERVER__TOOL, or a rule of Claude Code's."
)
_LINE = re.compile(r"([^\s(]+)(?:\((.*)\)|\s+(.*))?", re.DOTALL)
_HAS_SUBJECT = "has a subject, but a rule allows a tool of a server with all its arguments"
_NO_RULE = "needs no rule: no mode asks about it (tools.readable names folders to read)"
_WILD = re.compile(r"[*?\[\]]")


def rules_of_line(line: str, directory: Path) -> tuple[PermissionRule, ...]:
    """The rules for one line; none if what it allows needs no rule. Raises UsageError.

    directory  the working directory, links resolved
    """
    rules = _rules(line)
    for rule in rules:
        why = _why_not_here(rule, directory) if rule.tool not in OWN_TOOLS or rule.tool in ASKING else _NO_RULE
        if why:
            raise _wrong(line, why)
    return rules


def _why_not_here(rule: PermissionRule, directory: Path) -> str:
    """Why a rule matches no call in this directory; "" if it may match one."""
    if rule.tool not in ("edit_file", "write_file") or not rule.subject:
        return ""
    base = rule.subject.removesuffix(BELOW)
    place = Path(os.path.normpath(directory / os.path.expanduser(base or "/")))  # noqa: PTH111  never raises
    if base == rule.subject and os.path.isdir(place):
        return f"names a folder; write {base}{BELOW} for all that is below it"
    is_above = base != rule.subject and directory.is_relative_to(place)
    is_here = is_above or place.is_relative_to(directory)
    return "" if is_here else f"is outside of {shown_path(directory)}: nca writes only there"


def _rules(line: str) -> tuple[PermissionRule, ...]:
    match = _LINE.fullmatch(line.strip())
    if match is None:
        raise _wrong(line, "is not a rule")
    tool, subject = match[1], (match[2] or match[3] or "").strip()
    if tool in OWN_TOOLS or tool == "*" or (tool.startswith("mcp__") and subject):
        rule = PermissionRule(tool, subject)
        if why := _HAS_SUBJECT if tool.startswith("mcp__") else why_nothing(rule):
            raise _wrong(line, why)
        return (rule,)
    if TOOLS.get(tool) == "shell" and subject and not _WILD.search(subject):
        # Exactly this command, whatever it has in it.
        return (PermissionRule("shell", subject),)
    held = allowing(f"{tool}({subject})" if subject else tool, OPTION, "")
    if held.is_exact:
        return held.of("allow")
    known = {name.lower(): name for name in (*OWN_TOOLS, *TOOLS)}
    if tool.lower() in known:
        raise _wrong(line, "allows more than a rule of nca can")
    import difflib

    near = difflib.get_close_matches(tool.lower()[:80], known, n=1)
    raise UsageError(
        f"{OPTION} {_quoted(line)}: there is no tool {shown_name(tool)}.",
        advice=f"Did you mean {known[near[0]]}?" if near else VALID,
    )


def _wrong(line: str, why: str) -> UsageError:
    return UsageError(f"{OPTION} {_quoted(line)}: it {why}.", advice=VALID)


def _quoted(line: str) -> str:
    return shlex.quote(shown_name(line))
