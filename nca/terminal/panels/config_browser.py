"""The settings as a list: groups, search, what is not as nca has it, and values that are edited in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from prompt_toolkit.document import Document

from nca.config.schema import KEYS, about_section
from nca.errors import NcaError
from nca.terminal.panels.list_panel import Line, Listing, ListPanel, cut, wrapped
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.settings import CHANGED, is_changed, matching, ordered, section_of, value_text

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
    "Enter sets it for this chat · Ctrl-S saves it in the project's file too{tab} · Esc keeps what was",
    "Enter sets · Ctrl-S saves{tab} · Esc keeps",
    "Enter · Ctrl-S{tab} · Esc",
)


class ConfigBrowser(ListPanel[Sequence[str]]):
    """`run` returns a line for each change that was made."""

    most_lines = 30

    def __init__(
        self, loaded: Callable[[], LoadedSettings], change: Callable[[str, str, bool], str], theme: str
    ) -> None:
        """The settings in effect.

        change  sets the value of a setting as written ("": none is given), saves it if told to, and says what was done
        """
        super().__init__(theme)
        self._loaded = loaded
        self._change = change
        self._names = ordered()
        self._chosen = self._names[0]
        self._is_changed_only = False
        self._search = ""
        self._edited = ""
        """The setting whose value is being typed; "" while the line searches."""
        self._said = ""
        self._done: list[str] = []

    @property
    def label(self) -> str:
        return f"{self._edited} = " if self._edited else "Search: "

    def listing(self, columns: int) -> Listing:
        rows = self._rows()
        if not rows:
            nothing = "Nothing is changed." if self._is_changed_only and not self._search else "Nothing found."
            return Listing(1, lambda _: [("class:quiet", nothing)], -1, self._about(columns), self._keys(), [])
        chosen = rows.index(self._chosen)
        return Listing(
            len(rows), lambda place: self._row(rows[place], columns), chosen, self._about(columns), self._keys()
        )

    def move(self, by: int) -> None:
        if self._names and not self._edited:
            place = self._names.index(self._chosen) + by
            self._choose(self._names[max(0, min(len(self._names) - 1, place))])

    def typed(self, text: str) -> None:
        if not self._edited:
            self._search = text
            self._filter()
        self._said = ""

    def keys(self) -> Mapping[str, Callable[[], None]]:
        return {"tab": self._turn, "c-s": lambda: self._set(is_saving=True)}

    def enter(self) -> None:
        if self._edited:
            self._set(is_saving=False)
        elif self._names and KEYS[self._chosen].value_type.row is not None:
            self._said = "It holds tables, which are written in a file: .nca/config.toml, or your own."
        elif self._names:
            self._edited = self._chosen
            self._type(_as_typed(self._loaded().value(self._chosen)))

    def leave(self) -> None:
        if self._edited:
            self._stop_editing()
        else:
            self.end(self._done)

    def _turn(self) -> None:
        """The next valid value while one is typed; else between all settings and those that are changed."""
        if not self._edited:
            self._is_changed_only = not self._is_changed_only
            self._filter()
        elif choices := KEYS[self._edited].value_type.choices:
            text = self.buffer.text
            self._type(choices[(choices.index(text) + 1) % len(choices) if text in choices else 0])

    def _set(self, *, is_saving: bool) -> None:
        """Set what is typed, or save the chosen setting as it is."""
        if not self._names:
            return
        written = (self.buffer.text.strip() or '""') if self._edited else ""
        try:
            said = self._change(self._chosen, written, is_saving)
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
        self._names = [
            name for name in ordered() if name in found and (not self._is_changed_only or is_changed(loaded, name))
        ]
        if self._names and self._chosen not in self._names:
            self._choose(self._names[0])

    def _choose(self, name: str) -> None:
        self._chosen, self._said = name, ""

    def _rows(self) -> list[str]:
        """The names, each group behind its own: `context.` stands before the settings of `context`."""
        return [row for group, names in groupby(self._names, section_of) for row in (f"{group}.", *names)]

    def _row(self, row: str, columns: int) -> Line:
        if row.endswith("."):
            group = row.removesuffix(".")
            return [("class:label", group or "others"), ("class:quiet", f"  {about_section(group)}" if group else "")]
        loaded, changed = self._loaded(), is_changed(self._loaded(), row)
        value = one_line(value_text(row, loaded.value(row)), _VALUE_CELLS)
        line = [("class:notice", f"{CHANGED if changed else ' '} "), ("", _cells(row.rpartition(".")[2], _NAME_CELLS))]
        is_wide = columns >= _WIDE_FROM
        line.append(("class:accent" if changed else "", _cells(value, _VALUE_CELLS) if is_wide else value))
        if is_wide:
            line.append(("class:quiet", one_line(loaded.origin(row)) if changed else KEYS[row].about))
        return line

    def _about(self, columns: int) -> Sequence[Line]:
        """What the chosen setting means; then what was done or refused last, or else what is valid."""
        key = KEYS[self._chosen]
        lines: list[Line] = [[("", line)] for line in wrapped(f"{key.name}: {key.about}", columns, _ABOUT_LINES)]
        if self._said:
            return lines + [[("class:notice", line)] for line in wrapped(self._said, columns, _FACT_LINES)]
        facts = f"Valid: {key.value_type.valid}. nca's default: {value_text(key.name, key.default)}."
        facts += f" From: {one_line(self._loaded().origin(key.name))}."
        return lines + [[("class:quiet", line)] for line in wrapped(facts, columns, _FACT_LINES)]

    def _keys(self) -> Sequence[str]:
        if self._edited:
            tab = " · Tab next" if KEYS[self._edited].value_type.choices else ""
            return [text.format(tab=tab) for text in _EDITING]
        place = f"{self._names.index(self._chosen) + 1} of {len(self._names)}" if self._names else "0"
        other = "shows all" if self._is_changed_only else "only changed"
        return [text.format(place=place, other=other) for text in _BROWSING]


def _as_typed(value: Any) -> str:
    """A value as it can be typed again."""
    match value:
        case bool():
            return "true" if value else "false"
        case tuple():
            return ", ".join(str(item) for item in value)
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def _cells(text: str, cells: int) -> str:
    return cut(text, cells - 1) + " "
