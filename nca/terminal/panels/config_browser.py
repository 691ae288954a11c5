"""The settings as a list: groups, search, changed settings, and values that are edited in place.

Settings as text: values as a person writes them, lists of changes, groups and search results.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from prompt_toolkit.document import Document
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Column
from rich.text import Text

from nca.config.overrides import nearest
from nca.config.schema import KEYS, about_section
from nca.errors import NcaError
from nca.terminal.panels.list_panel import Line, Listing, ListPanel, cut, wrapped
from nca.terminal.render.layout import Parted, new_table
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.sessions import place
from nca.terminal.render.theme import PLAIN_WIDTH

if TYPE_CHECKING:
    from nca.config.loaded import LoadedSettings


_NAME_CELLS, _VALUE_CELLS = 24, 22
_WIDE_FROM = 72
"""In a narrower window a row has no remark."""
_ABOUT_LINES, _FACT_LINES = 2, 3
_BROWSING = (
    "{place} · Enter edits · Tab {other} · Ctrl-S saves in the project's file · Esc leaves",
    "{place} · Enter edits · Tab {other} · Ctrl-S saves · Esc",
    "{place} · Enter edits · Ctrl-S saves · Esc leaves",
    "{place} · Enter · Tab · Ctrl-S · Esc",
)
_EDITING = (
    "Enter sets it for this chat · Ctrl-S also saves it in the project's file{tab} · Esc keeps the old value",
    "Enter sets · Ctrl-S saves{tab} · Esc keeps",
    "Enter · Ctrl-S{tab} · Esc",
)


class ConfigBrowser(ListPanel[str, Sequence[str]]):
    """`run` returns a line for each change that was made."""

    most_lines = 30

    def __init__(
        self,
        settings: Callable[[], tuple[LoadedSettings, Mapping[str, str]]],
        change: Callable[[str, str, bool], str],
        theme: str,
    ) -> None:
        """The settings in effect, and by setting what the chat has in place of its value.

        change  sets the value of a setting as written ("": none is given), saves it if told to, and reports the change
        """
        super().__init__(theme)
        self._settings = settings
        self._change = change
        self.rows = ordered()
        self._is_changed_only = False
        self._search = ""
        self._edited = ""
        """The setting that is being edited; "" while the line searches."""
        self._said = ""
        self._done: list[str] = []

    def _loaded(self) -> LoadedSettings:
        return self._settings()[0]

    @property
    def label(self) -> str:
        return f"{self._edited} = " if self._edited else "Search: "

    def listing(self, columns: int) -> Listing:
        """Each group comes after its own name: `context.` before the settings of `context`."""
        found, chosen = super().listing(columns), self.chosen
        if chosen is None:
            return found
        shown = [row for group, names in groupby(self.rows, section_of) for row in (f"{group}.", *names)]
        return found._replace(
            total=len(shown), row=lambda number: self.row(shown[number], columns), chosen=shown.index(chosen)
        )

    def nothing(self) -> str:
        return "Nothing is changed." if self._is_changed_only and not self._search else "Nothing found."

    def move(self, by: int) -> None:
        if not self._edited:
            self._said = ""
            super().move(by)

    def typed(self, text: str) -> None:
        if not self._edited and text != self._search:
            self._search = text
            self._filter()
            if words := text.strip():
                # The setting that is meant, wherever it stands in the list: names count before descriptions.
                likely = (words.lower(), *containing(words), *matching(words))
                self.selected = next((self.rows.index(name) for name in likely if name in self.rows), self.selected)
                self.keep()
        self._said = ""

    def keys(self) -> Mapping[str, Callable[[], None]]:
        return {"tab": self._turn, "c-s": lambda: self._set(is_saving=True)}

    def enter(self) -> None:
        if self._edited:
            self._set(is_saving=False)
        elif self.chosen and KEYS[self.chosen].value_type.row is not None:
            self._said = "It holds tables. Write them in a file: .nca/config.toml, or your own."
        elif self.chosen:
            self._edited = self.chosen
            self.keep()
            self._type(_as_typed(self._loaded().value(self.chosen)))

    def leave(self) -> None:
        if self._edited:
            self._stop_editing()
        else:
            self.end(self._done)

    def _turn(self) -> None:
        """The next valid value while one is typed; else between all settings and those that are changed."""
        if not self._edited:
            self._is_changed_only, self._said = not self._is_changed_only, ""
            self._filter()
        elif choices := KEYS[self._edited].value_type.choices:
            text = self.buffer.text
            self._type(choices[(choices.index(text) + 1) % len(choices) if text in choices else 0])

    def _set(self, *, is_saving: bool) -> None:
        """Set the typed value, or save the chosen setting unchanged."""
        if self.chosen is None:
            return
        written = (self.buffer.text.strip() or '""') if self._edited else ""
        try:
            said = self._change(self.chosen, written, is_saving)
        except NcaError as error:
            self._said = str(error)
            return
        self._done.append(said)
        if self._edited:
            self._stop_editing()
        self._said = said

    def _stop_editing(self) -> None:
        self._edited = ""
        self._type(self._search)
        self._filter()

    def _type(self, text: str) -> None:
        self.buffer.document = Document(text)

    def _filter(self) -> None:
        loaded = self._loaded()
        found = set(matching(self._search)) if self._search.strip() else set(KEYS)
        self.fill(
            [name for name in ordered() if name in found and (not self._is_changed_only or is_changed(loaded, name))]
        )

    def row(self, row: str, columns: int) -> Line:
        if row.endswith("."):
            group = row.removesuffix(".")
            return [("class:label", group or "others"), ("class:quiet", f"  {about_section(group)}" if group else "")]
        loaded, has = self._settings()
        changed = is_changed(loaded, row)
        value = one_line(value_text(row, loaded.value(row)), _VALUE_CELLS)
        line = [("class:notice", f"{CHANGED if changed else ' '} "), ("", _cells(row.rpartition(".")[2], _NAME_CELLS))]
        is_wide = columns >= _WIDE_FROM
        line.append(("class:accent" if changed else "", _cells(value, _VALUE_CELLS) if is_wide else value))
        if is_wide:
            line.append(("class:quiet", _remark_text(loaded, row, has)))
        return line

    def about(self, columns: int) -> Sequence[Line]:
        """The meaning of the chosen setting; then the last result or refusal, else the valid values."""
        if self.chosen is None:
            return self._way_on(columns)
        key = KEYS[self.chosen]
        lines: list[Line] = [[("", line)] for line in wrapped(f"{key.name}: {key.about}", columns, _ABOUT_LINES)]
        if self._said:
            return lines + [[("class:notice", line)] for line in wrapped(self._said, columns, _FACT_LINES)]
        facts = f"Valid: {key.value_type.valid}. nca's default: {value_text(key.name, key.default)}."
        loaded, has = self._settings()
        facts += f" From: {place(loaded.origin(key.name))}."
        facts += f" This chat has {has[key.name]}." if key.name in has else ""
        return lines + [[("class:quiet", line)] for line in wrapped(facts, columns, _FACT_LINES)]

    def _way_on(self, columns: int) -> Sequence[Line]:
        """If nothing is listed: how something is."""
        way = "Names, descriptions and valid values are searched for each word."
        if self._is_changed_only:
            way = "Only changed settings are searched. Tab shows all." if self._search else "Tab shows all settings."
        elif near := nearest(self._search):
            way = f"Did you mean {near}? {way}"
        return [[("class:quiet", line)] for line in wrapped(way, columns, _ABOUT_LINES)]

    def key_texts(self) -> Sequence[str]:
        if self._edited:
            tab = " · Tab next" if KEYS[self._edited].value_type.choices else ""
            return [text.format(tab=tab) for text in _EDITING]
        other = "shows all" if self._is_changed_only else "only changed"
        if not self.rows:
            return [f"Tab {other} · Esc leaves", "Tab · Esc"]
        place = f"{self.selected + 1} of {len(self.rows)}"
        return [text.format(place=place, other=other) for text in _BROWSING]


def _as_typed(value: Any) -> str:
    """A value as it can be typed again: whole, and without commas in numbers."""
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return plain(value) if isinstance(value, bool | float) else str(value)


def _cells(text: str, cells: int) -> str:
    return cut(text, cells - 1) + " "


CHANGED = "•"
"""Before a setting that is not as nca has it, so that it can be told without colours."""
_VALUE_COLUMNS = 24
_MEANING = re.compile(r"\b(?:0|Empty): (.+?)\.(?= |$)")
"""How a setting's description says what 0 or an empty value means."""
_HOW = "/config GROUP lists one group · /config WORD searches · /config KEY explains one setting"


