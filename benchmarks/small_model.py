"""Write what a small model answers, for the page: questions about the played sessions, and the closed book."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.stated import SPEAKERS
from benchmarks.summed import percent, table

Row = dict[str, Any]
MODEL = "qwen2.5-coder-1.5b"
WINDOW_TOKENS = 8_000
SPREAD_TEMPERATURE = 0.5
"""At 0 every run would be the same."""
LOG_TOKENS = 30_000
"""The model's window for the closed book, which whole logs are to fit."""
OPTIONS, OF_EACH = 4, 1
"""Values to choose from, and lines of each speaker in one draw."""
WAYS = ("blind", "view", "with a recall", "whole log")
LEGIBLE = WAYS[1:3]
LEGIBLE_WINDOWS = (8_000, 16_000, 32_000)
"""Windows in which it is counted what can be read."""
STUDENT = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 8: 2.36, 10: 2.26}
"""For an interval of 95% about the mean of so many draws."""


def probed(figures: Mapping[str, Any]) -> Iterator[str]:
    """The section of the probes; nothing where they were not measured."""
    found: Row = figures.get("probes") or {"rows": []}
    asked_all = _asked_all(found)
    if not asked_all:
        return
    yield "### What a small model answers from them"
    names = list(asked_all[0]["runs"][0])
    yield (
        f"{found['model']}, the embedded model, is asked {found['questions']} questions about {len(names)} of the"
        " played sessions (`tests/data/sessions/*.probes.json`): half of them about what was said early. A question"
        " stands in place of the person's last words, behind what each program would send with them in a window of"
        f" {WINDOW_TOKENS:,} tokens. An answer is right if it has the word. *Readable*: the word is in the request, and"
        " that fits into the window; where it is not, the model is not asked, and the question has no right answer."
        f" {_times(found['runs'])} So few questions tell large differences only"
        f" (`NCA_TRANSCRIPTS=… python -m benchmarks.probes --save`, {found['date']})."
    )
    rows = []
    for row in asked_all:
        shares = _shares(row, found["questions"])
        by_name = (
            f"{statistics.mean(run[name][0] for run in row['runs']):g} of {row['runs'][0][name][2]}" for name in names
        )
        spread = f"{100 * min(shares):.0f} to {100 * max(shares):.0f}%" if len(shares) > 1 else "–"
        legible = sum(count for _, count, _ in row["runs"][0].values()) / found["questions"]
        rows.append((row["label"], f"{100 * statistics.mean(shares):.0f}%", spread, f"{100 * legible:.0f}%", *by_name))
    yield table(("", "right", "spread", "readable", *names), rows)


