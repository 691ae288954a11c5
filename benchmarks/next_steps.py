"""After a compaction in the middle of a session: what of the agent's next steps can still be read.

At several places of a session its beginning is compacted, by everybody to the same target. What the agent names in its
next messages (names, paths, numbers, ids), that came up before and that nothing in between shows again, is what it
needs. Beside each program stand the newest messages alone, as many as are as large as what that program kept. And of
its next calls some fetch again what the log held: were they needed because the view lacked it?
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.asking import ask, packed
from benchmarks.comparison import SUMMARY, VARIANTS, Variant, limits, named
from benchmarks.environments import Environment
from benchmarks.mending import mended
from benchmarks.needed import (
    HORIZON,
    LINES_HELD,
    LINES_READABLE,
    NEXT_CALLS,
    PLACES,
    Needed,
    cuts,
    is_readable,
    needs,
)
from benchmarks.stated import SPEAKERS, Recorded, shown
from benchmarks.summed import label_of, percent, table
from benchmarks.tokens import message_tokens, tokens

Row = dict[str, Any]
WINDOWS = (8_000, 24_000, 64_000)
MOST_SHOWN, KEEPS_TO_TARGET = 9, 1.1
"""Programs on the first page, none of which is larger than so many times the target."""
WHOLE_MESSAGES = (
    "it shows the newest messages whole, and these hold most of the results that it has and nca has not; nca gives this"
    " room to the person's words, to names and to what was done"
)
"""Why another program lacks less of what is fetched again."""
Pair = list[int]


def measured(
    environments: Mapping[str, Environment],
    sessions: Sequence[Recorded],
    folder: Path,
    variants: Sequence[Variant] = VARIANTS,
    windows: Sequence[int] = WINDOWS,
) -> Iterator[Row]:
    """A row for each variant, session and window. Pairs are: how many can be read, of how many."""
    found = []
    for number, session in enumerate(sessions):
        rows = mended(session.rows)
        for at in cuts(rows):
            past, needed = rows[:at], needs(rows[:at], rows[at : at + HORIZON], rows[at:])
            path = str(packed(past, folder / f"next-{number}-{at}.json"))
            for window in windows:
                if tokens(past) > limits(window)["budget_tokens"]:
                    case = {"file": path, "summary": SUMMARY, **limits(window)}
                    found.append((session.name, window, past, needed, case))
    for variant in variants:
        if not environments[variant.peer].is_ready:
            continue
        answers = ask(
            environments[variant.peer], {"op": "compact", "variant": variant.name}, [one[-1] for one in found]
        )
        rows_of: dict[tuple[str, int], list[Row]] = defaultdict(list)
        for (name, window, past, needed, case), answer in zip(found, answers, strict=True):
            rows_of[name, window].append(_counted(past, needed, answer, case["target_tokens"]))
        for (name, window), counted in rows_of.items():
            yield {**named(variant), "session": name, "window_tokens": window, **_added(counted)}


def newest(past: Sequence[Row], most_tokens: int) -> list[Row]:
    """The newest messages that are no larger together."""
    kept: list[Row] = []
    for row in reversed(past):
        most_tokens -= message_tokens(row)
        if most_tokens < 0:
            break
        kept.append(row)
    return kept[::-1]


def _counted(past: Sequence[Row], needed: Needed, answer: Row, target_tokens: int) -> Row:
    wanted = {f"{place}, {who}": found for (place, who), found in needed.names.items()}
    whole = shown(answer["messages"]) if "error" not in answer else ""
    size = tokens(answer["messages"]) if "error" not in answer else 0
    floor = shown(newest(past, size))
    lacking = sum(not is_readable(one.result, whole) for one in needed.fetched)
    used = [name in whole for one in needed.fetched for name in one.used]
    return {
        "names": {key: [sum(name in whole for name in found), len(found)] for key, found in wanted.items()},
        "newest": {key: [sum(name in floor for name in found), len(found)] for key, found in wanted.items()},
        "lacking": [lacking, len(needed.fetched)],
        "used": [sum(used), len(used)],
        "of_target": size / target_tokens,
        "error": answer.get("error", ""),
    }


def _added(rows: Sequence[Row]) -> Row:
    def total(kind: str) -> dict[str, Pair]:
        found: dict[str, Pair] = defaultdict(lambda: [0, 0])
        for row in rows:
            for key, (kept, of) in row[kind].items():
                found[key] = [found[key][0] + kept, found[key][1] + of]
        return dict(found)

    errors = Counter(row["error"] for row in rows if row["error"])
    return {
        "cuts": len(rows),
        "names": total("names"),
        "newest": total("newest"),
        **{kind: [sum(row[kind][place] for row in rows) for place in (0, 1)] for kind in ("lacking", "used")},
        "of_target": mean(row["of_target"] for row in rows),
        **({"error": errors.most_common(1)[0][0]} if errors else {}),
    }


def summed(rows: Sequence[Row], kind: str, place: str = "", speaker: str = "") -> float | None:
    """The mean share over sessions, each one vote; None where nothing was needed."""
    shares = defaultdict(list)
    for row in rows:
        pairs = [pair for key, pair in row[kind].items() if key.startswith(place) and key.endswith(speaker)]
        if of := sum(pair[1] for pair in pairs):
            shares[row["session"]].append(sum(pair[0] for pair in pairs) / of)
    return mean(map(mean, shares.values())) if shares else None


def by_variant(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of each program, by its name on the page."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[label_of(row)].append(row)
    return found


def next_steps(figures: Mapping[str, Any]) -> Iterator[str]:
    """The page's section on all windows and speakers; nothing where it was not measured."""
    rows = figures.get("next_steps")
    if not rows:
        return
    first, *_ = by_variant(rows).values()
    fetching = {row["session"] for row in first if row["lacking"][1]}
    yield "## The next steps"
    yield (
        f"At {sum(row['cuts'] for row in first)} places of"
        f" {len({row['session'] for row in rows})} sessions the beginning is compacted, by everybody to half of the"
        f" budget. *In calls, in prose*: of the names, paths, numbers and ids that the agent uses in its next {HORIZON}"
        " messages, that came up before and that nothing in between shows again, how many can be read; *person, model,"
        " tool*: by who said them first. Each session is one vote. *Newest alone*: the same of the newest messages, as"
        " many as are as large as what this program kept; everything would have 100%. *Fetched again*: of the agent's"
        f" next {NEXT_CALLS} calls those that fetch, unchanged, what the log held: the same call with the same result,"
        f" or {100 * LINES_HELD:.0f}% of its lines stood in one result of the same tool and file; how many of these"
        f" results, of {len(fetching)} sessions, the view lacked, since fewer than {100 * LINES_READABLE:.0f}% of their"
        " lines can be read."
        " *With a summary*: it is a script's, without facts; only what code keeps is counted."
    )
    yield from _read_again(first)
    for window in sorted({row["window_tokens"] for row in rows}):
        head = (f"at {window // 1_000}k", *PLACES, *SPEAKERS.values(), "newest alone", "fetched again", "of the target")
        yield table(head, [_cells(label, of) for label, of in by_variant(_at(rows, window)).items()])


