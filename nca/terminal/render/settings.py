"""Settings as text: values as a person writes them, lists of what is changed, groups and search results."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from nca.config.schema import KEYS, about_section
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.tables import new_table
from nca.terminal.render.theme import PLAIN_WIDTH
from nca.terminal.render.word_wrap import Parted

if TYPE_CHECKING:
    from nca.config.loaded import LoadedSettings

CHANGED = "•"
"""Before a setting that is not as nca has it, so that it can be told without colours."""
_VALUE_COLUMNS = 24
_MEANING = re.compile(r"\b(?:0|Empty): (.+?)\.(?= |$)")
"""How a setting's description says what 0 or an empty value means."""
_HOW = "/config GROUP lists one group · /config WORD searches · /config KEY explains one setting"


def ordered() -> list[str]:
    """All settings, those of a group first: what has none, such as `profile`, is seldom what a person looks for."""
    return sorted(KEYS, key=lambda name: not section_of(name))


def overview(loaded: LoadedSettings) -> RenderableType:
    """What is changed, and the groups: one screen, however many settings there are."""
    changed = [name for name in KEYS if is_changed(loaded, name)]
    table = new_table()
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    sections = dict.fromkeys(section_of(name) for name in KEYS)
    for section in sections:
        if section:
            count = sum(section_of(name) == section for name in KEYS)
            table.add_row(Text(section, style="accent"), f"{count}", about_section(section))
    above = listed(loaded, changed) if changed else Text("All settings have their defaults.")
    return Group(above, Text(""), table, Parted(_HOW, style="quiet"))


def listed(loaded: LoadedSettings, names: Sequence[str]) -> RenderableType:
    """One a row: a mark where it is changed, name, value; and where it is from, else what it means.

    What gives way in a narrow window is the meaning; in a still narrower one the value stands below the name.
    """
    width = shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns
    room = width - max(map(len, names), default=0) - 4
    if room < _VALUE_COLUMNS // 2:
        return Group(*(line for name in names for line in _stacked(loaded, name)))
    has_about = room >= 2 * _VALUE_COLUMNS
    table = new_table(gap=1)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(max_width=_VALUE_COLUMNS if has_about else room)
    if has_about:
        table.add_column(ratio=1)
    for name in names:
        changed = is_changed(loaded, name)
        about = one_line(loaded.origin(name)) if changed else KEYS[name].about
        cells = [_value(loaded, name)]
        cells += [Text(about, style="quiet", no_wrap=True, overflow="ellipsis")] if has_about else []
        table.add_row(CHANGED if changed else "", name, *cells)
    return table


def _stacked(loaded: LoadedSettings, name: str) -> tuple[Text, Text]:
    mark = CHANGED if is_changed(loaded, name) else " "
    return Text(f"{mark} {name}"), Text("    ", no_wrap=True, overflow="ellipsis").append_text(_value(loaded, name))


def _value(loaded: LoadedSettings, name: str) -> Text:
    value = one_line(value_text(name, loaded.value(name)))
    style = "accent" if is_changed(loaded, name) else ""
    return Text(value, style=style, no_wrap=True, overflow="ellipsis")


def matching(words: str) -> list[str]:
    """The settings that speak of all these words, in the name first."""
    wanted = words.lower().split()

    def said(name: str) -> str:
        key = KEYS[name]
        return " ".join((name, key.about, key.unit, *key.value_type.choices)).lower()

    found = [name for name in KEYS if all(word in said(name) for word in wanted)]
    return sorted(found, key=lambda name: not all(word in name for word in wanted))


def section_of(name: str) -> str:
    """`context.prune` of `context.prune.protect_tokens`; "" for what stands above all tables."""
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
    return f"{shown(value)} {key.unit}".rstrip()


def is_changed(loaded: LoadedSettings, name: str) -> bool:
    """Whether a setting is not as nca has it."""
    return bool(loaded.value(name) != KEYS[name].default)
