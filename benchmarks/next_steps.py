"""After a compaction in the middle of a session: what of the agent's next steps can still be read.

At several places of a session its beginning is compacted, by everybody to the same target. What the agent names in its
next messages (names, paths, numbers, ids), that came up before and that nothing in between shows again, is what it
needs. Beside each program stand the newest messages alone, as many as are as large as what that program kept. And of
its next calls some fetch again what the log held: were they needed because the view lacked it?
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from benchmarks.asking import ask, packed
from benchmarks.comparison import SUMMARY, VARIANTS, Variant, limits, named
from benchmarks.environments import Environment
from benchmarks.mending import mended
from benchmarks.peers.side import calls_of
from benchmarks.stated import SPEAKERS, Recorded, shown, text_of
from benchmarks.summed import label_of, percent, table
from benchmarks.tokens import message_tokens, tokens

Row = dict[str, Any]
WINDOWS = (8_000, 24_000, 64_000)
HORIZON, STEP, FEWEST = 40, 60, 20
"""Messages that come next, between two places, and that must be left at the last one."""
NEXT_CALLS = 20
"""Of these it is counted which fetch again what the log held."""
CONTENTS = frozenset(
    {"content", "old_str", "new_str", "oldText", "newText", "old_string", "new_string", "patch", "input", "text"}
)
"""Arguments that are a file's text: what stands there is written, not looked for."""
SHORTEST, LONGEST, FEWEST_DIGITS = 5, 120, 3
LINES_READABLE, LINES_HELD = 0.5, 0.9
"""A result of which fewer lines can be read is lacking; one of which so many were in one result before is no news."""
PATHS = ("path", "file_path", "filename", "file")
"""The argument that says which file a call reads."""
PLACES = ("calls", "prose")
MOST_SHOWN, KEEPS_TO_TARGET = 9, 1.1
"""Programs on the first page, none of which is larger than so many times the target."""
_WORD = re.compile(r"[^\W\d][\w$-]*(?:[./:@#-]+[\w$-]+)*/?")
_SHAPE = re.compile(r"[/_.\d]|[a-z][A-Z]")
_NUMBER = re.compile(r"(?<![\w.,:/#@-])\d[\d.,:]*\d(?!\w)")
Pair = list[int]


@dataclass(slots=True)
class Needed:
    """What the agent's next messages name, by place and by who said it first; and the results that it fetches again."""

    names: dict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    fetched: list[str] = field(default_factory=list)


class Called(NamedTuple):
    """A call: all that it asks, its tool and file ("": it names none), and what came."""

    asked: str
    file: str
    result: str


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


def cuts(rows: Sequence[Row]) -> Iterator[int]:
    """The places at which a session is compacted: never between a call and its result."""
    at = STEP
    while at + FEWEST <= len(rows):
        while at < len(rows) and rows[at]["role"] == "tool":
            at += 1
        yield at
        at += STEP


def needs(past: Sequence[Row], coming: Sequence[Row], rest: Sequence[Row]) -> Needed:
    """What the messages to come need of the past, and has not been shown again before they need it."""
    first = _first_said(past)
    found = Needed()
    seen: set[str] = set()
    for row in coming:
        if row["role"] == "assistant":
            given = " ".join(_arguments(row))
            in_calls = {name for name in names(given) if name in first} - seen
            in_prose = {name for name in names(_prose(row)) if name in first} - seen - in_calls
            for place, wanted in zip(PLACES, (in_calls, in_prose), strict=True):
                for name in wanted:
                    if not any(name in others for others in found.names.values()):
                        found.names[place, first[name]].add(name)
        seen |= names(text_of(row))
    found.fetched = list(_fetched_again(past, rest))
    return found


def names(text: str) -> set[str]:
    """Names with a mark that plain words have not, and numbers of three digits and more."""
    words = (word.strip("./:@#-") for word in _WORD.findall(text))
    marked = {word for word in words if SHORTEST <= len(word) <= LONGEST and _SHAPE.search(word)}
    numbers = {one for one in _NUMBER.findall(text) if sum(map(str.isdigit, one)) >= FEWEST_DIGITS}
    return marked | numbers