def _read_again(own: Sequence[Row]) -> Iterator[str]:
    """Where the results come from that were fetched again, and what nca's view has of what was used of them."""
    window = min(row["window_tokens"] for row in own)
    most = max(_at(own, window), key=lambda row: row["lacking"][1])
    told = [
        f"{share} at {one // 1_000}k"
        for one in sorted({row["window_tokens"] for row in own})
        if (share := _used(_at(own, one)))
    ]
    if told:
        count, of = most["lacking"][1], _lacking(_at(own, window))[1]
        yield (
            f"At {window // 1_000}k {count} of the {of} results that are fetched again are of one session"
            f" ({most['session']}), most of them parts of source files. Of the names in these results that the agent"
            f" then uses, nca's view had {', '.join(told)}. So the view does not save these calls: it keeps what was"
            " said and done, and the files hold the rest."
        )


def _used(rows: Sequence[Row]) -> str:
    """The share of what was used of the results that were fetched again; "" where that was not measured."""
    counted = [row["used"] for row in rows if "used" in row]
    of = sum(count for _, count in counted)
    return percent(sum(kept for kept, _ in counted) / of) if of else ""


def ahead(figures: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str, bool]]:
    """What was measured, nca's figure, the other's, why, and whether it keeps to the target where these results are:
    each one who is better, and keeps to the target there or in all sessions."""
    for window in WINDOWS:
        keeping = _keeping(figures, window)
        own = keeping.get("nca")
        if own is None:
            continue
        for label, of in by_variant(_at(figures["next_steps"], window)).items():
            lacking, fetched = _lacking(of)
            if not label.startswith("nca") and lacking < _lacking(own)[0] and fetched == _lacking(own)[1]:
                size = sum(row["of_target"] * row["lacking"][1] for row in of) / fetched
                is_fair = size <= KEEPS_TO_TARGET
                but = "" if is_fair else f" with {size:.1f} × the target in these sessions"
                what = f"results fetched again that the view lacks, at {window // 1_000}k"
                if is_fair or label in keeping:
                    yield what, _of(own), f"{label} {_of(of)}{but}", WHOLE_MESSAGES, is_fair


