"""`terminal.status`, and settings that are tables: `[[context.section]]`, `[[context.inject]]`, permission rules.

Each row is a frozen dataclass of settings. A list in a later layer replaces the whole earlier one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from string import Formatter
from typing import Any, ClassVar, TypeVar

from nca.config import value_types as types
from nca.config.document import shown_name, shown_value
from nca.config.value_types import OUTSIDE, InvalidValue, Table, ValueType, lies_inside, setting


class Row(Table):
    """One table of a list. Raises ValueError if the fields do not fit each other."""

    EXAMPLE: ClassVar[tuple[str, ...]] = ()
    """Lines of the example file."""

    def plain(self) -> dict[str, Any]:
        """The fields that differ from their defaults, as TOML and JSON values."""
        return {item.name: value for item in fields(self) if (value := getattr(self, item.name)) != item.default}


class Section(Row):
    """A section of the system prompt with its own heading, like Neuron's ContextSection."""

    EXAMPLE: ClassVar[tuple[str, ...]] = ('label = "Role"', 'text = "You are a senior engineer."', "priority = 0")

    label: str = setting("", types.one_line())
    text: str = setting("", types.text())
    file: str = setting("", types.text())
    priority: int = setting(0, types.whole(-1_000_000, 1_000_000))

    def __post_init__(self) -> None:
        if not self.label.strip():
            raise ValueError("label is missing")
        if bool(self.text.strip()) == bool(self.file.strip()):
            raise ValueError("either text or file must be given" + (", not both" if self.text.strip() else ""))

    def __str__(self) -> str:
        return f"{self.label} ({self.file or 'text'}, priority {self.priority})"


TOOLS: Mapping[str, str] = {
    "Bash": "shell",
    "Read": "read_file",
    "Write": "write_file",
    "Edit": "edit_file",
    "Grep": "grep",
    "Glob": "glob",
    "LS": "list_directory",
    "WebFetch": "fetch_url",
    "TodoWrite": "todo",
    "Task": "task",
    "Skill": "skill",
}
"""nca's tools by Claude Code's names for them."""
OWN_TOOLS = frozenset({*TOOLS.values(), "job", "recall", "compact"})
"""All tools of nca's own."""


class Injection(Row):
    """A reminder that is sent with the user's message when due, like Neuron's InjectionTrigger."""

    EXAMPLE: ClassVar[tuple[str, ...]] = ("every_turns = 5", 'text = "Keep answers short."')

    every_turns: int = setting(0, types.whole(1, 1_000_000), unit="turns")
    over_tokens: int = setting(0, types.whole(1))
    over_usage: float = setting(0.0, types.ratio())
    text: str = setting("", types.text())

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise ValueError("text is missing")
        if sum(map(bool, (self.every_turns, self.over_tokens, self.over_usage))) != 1:
            raise ValueError("exactly one of every_turns, over_tokens and over_usage must be given")

    def __str__(self) -> str:
        if self.every_turns:
            return f"every {self.every_turns} turns: {self.text}"
        when = f"{self.over_tokens:,} tokens" if self.over_tokens else f"{self.over_usage:.0%}"
        return f"from {when} on: {self.text}"


def tool_name() -> ValueType:
    """The name of a tool; one of Claude Code's stands for nca's."""
    base = types.one_line()

    def read(value: Any) -> str:
        name: str = base.read(value)
        return TOOLS.get(name, name)

    return base._replace(read=read)


BELOW = "/**"
"""Ends the subject of a rule that covers everything below a directory. A subject has no other patterns."""


class PermissionRule(Row):
    """Tool calls to allow, ask about or deny: a tool and its subject, with `/**` as the only pattern.

    A rule that asks or denies may have `paths` or `pattern` instead. One that allows may not: it must mean exactly what
    the person saw.

    origin       the rule of another program that this one translates, and its file; "" for the person's own
    for_changes  not for calls that only read
    """

    EXAMPLE: ClassVar[tuple[str, ...]] = ('tool = "edit_file"', 'subject = "src/**"', 'directory = "/home/me/project"')

    tool: str = setting("", tool_name())
    subject: str = setting("", types.text())
    directory: str = setting("", types.text())
    paths: str = setting("", types.text())
    pattern: str = setting("", types.text())
    origin: str = ""
    for_changes: bool = False

    def __post_init__(self) -> None:
        if not self.tool:
            raise ValueError("tool is missing")
        if sum(map(bool, (self.subject, self.paths, self.pattern))) > 1:
            raise ValueError("only one of subject, paths and pattern may be given")
        if self.paths and not is_file_pattern(self.paths):
            raise ValueError("paths is not a pattern of .gitignore for files")

    def __str__(self) -> str:
        where = f" in {self.directory}" if self.directory else ""
        return self.origin or f"{self.tool} {self.subject or self.paths or self.pattern or '(any)'}{where}"

    @property
    def is_for_all(self) -> bool:
        """Whether it covers every call of its tool."""
        return not (self.subject or self.paths or self.pattern)


def is_file_pattern(text: str) -> bool:
    """Whether .gitignore would take it for a pattern that names files: no comment, no exception, no error."""
    import pathspec

    try:
        return any(one.include for one in pathspec.GitIgnoreSpec.from_lines([text]).patterns)
    except ValueError:
        return False


AnyRow = TypeVar("AnyRow", bound=Row)


