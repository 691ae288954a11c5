"""The toolbar below the prompt: model, context gauge, permission mode, cost, session, background activity."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from nca.terminal.render.sanitize import one_line

if TYPE_CHECKING:
    from nca.agent.conversation import Conversation

GAUGE_CELLS = 6
USUAL_PERMISSION = "ask"
"""The default mode is dropped first in a narrow window. A mode that asks less must stay visible."""
USUAL_AUTO = "on"


class ToolbarStatus(NamedTuple):
    """What the toolbar shows.

    permission  the mode, as `agent.permission` names it
    auto        whether it compacts by itself, as `context.auto` names it
    activity    what is happening in the background
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

    The lines of a command are rows above the others, unless the person's format names it: then the first stands there.
    """
    values = _values(status)
    if status.written or status.command:
        from nca.terminal.input.status_line import coloured, cut, filled
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
    from nca.humanize import percent, short_tokens
    from nca.models.costs import money

    style = "class:gauge.high" if status.is_high else "class:gauge"
    share = percent(status.usage_ratio) if status.is_counted else "…"
    tokens = f"{short_tokens(status.used_tokens)}/{short_tokens(status.budget_tokens)}" if status.is_counted else ""
    drawn = gauge(status.usage_ratio)
    return {
        "model": ("", one_line(status.model, 40)),
        "usage": (style, " · ".join(filter(None, (f"{drawn} {share}", tokens)))),
        "gauge": (style, drawn),
        "percent": (style, share),
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
    """What is happening in the background, in a few words; "" if nothing is."""
    starting = [one.server.name for one in conversation.servers.connections if one.state == "starting"]
    parts = ["compacting in the background"] if conversation.context.is_preparing else []
    parts += [f"starting {', '.join(starting)}"] if starting else []
    return " · ".join(parts)
