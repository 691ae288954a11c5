"""The toolbar below the prompt: model, context gauge, permission mode, cost, session, background activity.

Or a status line of the person's own: the format `terminal.status`, or the line of `terminal.status_command`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from prompt_toolkit.formatted_text import ANSI, to_formatted_text
from rich.cells import cell_len, set_cell_size

from nca.config.tables import parts_of
from nca.terminal.render.sanitize import one_line, to_terminal

if TYPE_CHECKING:
    from nca.agent.conversation import Conversation


GAUGE_CELLS = 6
USUAL_PERMISSION = "ask"
"""The default mode is dropped first in a narrow window. A mode that asks less must stay visible."""
USUAL_AUTO = "on"


class ToolbarStatus(NamedTuple):
    """The values of the toolbar.

    permission  the mode, as `agent.permission` names it; "read-only" if nothing can be sent
    auto        whether it compacts by itself, as `context.auto` names it
    activity    the work in the background
    is_high     the usage is at the compaction threshold, which the gauge's colour shows
    is_counted  False for the moment in which the vocabulary loads: the gauge waits
    written     the person's format, `terminal.status`; the fields below it are what only a format names
    command     the lines of `terminal.status_command`, which may hold escape sequences
    """

    model: str
    usage_ratio: float
    used_tokens: int
    budget_tokens: int
    session: str = ""
    cost: float | None = None
    permission: str = ""
    auto: str = USUAL_AUTO
    activity: str = ""
    is_high: bool = False
    is_counted: bool = True
    written: str = ""
    directory: str = ""
    branch: str = ""
    cache: str = ""
    limits: str = ""
    command: str = ""


def gauge(ratio: float) -> str:
    """▓▓▓▓░░ — at least one cell is filled for any usage above zero, and all only at 100%."""
    filled = min(GAUGE_CELLS, max(round(ratio * GAUGE_CELLS), 1 if ratio > 0 else 0))
    if filled == GAUGE_CELLS and ratio < 1:
        filled -= 1
    return "▓" * filled + "░" * (GAUGE_CELLS - filled)


def toolbar(status: ToolbarStatus, width: int) -> list[tuple[str, str]]:
    """Styled parts that fit `width` cells. In a narrow window names are dropped first and the gauge last.

    The lines of a command are rows above the others, unless the person's format names it: then the first is there.
    """
    values = _values(status)
    if status.written or status.command:
        from nca.terminal.render.theme import has_colour

        first, _, others = status.command.partition("\n")
        command = coloured(first, has_colour=has_colour())
        if status.written:
            own = {name: [part] for name, part in values.items()} | {"command": command}
            return [("", " "), *filled(status.written, own, width - 2)]
        return [("", " "), *cut(command, width - 2), ("", "\n"), *toolbar(status._replace(command=others), width)]
    model, whole, mode, auto = (values[name] for name in ("model", "usage", "mode", "auto"))
    cost, session, activity = (values[name] for name in ("cost", "session", "activity"))
    style, share = values["percent"]
    unusual = mode if status.permission != USUAL_PERMISSION else ("", "")
    meter = (style, f"{values['gauge'][1]} {share}")
    short_model = ("", model[1].rpartition("/")[2])
    candidates = [
        [model, whole, mode, auto, cost, session, activity],
        [model, whole, mode, auto, cost, activity],
        [short_model, whole, mode, auto, cost, activity],
        [short_model, whole, unusual, auto, activity],
        [whole, unusual, auto, activity],
        [whole, unusual, auto],
        *([[meter, auto]] if auto[1] else []),
        [whole],
        [meter],
        [(style, share)],
    ]
    for candidate in candidates:
        parts = [part for part in candidate if part[1]]
        joined = _joined(parts)
        if sum(cell_len(text) for _, text in joined) <= width - 1:
            return joined
    return []


def _values(status: ToolbarStatus) -> dict[str, tuple[str, str]]:
    """The style and the text of each name but `command` (nca.config.tables)."""
    # Imported here because the first prompt is shown before there is a status.
    from nca.humanize import share, short_of
    from nca.models.catalog import money

    style = "class:gauge.high" if status.is_high else "class:gauge"
    used = share(status.usage_ratio) if status.is_counted else "…"
    tokens = short_of(status.used_tokens, status.budget_tokens) if status.is_counted else ""
    drawn = gauge(status.usage_ratio)
    return {
        "model": ("", one_line(status.model, 40)),
        "usage": (style, " · ".join(filter(None, (f"{drawn} {used}", tokens)))),
        "gauge": (style, drawn),
        "percent": (style, used),
        "tokens": (style, tokens),
        "mode": ("class:hint" if status.permission == "auto" else "", one_line(status.permission, 20)),
        "auto": ("class:hint", f"auto-compaction {status.auto}" if status.auto != USUAL_AUTO else ""),
        "cost": ("", money(status.cost) if status.cost else ""),
        "session": ("", one_line(status.session, 30)),
        "activity": ("class:activity", one_line(status.activity, 40)),
        "directory": ("", one_line(status.directory, 60)),
        "branch": ("", one_line(status.branch, 40)),
        "cache": ("", status.cache),
        "limits": ("", one_line(status.limits, 40)),
    }


def _joined(parts: list[tuple[str, str]]) -> list[tuple[str, str]]:
    joined: list[tuple[str, str]] = [("", " ")]
    for index, part in enumerate(parts):
        if index:
            joined.append(("", "  "))
        joined.append(part)
    return joined


def activity_of(conversation: Conversation) -> str:
    """The background activity, in a few words; "" without any."""
    starting = [one.server.name for one in conversation.servers.connections if one.state == "starting"]
    parts = ["compacting in the background"] if conversation.context.is_preparing else []
    parts += [f"starting {', '.join(starting)}"] if starting else []
    return " · ".join(parts)


_COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")
_SEPARATORS = " \t·•|│/,;:–—-"

Parts = Sequence[tuple[str, str]]
"""Styles and texts."""


def coloured(line: str, *, has_colour: bool) -> list[tuple[str, str]]:
    """A program's line with its colours, and no other escape sequence."""
    pieces = _COLOUR.split(line)
    # Every second piece is a colour.
    safe = [piece if index % 2 else _one_row(piece) for index, piece in enumerate(pieces)]
    if not has_colour:
        return [("nodim", "".join(safe[::2]))]
    return [(f"nodim {style}", text) for style, text, *_ in to_formatted_text(ANSI("".join(safe)))]


