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


def gauge(ratio: float) -> str:
    """▓▓▓▓░░ — at least one cell is filled for any usage above zero, and all only at 100%."""
    filled = min(GAUGE_CELLS, max(round(ratio * GAUGE_CELLS), 1 if ratio > 0 else 0))
    if filled == GAUGE_CELLS and ratio < 1:
        filled -= 1
    return "▓" * filled + "░" * (GAUGE_CELLS - filled)


def toolbar(status: ToolbarStatus, width: int) -> list[tuple[str, str]]:
    """Styled parts that fit `width` cells. In a narrow window names are dropped first and the gauge last."""
    # Imported here because the first prompt is shown before there is a status.
    from nca.models.costs import money
    from nca.terminal.render.humanize import percent, short_tokens

    style = "class:gauge.high" if status.is_high else "class:gauge"
    share = percent(status.usage_ratio) if status.is_counted else "…"
    tokens = f" · {short_tokens(status.used_tokens)}/{short_tokens(status.budget_tokens)}" if status.is_counted else ""
    model = one_line(status.model, 40)
    session = one_line(status.session, 30)
    cost = money(status.cost) if status.cost else ""
    activity = ("class:activity", one_line(status.activity, 40))
    mode = ("class:hint" if status.permission == "auto" else "", one_line(status.permission, 20))
    unusual = mode if status.permission != USUAL_PERMISSION else ("", "")
    auto = ("class:hint", f"auto-compaction {status.auto}") if status.auto != USUAL_AUTO else ("", "")
    meter = (style, f"{gauge(status.usage_ratio)} {share}")
    whole = (style, f"{meter[1]}{tokens}")
    short_model = model.rpartition("/")[2]
    candidates = [
        [("", model), whole, mode, auto, ("", cost), ("", session), activity],
        [("", model), whole, mode, auto, ("", cost), activity],
        [("", short_model), whole, mode, auto, ("", cost), activity],
        [("", short_model), whole, unusual, auto, activity],
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