def _keeping(figures: Mapping[str, Any], window: int) -> dict[str, list[Row]]:
    """The rows of nca and of those who keep to the target, in one window."""
    return {
        label: of
        for label, of in by_variant(_at(figures.get("next_steps") or (), window)).items()
        if label == "nca" or mean(one["of_target"] for one in of) <= KEEPS_TO_TARGET
    }


def short_table(figures: Mapping[str, Any], window: int) -> Iterator[str]:
    """For the first page: of those who keep to the target the best, in one window."""
    head = ("", "in calls", "in prose", "newest alone", "fetched again")
    rows = [(label, *_three(of), _of(of)) for label, of in best(figures, window).items()]
    if rows:
        yield table(head, rows)


def best(figures: Mapping[str, Any], window: int) -> dict[str, list[Row]]:
    """The rows of nca and of the best of those who keep to the target, in one window, in their order."""
    keeping = _keeping(figures, window)
    ranked = sorted(keeping.items(), key=lambda one: (one[0] != "nca", -(summed(one[1], "names", "calls") or 0)))
    return dict(ranked[:MOST_SHOWN])


def _three(rows: Sequence[Row]) -> tuple[str, str, str]:
    return (
        percent(summed(rows, "names", "calls")),
        percent(summed(rows, "names", "prose")),
        f"{percent(summed(rows, 'newest', 'calls'))} · {percent(summed(rows, 'newest', 'prose'))}",
    )


def _lacking(rows: Sequence[Row]) -> tuple[int, int]:
    """How many results the view lacked, of how many that were fetched again."""
    return sum(row["lacking"][0] for row in rows), sum(row["lacking"][1] for row in rows)


def _of(rows: Sequence[Row]) -> str:
    return "{} of {}".format(*_lacking(rows))


def _at(rows: Sequence[Row], window: int) -> list[Row]:
    return [row for row in rows if row["window_tokens"] == window]


def _cells(label: str, rows: Sequence[Row]) -> tuple[str, ...]:
    calls, prose, floor = _three(rows)
    return (
        label,
        calls,
        prose,
        *(percent(summed(rows, "names", speaker=speaker)) for speaker in SPEAKERS.values()),
        floor,
        _of(rows),
        f"{100 * mean(row['of_target'] for row in rows):.0f}%",
    )