def tables(row: type[Row]) -> ValueType:
    """A list of tables. The path of an InvalidValue is the number of the table, from 1, and the field."""
    names = ", ".join(item.name for item in fields(row) if "value_type" in item.metadata)

    def read(value: Any) -> tuple[Row, ...]:
        if not isinstance(value, list | tuple):
            raise ValueError("not valid")
        return tuple(read_row(row, item, number) for number, item in enumerate(value, 1))

    def confine(value: tuple[Row, ...]) -> None:
        for number, one in enumerate(value, 1):
            file = getattr(one, "file", "")
            if file and not lies_inside(file):
                raise InvalidValue(f" {number}, file = {shown_value(file)}: {OUTSIDE}", str(number), "file")

    return ValueType(f"a list of tables with {names}, in a file", read, confine=confine, row=row)


def exact_rules() -> ValueType:
    """A list of permission rules without patterns, each of which some call could match."""
    base = tables(PermissionRule)

    def read(value: Any) -> tuple[PermissionRule, ...]:
        rules: tuple[PermissionRule, ...] = base.read(value)
        for number, rule in enumerate(rules, 1):
            if rule.paths or rule.pattern:
                field = "paths" if rule.paths else "pattern"
                raise InvalidValue(
                    f" {number}: {field} is for permissions.deny and permissions.ask.", str(number), field
                )
            if why := why_nothing(rule):
                said = f" {number}: subject = {shown_value(rule.subject)} could allow nothing: it {why}."
                raise InvalidValue(said, str(number), "subject")
        return rules

    return base._replace(valid="a list of tables with tool, subject, directory, in a file", read=read)


def why_nothing(rule: PermissionRule) -> str:
    """Why a rule that allows matches no call, and what to write instead; "" if it may match one.

    A file may have any name but one with a pattern, and a command may have patterns of the shell behind its program.
    """
    subject, program = rule.subject, rule.subject.partition(" ")[0]
    if subject in ("*", "**"):
        return f"is no pattern; {rule.tool} without a subject allows every call"
    if rule.tool in ("edit_file", "write_file"):
        if subject.endswith("/"):
            return f"names a folder; write {subject}** for all that is below it"
        return "has a pattern that a rule cannot have" if set("*?") & set(subject.removesuffix(BELOW)) else ""
    if rule.tool == "fetch_url" and "*" in subject and "/" not in subject:
        return "has a pattern; a rule that allows names one host"
    if rule.tool != "shell":
        return ""
    if subject.endswith(":*"):
        return f"ends as in Claude Code; write {subject[:-2]} *"
    if subject[:1] in ("'", '"') and subject.find(subject[0], 1) == len(subject) - 1 and " " in subject:
        return f"is in quotes; write {subject[1:-1]}"
    return "begins with no program" if "*" in program or program.endswith("/") else ""


def strict_rules() -> ValueType:
    """A list of permission rules that deny or ask. A subject with a pattern that it cannot have would match nothing."""
    base = tables(PermissionRule)

    def read(value: Any) -> tuple[PermissionRule, ...]:
        rules: tuple[PermissionRule, ...] = base.read(value)
        for number, rule in enumerate(rules, 1):
            if set("*?[") & set(rule.subject.removesuffix(BELOW).removesuffix(" *")):
                said = f" {number}: subject = {shown_value(rule.subject)} has a pattern that a subject cannot have;"
                valid = "`pattern` is for commands and hosts, `paths` for files."
                raise InvalidValue(f"{said} {valid}", str(number), "subject")
        return rules

    return base._replace(read=read)


def read_row(row: type[AnyRow], raw: Any, number: int | str) -> AnyRow:
    """Read one table; `number` is its place in the list, or its name. Raises InvalidValue."""
    if isinstance(raw, row):
        return raw
    if not isinstance(raw, Mapping):
        raise InvalidValue(f" {number} = {shown_value(raw)} is not a table.", str(number))
    known: dict[str, ValueType] = {
        item.name: item.metadata["value_type"] for item in fields(row) if "value_type" in item.metadata
    }
    values: dict[str, Any] = {}
    for name, value in raw.items():
        if name not in known:
            import difflib

            near = difflib.get_close_matches(str(name)[:80], known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"valid: {', '.join(known)}."
            raise InvalidValue(f" {number}: there is no field {shown_name(str(name))}; {hint}", str(number), str(name))
        try:
            values[name] = known[name].read(value)
        except ValueError:
            what = f"{name} = {shown_value(value)} is not valid; valid: {known[name].valid}."
            raise InvalidValue(f" {number}: {what}", str(number), name) from None
    try:
        return row(**values)
    except ValueError as error:
        raise InvalidValue(f" {number}: {error}.", str(number)) from None


NAMES = (
    *("model", "usage", "gauge", "percent", "tokens", "mode", "auto", "cost", "session"),
    *("activity", "directory", "branch", "cache", "limits", "command"),
)


def parts_of(text: str) -> list[tuple[str, str]]:
    """The text before each name, and the name; "" for the text after the last one. Raises ValueError."""
    found: list[tuple[str, str]] = []
    before = ""
    for literal, name, form, conversion in Formatter().parse(text):
        before += literal
        if name is None:
            continue
        if form or conversion or name not in NAMES:
            raise InvalidValue(f" has no {{{name}}}; valid names: {', '.join(NAMES)}.")
        found.append((before, name))
        before = ""
    return [*found, (before, "")] if before else found


def status_format() -> ValueType:
    valid = "one line of text with names in braces: " + ", ".join(NAMES)

    def read(value: Any) -> str:
        if not isinstance(value, str) or (value and not value.isprintable()):
            raise ValueError("not valid")
        parts_of(value)
        return value.strip()

    return ValueType(valid, read)