def ordered() -> list[str]:
    """All settings, those of a group first: what has none, such as `profile`, is seldom what a person looks for."""
    return sorted(KEYS, key=lambda name: not section_of(name))


def overview(loaded: LoadedSettings, has: Mapping[str, str]) -> RenderableType:
    """The changed settings, and the groups: one screen, however many settings there are."""
    changed = [name for name in KEYS if is_changed(loaded, name)]
    right = Column(justify="right", no_wrap=True)
    table = new_table(Column(no_wrap=True), right, Column(overflow="fold"))
    sections = dict.fromkeys(section_of(name) for name in KEYS)
    for section in sections:
        if section:
            count = sum(section_of(name) == section for name in KEYS)
            table.add_row(Text(section, style="accent"), f"{count}", about_section(section))
    above = listed(loaded, changed, has) if changed else Text("All settings have their defaults.")
    return Group(above, Text(""), table, Parted(_HOW, style="quiet"))


def listed(loaded: LoadedSettings, names: Sequence[str], has: Mapping[str, str]) -> RenderableType:
    """One a row: a mark if it is changed, name, value; and what the chat `has` instead, its origin, or its meaning.

    In a narrow window the meaning stands below.
    """
    width = shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns
    if width - max(map(len, names), default=0) - 4 < 2 * _VALUE_COLUMNS:
        return Group(*(line for name in names for line in _stacked(loaded, name, has)))
    value, about = Column(max_width=_VALUE_COLUMNS, overflow="fold"), Column(ratio=1, overflow="fold")
    table = new_table(Column(no_wrap=True), Column(no_wrap=True), value, about, gap=1)
    for name in names:
        mark = CHANGED if is_changed(loaded, name) else ""
        table.add_row(mark, name, _value(loaded, name), _remark(loaded, name, has))
    return table


