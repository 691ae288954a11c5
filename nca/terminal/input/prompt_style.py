"""How the prompt looks, and what is typed ahead of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding.vi_state import InputMode
from prompt_toolkit.styles import Style
from rich.cells import cell_len, set_cell_size

from nca.terminal.render.sanitize import one_line
from nca.terminal.render.theme import prompt_styles

_VI_MODES = {
    InputMode.NAVIGATION: "N",
    InputMode.INSERT: "I",
    InputMode.INSERT_MULTIPLE: "I",
    InputMode.REPLACE: "R",
    InputMode.REPLACE_SINGLE: "R",
}

_STYLES = {
    "continuation": "dim",
    "pasted": "underline",
    "auto-suggestion": "default dim",
    "bottom-toolbar": "noreverse bg:default default",
    "bottom-toolbar.text": "noreverse bg:default default dim",
    "activity": "dim",
    "completion-menu": "bg:default default",
    "completion-menu.completion": "bg:default default",
    "completion-menu.completion.current": "reverse",
    "completion-menu.meta.completion": "bg:default default dim",
    "completion-menu.meta.completion.current": "reverse",
    "scrollbar.background": "bg:default",
    "scrollbar.button": "bg:default reverse",
}
_NOTE_COLUMNS = 40
"""A narrower window has no room for the note after what is typed ahead."""


@cache
def prompt_style(theme: str) -> Style:
    colours = prompt_styles(theme)
    accent, notice = colours["accent"], colours["notice"]
    coloured = {"prompt": f"{accent} bold", "gauge": f"nodim {accent}"}
    return Style.from_dict(_STYLES | coloured | {"gauge.high": f"nodim {notice}", "hint": f"nodim {notice}"})


def sign(app: Application[Any]) -> StyleAndTextTuples:
    """What stands before the text, with the mode for vi keys."""
    if app.editing_mode != EditingMode.VI:
        return [("class:prompt", "› ")]
    letter = "V" if app.current_buffer.selection_state else _VI_MODES.get(app.vi_state.input_mode, "?")
    return [("class:continuation", f"[{letter}] "), ("class:prompt", "› ")]


def typed_ahead(sent: Sequence[str], still_open: str, place: int, columns: int) -> tuple[str, int]:
    """What was typed while nca works, on one line that fits the window, with a note on what happens to it.

    Returns it with the cell in which the cursor belongs, for its `place` in the line that is still open.
    """
    before = " ⏎ ".join((*sent, still_open[:place])).replace("\n", " ↵ ")
    text = one_line(before + still_open[place:].replace("\n", " ↵ "))
    if not text:
        return "", 0
    queued = f" ({len(sent)} queued)" if len(sent) > 1 else " (queued)"
    note = (queued if sent else " (Enter queues it)") if columns >= _NOTE_COLUMNS else ""
    shown = fitted(text, note, columns - 3)
    left_out = cell_len(text) + cell_len(note) - cell_len(shown)
    # The stop keeps a blank before the cursor.
    return shown, max(cell_len(one_line(f"{before}.")) - 1 - left_out, 0)


def fitted(text: str, note: str, cells: int) -> str:
    """The end of a line that is being typed, and a note after it, in at most `cells` cells."""
    room = max(cells - cell_len(note), 1)
    if cell_len(text) <= room:
        return text + note
    return "…" + set_cell_size(text[::-1], room - 1)[::-1].lstrip() + note
