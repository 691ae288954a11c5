"""The line below the prompt: model, gauge, session, cost. The gauge shows the one usage that everything shows."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len

from nca.models.costs import money
from nca.terminal.sanitize import one_line
from nca.terminal.wording import percent, short_tokens

GAUGE_CELLS = 6


@dataclass(frozen=True, slots=True)
class Status:
    """What the toolbar says. Thresholds decide the gauge's colour only."""

    model: str
    usage_ratio: float
    used_tokens: int
    budget_tokens: int
    session: str = ""
    cost: float | None = None
    is_estimate: bool = False
    activity: str = ""
    info_threshold: float = 0.6
    compact_threshold: float = 0.8


def gauge(ratio: float, cells: int = GAUGE_CELLS) -> str:
    """▓▓▓▓░░ — at least one filled for anything above nothing, all only when it is full."""
    filled = min(cells, max(round(ratio * cells), 1 if ratio > 0 else 0))
    if filled == cells and ratio < 1:
        filled = cells - 1
    return "▓" * filled + "░" * (cells - filled)


def toolbar(status: Status, width: int) -> list[tuple[str, str]]:
    """Styled parts that fit `width` cells; the gauge stays longest, names give way first."""
    style = "class:gauge"
    if status.usage_ratio >= status.compact_threshold:
        style = "class:gauge.high"
    share = percent(status.usage_ratio).replace("%", " %")
    tokens = f" · {short_tokens(status.used_tokens)}/{short_tokens(status.budget_tokens)}"
    model = one_line(status.model, 40)
    session = one_line(status.session, 30)
    cost = money(status.cost) if status.cost else ""
    activity = one_line(status.activity, 40)
    meter = (style, f"{gauge(status.usage_ratio)} {share}")
    whole = (style, f"{meter[1]}{tokens}")
    short_model = model.rpartition("/")[2]
    candidates = [
        [("", model), whole, ("", session), ("", cost), ("class:activity", activity)],
        [("", model), whole, ("", cost), ("class:activity", activity)],
        [("", short_model), whole, ("class:activity", activity)],
        [("", short_model), whole],
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