def _first_said(past: Sequence[Row]) -> dict[str, str]:
    """Each name with who said it first; what the system prompt says is always there."""
    found: dict[str, str] = {}
    for row in past:
        for name in names(text_of(row)) if row["role"] in SPEAKERS else ():
            found.setdefault(name, SPEAKERS[row["role"]])
    return found


def _prose(row: Row) -> str:
    return text_of({"content": row.get("content")})


def _arguments(row: Row) -> Iterator[str]:
    for call in calls_of(row):
        for key, value in _given(call["function"]).items():
            if key not in CONTENTS:
                yield value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _given(function: Row) -> Row:
    try:
        given = json.loads(function["arguments"] or "{}")
    except ValueError:
        given = {"": function["arguments"]}
    return given if isinstance(given, dict) else {}


def _fetched_again(past: Sequence[Row], rest: Sequence[Row]) -> Iterator[str]:
    """The results of the next calls that the log held: of the same call, or lines that the same file had there."""
    before: dict[str, str] = {}
    files: dict[str, list[set[str]]] = defaultdict(list)
    for call in _called(past):
        before[call.asked] = call.result
        if call.file:
            files[call.file].append(set(_lines(call.result)))
    for place, call in enumerate(_called(rest)):
        if place >= NEXT_CALLS:
            return
        lines = _lines(call.result)
        is_held = any(sum(line in held for line in lines) >= LINES_HELD * len(lines) for held in files[call.file])
        if lines and (before.get(call.asked) == call.result or is_held):
            yield call.result


def _called(rows: Sequence[Row]) -> Iterator[Called]:
    """The calls that have a result, in their order."""
    asked: dict[str, Row] = {}
    for row in rows:
        asked |= {call["id"]: call["function"] for call in calls_of(row)}
        if row["role"] == "tool" and (function := asked.get(row.get("tool_call_id", ""))):
            name, given = function["name"], _given(function)
            path = next((f"{name} {given[key]}" for key in PATHS if given.get(key)), "")
            yield Called(f"{name} {function['arguments']}", path, _prose(row))


def _lines(result: str) -> list[str]:
    return [line.strip() for line in result.splitlines() if line.strip()]


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
    lacking = sum(not _is_readable(result, whole) for result in needed.fetched)
    return {
        "names": {key: [sum(name in whole for name in found), len(found)] for key, found in wanted.items()},
        "newest": {key: [sum(name in floor for name in found), len(found)] for key, found in wanted.items()},
        "lacking": [lacking, len(needed.fetched)],
        "of_target": size / target_tokens,
        "error": answer.get("error", ""),
    }


def _is_readable(result: str, text: str) -> bool:
    lines = _lines(result)
    return sum(line in text for line in lines) >= LINES_READABLE * len(lines)


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
        "lacking": [sum(row["lacking"][place] for row in rows) for place in (0, 1)],
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
    for window in sorted({row["window_tokens"] for row in rows}):
        head = (f"at {window // 1_000}k", *PLACES, *SPEAKERS.values(), "newest alone", "fetched again", "of the target")
        yield table(head, [_cells(label, of) for label, of in by_variant(_at(rows, window)).items()])


def ahead(figures: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """What was measured, nca's figure, the other's, and why: each one who keeps to the target and is better."""
    for window in WINDOWS:
        keeping = _keeping(figures, window)
        own = keeping.get("nca")
        for label, of in keeping.items() if own else ():
            if not label.startswith("nca") and _lacking(of)[0] < _lacking(own)[0]:
                what = f"results fetched again that the view lacks, at {window // 1_000}k"
                why = "it shows the newest results whole; nca gives most of the room to names, words and what was done"
                yield what, _of(own), f"{label} {_of(of)}", why


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
