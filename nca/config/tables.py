"""Settings that are lists of tables: `[[context.section]]` and `[[context.inject]]`.

Each row is a frozen dataclass whose fields are settings, so that the file's errors, the example and the reference
come from one place. A list of a later layer replaces an earlier one as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar

from nca.config import value_types
from nca.config.document import shown_name, shown_value
from nca.config.fields import setting
from nca.config.value_types import OUTSIDE, InvalidValue, ValueType, lies_inside


@dataclass(frozen=True, slots=True)
class Row:
    """One table of such a list. Raises ValueError where the fields do not suit each other."""

    EXAMPLE: ClassVar[tuple[str, ...]] = ()
    """Lines for the example file."""

    def plain(self) -> dict[str, Any]:
        """The fields that say something, as TOML and JSON can hold them."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {name: value for name, value in values.items() if value != _default(type(self), name)}


@dataclass(frozen=True, slots=True)
class Section(Row):
    """A part of the system prompt, under its own heading (seed 4: ContextSection)."""

    EXAMPLE: ClassVar[tuple[str, ...]] = ('label = "Role"', 'text = "You are a senior engineer."', "priority = 0")

    label: str = setting("", value_types.one_line(), "The heading: `## Label`.")
    text: str = setting("", value_types.text(), "What stands under it; or `file`.")
    file: str = setting(
        "", value_types.text(), "The file whose text stands under it, relative to the project's directory."
    )
    priority: int = setting(0, value_types.whole(-1_000_000, 1_000_000), "Lower stands first; equals in their order.")

    def __post_init__(self) -> None:
        if not self.label.strip():
            raise ValueError("label is missing")
        if bool(self.text.strip()) == bool(self.file.strip()):
            raise ValueError("either text or file must be given" + (", not both" if self.text.strip() else ""))

    def __str__(self) -> str:
        return f"{self.label} ({self.file or 'text'}, priority {self.priority})"


@dataclass(frozen=True, slots=True)
class Injection(Row):
    """A reminder that comes with the person's message when it is due (seed 4: InjectionTrigger)."""

    EXAMPLE: ClassVar[tuple[str, ...]] = ("every_turns = 5", 'text = "Keep answers short."')

    every_turns: int = setting(0, value_types.whole(1, 1_000_000), "Due at every so many turns.", unit="turns")
    over_tokens: int = setting(0, value_types.whole(1), "Due when the context has grown to this.", unit="tokens")
    over_usage: float = setting(0.0, value_types.ratio(), "Due when the context's usage has grown to this.")
    text: str = setting("", value_types.text(), "What the model is reminded of.")

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


@dataclass(frozen=True, slots=True)
class PermissionRule(Row):
    """Calls that a person allows or denies once for all: a tool, and what it is done to. No pattern but `/**`."""

    EXAMPLE: ClassVar[tuple[str, ...]] = ('tool = "edit_file"', 'subject = "src/**"', 'directory = "/home/me/project"')

    tool: str = setting("", value_types.one_line(), "The tool's name; `*` is every tool.")
    subject: str = setting(
        "", value_types.text(), "The path, command, address or host, exactly; `DIR/**` is all below DIR. Empty: any."
    )
    directory: str = setting("", value_types.text(), "Only for chats in this directory. Empty: everywhere.")

    def __post_init__(self) -> None:
        if not self.tool:
            raise ValueError("tool is missing")

    def __str__(self) -> str:
        where = f" in {self.directory}" if self.directory else ""
        return f"{self.tool} {self.subject or '(any)'}{where}"


AnyRow = TypeVar("AnyRow", bound=Row)


def tables(row: type[Row]) -> ValueType:
    """A list of `row`s. Refuses with InvalidValue, whose path is the row's number (from 1) and the field."""
    names = ", ".join(item.name for item in fields(row))

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


def read_row(row: type[AnyRow], raw: Any, number: int | str) -> AnyRow:
    """One table; `number` is its place in the list, or its name. Refuses with InvalidValue."""
    if isinstance(raw, row):
        return raw
    if not isinstance(raw, Mapping):
        raise InvalidValue(f" {number} = {shown_value(raw)} is no table.", str(number))
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


def _default(row: type[Row], name: str) -> Any:
    return next(item.default for item in fields(row) if item.name == name)