def ahead(figures: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Where another program has more right answers than nca: what, nca's figure, the other's."""
    found = figures.get("probes") or {"rows": []}
    shares = {row["label"]: statistics.mean(_shares(row, found["questions"])) for row in _asked_all(found)}
    for label, share in shares.items():
        if share > shares.get("nca", 1):
            yield "questions answered by a small model", f"{100 * shares['nca']:.0f}%", f"{label} {100 * share:.0f}%"


def _asked_all(found: Row) -> list[Row]:
    """The programs that were asked every question: the others' shares would be of other questions."""
    return [row for row in found["rows"] if sum(count for *_, count in row["runs"][0].values()) == found["questions"]]


def _shares(row: Row, questions: int) -> list[float]:
    """Of each run."""
    return [sum(right for right, *_ in run.values()) / questions for run in row["runs"]]


def _times(runs: int) -> str:
    if runs == 1:
        return "Every question is asked once."
    return (
        f"Every question is asked {runs} times, at temperature {SPREAD_TEMPERATURE}; the spread is that of whole runs."
    )


def closed_book(figures: Mapping[str, Any]) -> Iterator[str]:
    """The section of the closed book; nothing where it was not measured."""
    found = figures.get("closed_book")
    if not found:
        return
    sessions: Mapping[str, Row] = found["sessions"]
    yield "### Closed book"
    yield (
        "Code draws the questions (`benchmarks/closed_book.py` has the rules). A line said before the person's last"
        f" words has lost one of its values; a draw takes up to {OF_EACH} line each of the person, the model and the"
        f" tools. {found['model']}, the embedded model, was asked on {found['date']} about"
        f" {', '.join(sessions) or 'no session'}: which of {OPTIONS} values stood there? The other three are of the"
        f" same kind and session. ±: the interval of 95% about the mean of {found['draws']} draws.{_legible(found)}"
    )
    yield "- *Blind*: from the question alone."
    yield f"- *View*: behind what nca sends in a window of {WINDOW_TOKENS:,} tokens."
    yield "- *With a recall*: where the view does not have the line, nca's recall is asked for its words once."
    whole = [name for name, ways in sessions.items() if WAYS[-1] in ways]
    if whole:
        yield f"- *Whole log*: behind all messages, of those that fit {LOG_TOKENS:,} tokens: {', '.join(whole)}."
    yield "- *Readable*: the line, or with a recall its value, is before the model."
    speakers = list(SPEAKERS.values())
    answered = {way: {name: ways[way] for name, ways in sessions.items() if way in ways} for way in WAYS}
    rows = [(way, str(len(of)), *_row(of, speakers)) for way, of in answered.items() if of]
    if by_hand := found.get("by_hand"):
        rows += [
            (f"{by_hand['reader']}, {way}", str(by_hand["sessions"]), *_row({"all": of}, speakers))
            for way, of in by_hand["ways"].items()
        ]
    yield table(("", "sessions", "right", "readable", *speakers), rows)
    if whole:
        of_whole = {name: sessions[name] for name in whole}
        shares = (f"{way} {_right({name: ways[way] for name, ways in of_whole.items()}, speakers)[0]}" for way in WAYS)
        yield f"Of the sessions whose whole log was read: {', '.join(shares)}."


def _row(of_way: Mapping[str, Row], speakers: Sequence[str]) -> tuple[str, ...]:
    return (*_right(of_way, speakers), *(_share(of_way, [one]) for one in speakers))


def closed_book_in_short(figures: Mapping[str, Any]) -> Iterator[str]:
    """The closed book, for the first page."""
    found = figures.get("closed_book")
    if not found:
        return
    yield "## Closed book"
    yield (
        "Code picks lines of the person, the model and the tools, and removes a value from each. Which value was it?"
        " Each question is asked alone (*blind*), after what nca sends (*view*), and, if the view lacks the line, after"
        " one more answer of nca's `recall` (*with a recall*). *Lines that can be read* asks no model and counts the"
        " lines that are there. The other rows count right answers."
    )
    yield table(("", "window", "sessions", *WAYS[:-1]), [*_lines(found), *_readers(found)])
    yield (
        f"{found['model']}, the small embedded model, chooses among {OPTIONS} values."
        f"{_read_by_hand(found)} ±: the 95% interval over {found['draws']} draws."
        " [The details](benchmarks-details.md#closed-book) have the rules."
    )


def _read_by_hand(found: Row) -> str:
    by_hand = found.get("by_hand")
    if not by_hand:
        return ""
    recalled = by_hand["ways"].get(WAYS[2])
    is_found = recalled and _right({"all": recalled}, list(SPEAKERS.values()))[0].startswith("100")
    return (
        f" {by_hand['reader']} had no values to choose from; without any text it could often complete a line from other"
        f" questions, or by arithmetic.{' If the view had lost the line, one recall found it.' if is_found else ''}"
    )


def _lines(found: Row) -> list[tuple[str, ...]]:
    """By window, of how many questions the line can be read."""
    held = found.get("legible") or {"windows": {}}
    return [
        (
            "lines that can be read",
            f"{int(window):,}",
            str(held["sessions"]),
            "–",
            *(percent(ways[way] / held["asked"]) for way in LEGIBLE),
        )
        for window, ways in held["windows"].items()
    ]


def _readers(found: Row) -> Iterator[tuple[str, ...]]:
    """What the embedded model answered, and what a reader did who was given the same texts."""
    speakers, window = list(SPEAKERS.values()), f"{WINDOW_TOKENS:,}"
    of_way = {way: {name: ways[way] for name, ways in found["sessions"].items() if way in ways} for way in WAYS[:-1]}
    if all(of_way.values()):
        shares = (_right(one, speakers)[0] for one in of_way.values())
        yield found["model"], window, str(len(found["sessions"])), *shares
    if by_hand := found.get("by_hand"):
        shares = (_right({"all": by_hand["ways"][way]}, speakers)[0] for way in WAYS[:-1])
        yield by_hand["reader"], window, str(by_hand["sessions"]), *shares


def _legible(found: Row) -> str:
    """Of how many questions the line can be read, and who answered them by hand."""
    text = ""
    if held := found.get("legible"):
        text += (
            f" How many lines can be read was counted without a model{_on(held)}, of {held['asked']} questions of"
            f" {held['sessions']} sessions; a view that is larger than its window counts as nothing."
        )
    if by_hand := found.get("by_hand"):
        text += (
            f" {by_hand['reader']} was given such texts and questions, without values to choose from, about"
            f" {by_hand['sessions']} sessions on {by_hand['date']}."
        )
    return text


def _on(held: Row) -> str:
    return f" on {held['date']}" if "date" in held else ""


def _right(of_way: Mapping[str, Row], speakers: Sequence[str]) -> tuple[str, str]:
    """Right answers with their interval, and readable lines."""
    draws = [_added(of_way, speakers, draw) for draw in range(_draws(of_way))]
    shares = [right / asked for right, asked, _ in draws]
    half = STUDENT.get(len(shares), 0.0) * statistics.stdev(shares) / len(shares) ** 0.5 if len(shares) > 1 else 0.0
    readable = sum(one[2] for one in draws) / sum(one[1] for one in draws)
    return f"{100 * statistics.mean(shares):.0f} ± {100 * half:.0f}%", f"{100 * readable:.0f}%"


def _share(of_way: Mapping[str, Row], speakers: Sequence[str]) -> str:
    right, asked, _ = map(sum, zip(*(_added(of_way, speakers, draw) for draw in range(_draws(of_way))), strict=True))
    return f"{100 * right / asked:.0f}%" if asked else "–"


def _added(of_way: Mapping[str, Row], speakers: Sequence[str], draw: int) -> list[int]:
    """Right, asked and readable in one draw, over all sessions."""
    found = [counts[speaker][draw] for counts in of_way.values() for speaker in speakers if speaker in counts]
    return [sum(one[place] for one in found) for place in range(3)]


def _draws(of_way: Mapping[str, Row]) -> int:
    return min(len(draws) for counts in of_way.values() for draws in counts.values())
