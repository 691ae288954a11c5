"""Add up the figures of a run by program, as the page and README's table show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]
WORDS = "user turns"


@dataclass(frozen=True, slots=True)
class Total:
    """One way to compact, over all sessions. Pairs: how many, of how many; `fill`: of the target, on the mean."""

    peer: str
    label: str
    has_model: bool
    sessions: int
    valid: tuple[int, int]
    mended: tuple[int, int]
    met: tuple[int, int]
    facts: tuple[int, int]
    rules: tuple[int, int]
    words: tuple[int, int]
    newest: tuple[int, int]
    mutated: int
    fill: float
    failures: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.label}, with a summary" if self.has_model else self.label


def label_of(row: Row) -> str:
    """A program's name on the page."""
    return f"{row['label']}, with a summary" if row.get("has_model") else str(row["label"])


def counted(compactions: Sequence[Row]) -> list[Row]:
    """One row for each session and way to compact: of a session that was compacted at several points, the last."""
    last = {
        (row["peer"], row["variant"], row.get("session", row["material"]), row["is_raw"]): row for row in compactions
    }
    return list(last.values())


def totals(compactions: Sequence[Row]) -> list[Total]:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in counted(compactions):
        groups.setdefault((row["peer"], row["variant"]), []).append(row)
    return [_total(rows) for rows in groups.values()]


def _total(rows: Sequence[Row]) -> Total:
    done = [row for row in rows if "error" not in row and not row["is_raw"]]
    raw = [row for row in rows if "error" not in row and row["is_raw"]]
    clean = [row for row in rows if not row["is_raw"]]
    kinds = [(kind, pair) for row in done for kind, pair in row["facts"].items()]
    return Total(
        peer=rows[0]["peer"],
        label=rows[0]["label"],
        has_model=rows[0]["has_model"],
        sessions=len(clean),
        valid=(sum(not row["refused_by"] and not row["pair_faults"] for row in done), len(clean)),
        mended=(sum(not row["refused_by"] for row in raw), len([row for row in rows if row["is_raw"]])),
        met=(sum(row["is_met"] for row in done), len(clean)),
        facts=_added(pair for kind, pair in kinds if kind not in (WORDS, "rules of the user")),
        rules=_added(pair for kind, pair in kinds if kind == "rules of the user"),
        words=_added(row["user_turns"] for row in done),
        newest=(sum(row["is_newest_whole"] for row in done), len(clean)),
        mutated=sum(row["mutated"] for row in done),
        fill=sum(row["tokens_after"] / row["target_tokens"] for row in done) / max(1, len(done)),
        failures=tuple(dict.fromkeys(row["error"] for row in rows if "error" in row)),
    )


def _added(pairs: Any) -> tuple[int, int]:
    found = [tuple(pair) for pair in pairs]
    return sum(pair[0] for pair in found), sum(pair[1] for pair in found)


def share(pair: tuple[int, int]) -> str:
    return f"{100 * pair[0] / pair[1]:.0f}%" if pair[1] else "–"


def percent(ratio: float | None) -> str:
    return "–" if ratio is None else f"{100 * ratio:.1f}%"


def of(pair: tuple[int, int]) -> str:
    return f"{pair[0]} of {pair[1]}"


def seconds(value: float) -> str:
    """As people write it: 0.003 ms, 12 ms, 1.4 s."""
    if value >= 1:
        return f"{value:.1f} s"
    return f"{value * 1e3:.0f} ms" if value >= 0.01 else f"{value * 1e3:.2g} ms"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def page_text(blocks: Iterable[str]) -> str:
    """Headings, paragraphs, tables and items of lists as one page: a blank line between all but two items."""
    text = before = ""
    for block in filter(None, blocks):
        between = "\n" if block.startswith("- ") and before.startswith("- ") else "\n\n"
        text, before = f"{text}{between}{block}", block
    return f"{text.strip()}\n"