def _stacked(loaded: LoadedSettings, name: str, has: Mapping[str, str]) -> tuple[RenderableType, ...]:
    mark = CHANGED if is_changed(loaded, name) else " "
    line = Text(f"{mark} {name}  ").append_text(_value(loaded, name))
    return line, Padding(_remark(loaded, name, has), (0, 0, 0, 4))


def _value(loaded: LoadedSettings, name: str) -> Text:
    value = one_line(value_text(name, loaded.value(name)))
    return Text(value, style="accent" if is_changed(loaded, name) else "")


def _remark(loaded: LoadedSettings, name: str, has: Mapping[str, str]) -> Parted:
    return Parted(_remark_text(loaded, name, has), style="quiet")


def _remark_text(loaded: LoadedSettings, name: str, has: Mapping[str, str]) -> str:
    remark = place(loaded.origin(name)) if is_changed(loaded, name) else KEYS[name].about
    return f"this chat has {has[name]} · {remark}" if name in has else remark


def matching(words: str) -> list[str]:
    """The settings that speak of all these words, in the name first."""
    wanted = words.lower().split()

    def said(name: str) -> str:
        key = KEYS[name]
        return " ".join((name, key.about, key.unit, *key.value_type.choices)).lower()

    found = [name for name in KEYS if all(word in said(name) for word in wanted)]
    return sorted(found, key=lambda name: not all(word in name for word in wanted))


def containing(typed: str) -> list[str]:
    """The settings with names that contain this, likely ones first: names or last parts that begin
    with it, then other parts that do, then the rest."""
    word = typed.lower().replace("-", "_")

    def rank(name: str) -> int:
        parts = name.split(".")
        if name.startswith(word) or parts[-1].startswith(word):
            return 0
        return 1 if f".{word}" in name else 2 if f"_{word}" in name else 3

    return sorted((name for name in ordered() if word in name), key=rank)


def section_of(name: str) -> str:
    """`context.prune` of `context.prune.protect_tokens`; "" above all tables."""
    return name.rpartition(".")[0]


def shown(value: Any) -> str:
    """A value as a person would write it; an empty text is visible."""
    return plain(value) or '""'


def plain(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case tuple():
            return one_line(", ".join(str(item) for item in value), 200)
        case int():
            return f"{value:,}"
        case float():
            return f"{value:g}"
        case _:
            return one_line(str(value), 200)


def value_text(name: str, value: Any) -> str:
    """The value of a setting with its unit, or with what 0 or an empty value means: `0 (look it up)`."""
    key = KEYS[name]
    if not isinstance(value, bool) and value in (0, "", ()) and (meaning := _MEANING.search(key.about)):
        return f"{shown(value)} ({meaning[1]})"
    unit = key.unit.removesuffix("s") if value == 1 else key.unit
    return f"{shown(value)} {unit}".rstrip()


def is_changed(loaded: LoadedSettings, name: str) -> bool:
    """Whether a setting is not as nca has it."""
    return bool(loaded.value(name) != KEYS[name].default)
