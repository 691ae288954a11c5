"""A rule that allows, written as one line: `nca run --allow RULE`.

`TOOL` or `TOOL SUBJECT`, as `permissions.allow` has them (`shell make test`, `edit_file src/**`), or a rule of Claude
Code's (`Bash(npm run test:*)`). The tool's name says which: nca's tools have small letters.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection

from nca.config.claude_permissions import allowing
from nca.config.document import shown_name
from nca.config.tables import TOOLS, PermissionRule, why_nothing
from nca.errors import UsageError

OPTION = "--allow"
VALID = (
    "Valid: shell, 'shell COMMAND', 'shell PROGRAM *', edit_file, 'edit_file FILE', 'edit_file DIR/**', write_file"
    " (likewise), 'fetch_url HOST', mcp__SERVER__TOOL, or a rule of Claude Code's."
)
_LINE = re.compile(r"([^\s(]+)(?:\((.*)\)|\s+(.*))?", re.DOTALL)
_HAS_SUBJECT = "has a subject, but a rule allows a tool of a server with all its arguments"
_WILD = re.compile(r"[*?\[\]]")


def rules_of_line(line: str, tools: Collection[str]) -> tuple[PermissionRule, ...]:
    """The rules for one line; none if what it allows needs no rule. Raises UsageError.

    tools  the names of nca's own tools
    """
    match = _LINE.fullmatch(line.strip())
    if match is None:
        raise _wrong(line, "is not a rule")
    tool, subject = match[1], (match[2] or match[3] or "").strip()
    if tool in tools or tool == "*" or (tool.startswith("mcp__") and subject):
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
    known = {name.lower(): name for name in (*tools, *TOOLS)}
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