def filled(written: str, values: Mapping[str, Parts], cells: int) -> list[tuple[str, str]]:
    """The format with each name's value, in at most this many cells.

    A name without a value disappears with the text before it. In a narrow window names leave from the end, and what is
    left is cut; no separator is left over.
    """
    rows: list[list[tuple[str, str]]] = []
    for before, name in parts_of(written):
        value = [part for part in values.get(name, ()) if part[1]]
        if value or not name:
            rows.append([("", before if rows else before.lstrip(_SEPARATORS)), *value])
    if rows and width(flat(rows)) > cells and not parts_of(written)[-1][1]:
        rows.pop()
    while len(rows) > 1 and width(flat(rows)) > cells:
        rows.pop()
    return cut(flat(rows), cells)


def flat(rows: Sequence[Parts]) -> list[tuple[str, str]]:
    return [part for row in rows for part in row if part[1]]


def cut(parts: Parts, cells: int) -> list[tuple[str, str]]:
    """The fitting beginning of a line, with an ellipsis if it is cut."""
    if width(parts) <= cells:
        return list(parts)
    kept: list[tuple[str, str]] = []
    room = max(cells - 1, 0)
    for style, text in parts:
        kept.append((style, text if cell_len(text) <= room else set_cell_size(text, room)))
        room -= cell_len(kept[-1][1])
    while kept and not (last := kept[-1][1].rstrip(_SEPARATORS)):
        kept.pop()
    return [*kept[:-1], (kept[-1][0], f"{last}…")] if kept else [("", "…")][:cells]


def width(parts: Parts) -> int:
    return sum(cell_len(text) for _, text in parts)


def _one_row(text: str) -> str:
    return to_terminal(text).replace("\n", " ").replace("\t", " ")
