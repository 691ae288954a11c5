"""nca's settings in Claude Code's settings files (nca.config.claude_permissions), as documents.

A project's count once the user trusts them (nca.config.projects), the user's own with `agent.use_claude_home`. Rules of
`permissions` are translated in nca.config.claude_permissions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from nca.config.claude_permissions import claude_files
from nca.config.document import Document, shown_name, shown_path, shown_value
from nca.config.hooks import EVENTS, Hook
from nca.config.tables import read_row
from nca.config.value_types import InvalidValue
from nca.humanize import UsualNotice
from nca.safe_files import open_ordinary, paths_below

KEY_VARIABLE = "ANTHROPIC_API_KEY"
MODELS: Mapping[str, str] = {
    "sonnet": "anthropic/claude-sonnet-5-5",
    "opus": "anthropic/claude-opus-5-5",
    "haiku": "anthropic/claude-haiku-5-5",
}
"""Claude Code's short names; a test looks each up in the price map."""
_MODES = {"default": "ask", "acceptEdits": "accept-edits", "plan": "plan"}
AGENTS_FOLDER = ".claude/agents"
MOST_AGENTS = 100
_FRONT_BYTES = 16 * 1024
_FIELD = re.compile(r"(?m)^(name|model):[ \t]*([\w./\[\]:\"'-]+)[ \t]*\r?$")
ALLOW, MODE = "permissions.allow", "agent.permission"


class Taken(NamedTuple):
    """A part of a file as a setting of nca's, or `why_not`."""

    part: str
    key: str = ""
    value: Any = None
    why_not: str = ""


def claude_documents(folder: Path, env: Mapping[str, str], notes: list[str], *, is_own: bool) -> Iterator[Document]:
    """The documents of each file below a project or the user's home. Adds to `notes` what was left out.

    A project's grants hold settings that only the user may allow.
    """
    for path, data in claude_files(folder, notes):
        events = data.get("hooks")
        settings, grants = dict[str, Any](), dict[str, Any]()
        for one in taken(data, env):
            if not one.why_not:
                _put(grants if one.key == MODE and not is_own else settings, one.key, one.value)
        if isinstance(events, dict) and (tables := list(_tables(events, path, notes))):
            settings["hooks"] = tables
        if not is_own and (rules := _texts(_permissions(data).get("allow"))):
            _put(grants, ALLOW, rules)
        if settings:
            yield Document(path, "", settings)
        if grants:
            yield Document(path, "", grants, is_grant=True)
    if models := agent_models(folder, env)[0]:
        yield Document(folder / AGENTS_FOLDER, "", {"agent": {"models": models}})


def agent_models(folder: Path, env: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """The models that the agents below a folder name, as NAME=MODEL, and why the others are not used."""
    found, why_not = list[str](), dict[str, str]()
    for path in sorted(paths_below(folder / AGENTS_FOLDER, "*.md"))[:MOST_AGENTS]:
        try:
            with open_ordinary(path) as file:
                front = file.read(_FRONT_BYTES).decode("utf-8-sig", "replace").split("\n---", 1)[0]
        except (OSError, ValueError):
            continue
        fields = {match[1]: match[2].strip("\"'") for match in _FIELD.finditer(front)}
        name, model = fields.get("name", path.stem), fields.get("model", "inherit")
        if model != "inherit" and front.startswith("---"):
            known, why = model_of(model, env)
            if known:
                found.append(f"{name}={known}")
            else:
                why_not[name] = why
    return found, why_not


def taken(data: Mapping[str, Any], env: Mapping[str, str]) -> Iterator[Taken]:
    """The parts of a file that each set one setting, without empty ones."""
    permissions, line, variables = _permissions(data), data.get("statusLine"), data.get("env")
    if mode := permissions.get("defaultMode"):
        known = _MODES.get(mode) if isinstance(mode, str) else None
        yield Taken("permissions.defaultMode", MODE, known, "" if known else shown_value(mode))
    if folders := _texts(permissions.get("additionalDirectories")):
        yield Taken("permissions.additionalDirectories", "tools.readable", folders)
    if isinstance(line, dict) and line.get("type", "command") == "command" and isinstance(line.get("command"), str):
        yield Taken("statusLine", "terminal.status_command", line["command"])
    elif line:
        yield Taken("statusLine", why_not="it is not a command")
    if isinstance(variables, dict) and (texts := list(_variables(variables))):
        yield Taken("env", "tools.variables", texts)
    if (name := data.get("model")) and name != "default":
        found, why_not = model_of(name, env)
        yield Taken("model", "model.name", found, why_not)


def model_of(name: Any, env: Mapping[str, str]) -> tuple[str, str]:
    """nca's name for a model that Claude Code's set-up names, or "" and why it is not used."""
    plain = name.removesuffix("[1m]") if isinstance(name, str) else ""
    found = MODELS.get(plain) or (f"anthropic/{plain}" if plain.startswith("claude-") and "/" not in plain else "")
    if not found:
        return "", f"{shown_value(name)} is not a model that nca knows"
    return (found, "") if env.get(KEY_VARIABLE, "").strip() else ("", f"{shown_name(plain)} needs {KEY_VARIABLE}")


def _permissions(data: Mapping[str, Any]) -> Mapping[str, Any]:
    permissions = data.get("permissions")
    return permissions if isinstance(permissions, dict) else {}


def _texts(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _variables(written: Mapping[str, Any]) -> Iterator[str]:
    for name, value in written.items():
        if isinstance(value, str | int | float) and name.isidentifier() and name.isascii():
            yield f"{name}={str(value).lower() if isinstance(value, bool) else value}"


def _put(settings: dict[str, Any], key: str, value: Any) -> None:
    section, _, name = key.partition(".")
    settings.setdefault(section, {})[name] = value


def _tables(events: dict[str, Any], path: Path, notes: list[str]) -> Iterator[dict[str, Any]]:
    """Each hook that nca can run as a table of `[[hooks]]`."""
    if unknown := [shown_name(event) for event in events if event not in EVENTS]:
        said = f"{shown_path(path)}: hooks for {', '.join(unknown)} do not run: nca has no such event."
        notes.append(UsualNotice(said))
    for event in filter(events.__contains__, EVENTS):
        groups = events[event]
        for group in groups if isinstance(groups, list) else ():
            entries = group.get("hooks") if isinstance(group, dict) else None
            for entry in entries if isinstance(entries, list) else ():
                try:
                    yield _table(event, group.get("matcher") or "", entry)
                except ValueError as error:
                    notes.append(f"{shown_path(path)}: a hook for {event} does not run: {error}.")


def _table(event: str, matcher: Any, entry: Any) -> dict[str, Any]:
    """Raises ValueError, with the reason, for a hook that nca cannot run."""
    kind = entry.get("type", "command") if isinstance(entry, dict) else ""
    if kind not in ("command", "prompt"):
        raise ValueError("only hooks of type command or prompt do")
    table = {
        "event": event,
        "matcher": matcher,
        "condition": entry.get("if") or "",
        "command": entry.get("command", "") if kind == "command" else "",
        "args": entry.get("args") or [] if kind == "command" else [],
        "prompt": entry.get("prompt", "") if kind == "prompt" else "",
        "timeout_seconds": entry.get("timeout") or 0,
        "background": entry.get("async") is True,
    }
    try:
        hook = read_row(Hook, table, "")
        if unknown := hook.without_a_tool():
            raise ValueError(f"there is no tool {shown_name(unknown[0])}")
        return hook.plain()
    except InvalidValue as invalid:
        raise ValueError(str(invalid).strip(" :.")) from None
