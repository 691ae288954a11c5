"""Closed book: questions drawn by code from what each has said, answered by the embedded model.

    python -m benchmarks.closed_book [--draws 5] [--session NAME …] [--whole-log NAME …] [--save]
    python -m benchmarks.closed_book --lines [--save]
    python -m benchmarks.closed_book --by-hand FOLDER --reader NAME [--save]

A line of the session loses one value: a name with a mark that plain words have not, or a number of three digits, that
two messages say. Asked is which of four stood there; the others are of the same kind, and of the same session. A draw
takes a line each of the person, the model and the tools, by its seed. A grammar holds the model to the four.

blind           from the question alone, which is the floor
view            behind what nca sends with the person's last words in a window of 8,000 tokens
with a recall   the same; where the view does not have the line, an answer of nca's recall to its words stands before
                the question
whole log       behind all messages, of sessions that fit the model's window

Lines: only how many can be read, in all sessions; no model is asked, and its answers stay.

By hand: the folder gets a file for each way and session, for any reader who sees nothing else. The four values are not
named: a strong model guesses nine of ten from their looks. Once `answers.json` is there (a question's key: the value),
the same command counts them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from hashlib import blake2b
from pathlib import Path
from typing import Any

from benchmarks.comparison import VARIANTS
from benchmarks.environments import NCA, Environment
from benchmarks.figures import on_page
from benchmarks.mending import mended
from benchmarks.needed import names
from benchmarks.probes import last_words, request_of
from benchmarks.publish import saved
from benchmarks.recall import filled
from benchmarks.small_model import (
    LEGIBLE,
    LEGIBLE_WINDOWS,
    LOG_TOKENS,
    MODEL,
    OF_EACH,
    OPTIONS,
    STUDENT,
    WAYS,
    WINDOW_TOKENS,
    closed_book,
)
from benchmarks.stated import OWN, SPEAKERS, Recorded, sessions_in, shown, text_of
from benchmarks.summed import page_text
from nca.sessions import Store
from nca.tools.recall import answer
from nca.wire import message_from_dict

Row = dict[str, Any]
Chooser = Callable[[list[Row], Sequence[str]], str]
"""A model: which of these values it answers to these messages."""
BLANK = "____"
QUESTION = f"What stood before in place of {BLANK}?"
CHOICE = "\n\nOne of these:\n\n"
SHORTEST_LINE, LONGEST_LINE = 30, 200
MENTIONS = 2
"""Messages that say a value."""
NEAREST = 8
"""Decoys are drawn from so many values whose length is most like the right one's."""
RECALL_TOKENS = 780
"""What a recall's answer may take: 15% of this window's budget; a chat gives it 20%."""
ANSWER_TOKENS, MOST_SECONDS = 80, 3_600
"""For one answer: a whole log takes minutes to read."""


@dataclass(frozen=True, slots=True)
class Cloze:
    """A line without one of its values, and who said it."""

    line: str
    value: str
    by: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A line, and the values of which the model chooses one."""

    cloze: Cloze
    options: Sequence[str]

    @property
    def text(self) -> str:
        options = "\n".join(f"- {value}" for value in self.options)
        return f"{QUESTION}\n\n{self.cloze.line}{CHOICE}{options}\n\nAnswer with it alone."


def clozes(rows: Sequence[Row]) -> list[Cloze]:
    """Every line that says a value once, where it is said first; none whose blank several values have filled.

    A value counts that two messages say: what nobody has come back to is hardly asked for.
    """
    found: dict[str, list[Cloze]] = defaultdict(list)
    messages = Counter(name for row in rows for name in names(text_of(row)))
    for row in rows:
        for line in map(str.strip, text_of(row).splitlines()) if row["role"] in SPEAKERS else ():
            if SHORTEST_LINE <= len(line) <= LONGEST_LINE:
                for value in sorted(names(line)):
                    if (blanked := _blanked(line, value)) and not any(one.value == value for one in found[blanked]):
                        found[blanked].append(Cloze(blanked, value, SPEAKERS[row["role"]]))
    alone = [of_line[0] for of_line in found.values() if len(of_line) == 1]
    return [one for one in alone if messages[one.value] >= MENTIONS]


_BEGINNING, _END = re.compile(r"(?<![\w./:-])(?<!\d )"), re.compile(r"(?![\w/:-])(?![.,]\w)(?! \d)")


def _blanked(line: str, value: str) -> str:
    """Nothing where the value is not there once, as a word of its own: a number may go on behind a space."""
    begin = line.find(value)
    end = begin + len(value)
    if line.count(value) != 1 or not _BEGINNING.match(line, begin) or not _END.match(line, end):
        return ""
    return f"{line[:begin]}{BLANK}{line[end:]}"


def _kind(value: str) -> str:
    return "number" if not any(map(str.isalpha, value)) else "path" if "/" in value else "name"


def drawn(rows: Sequence[Row], seed: str) -> list[Asked]:
    """The questions of one draw; the same for the same rows and seed."""
    chance = random.Random(seed)
    pool = clozes(rows)
    by_kind: dict[str, list[str]] = defaultdict(list)
    for value in sorted({one.value for one in pool}):
        by_kind[_kind(value)].append(value)
    found = []
    for speaker in SPEAKERS.values():
        of_speaker = [one for one in pool if one.by == speaker]
        chance.shuffle(of_speaker)
        asked = (_asked(one, by_kind[_kind(one.value)], chance) for one in of_speaker)
        found += [one for one, _ in zip(filter(None, asked), range(OF_EACH), strict=False)]
    return found


def _asked(cloze: Cloze, values: Sequence[str], chance: random.Random) -> Asked | None:
    """None where the session has too few values of this kind."""
    others = [one for one in values if one != cloze.value and one not in cloze.line and cloze.value not in one]
    others.sort(key=lambda one: abs(len(one) - len(cloze.value)))
    if len(others) < OPTIONS - 1:
        return None
    options = [cloze.value, *chance.sample(others[:NEAREST], OPTIONS - 1)]
    chance.shuffle(options)
    return Asked(cloze, options)


def examined(
    session: Recorded, chosen: Chooser, draws: int, *, has_whole_log: bool, window_tokens: int = WINDOW_TOKENS
) -> dict[str, Row]:
    """By way and speaker, for each draw: right answers, questions, and how many had their line before the model."""
    rows = mended(session.rows)
    log = [row for row in rows[: last_words(rows)] if row["role"] != "system"]
    own = next(one for one in VARIANTS if (one.peer, one.name) == ("nca", "extract"))
    view = request_of(Environment(NCA), own, rows, window_tokens)
    questions = [(draw, one) for draw in range(draws) for one in drawn(log, f"{session.name} {draw}")]
    with Store.open(None) as store:
        (id,) = filled(store, [[message_from_dict(row) for row in log]])
        with store.open_session(id, read_only=True) as archive:
            recalled = {one.cloze: _recalled(archive, one.cloze) for _, one in questions}
    found: dict[str, Row] = {}
    answers: dict[str, str] = {}
    for way in WAYS if has_whole_log else WAYS[:-1]:
        behind = {"blind": [], "whole log": log}.get(way, view)
        text, whole = shown(behind), _pressed(shown(behind))
        counts: Row = defaultdict(lambda: [[0, 0, 0] for _ in range(draws)])
        for draw, one in questions:
            helped = recalled[one.cloze] if way == "with a recall" and not _is_in(one.cloze, whole) else ""
            question = {"role": "user", "content": f"{helped}\n\n{one.text}".strip()}
            # At temperature 0 the same messages get the same answer: a recall changes few of them.
            key = shown([*behind, question])
            said = answers.get(key) or chosen([*behind, question], one.options)
            answers[key] = said
            count = counts[one.cloze.by][draw]
            count[0] += said == one.cloze.value
            count[1] += 1
            count[2] += _is_in(one.cloze, whole) or (bool(helped) and one.cloze.value in helped)
        found[way] = dict(counts)
        print(f"  {session.name}, {way} ({len(text):,} characters): {dict(counts)}", flush=True)
    return found


def legible(sessions: Sequence[Recorded], draws: int, windows: Sequence[int] = LEGIBLE_WINDOWS) -> Row:
    """By window and way, of how many questions the line is before the model; no model is asked."""
    found: Row = {"sessions": len(sessions), "date": date.today().isoformat(), "asked": 0, "windows": {}}
    for window in windows:
        of_all = [
            examined(session, lambda _, options: options[0], draws, has_whole_log=False, window_tokens=window)
            for session in sessions
        ]
        of_way = {
            way: [count for ways in of_all for of_speaker in ways[way].values() for count in of_speaker]
            for way in LEGIBLE
        }
        found["windows"][str(window)] = {way: sum(count[2] for count in counts) for way, counts in of_way.items()}
        found["asked"] = sum(count[1] for count in of_way[LEGIBLE[0]])
    return found


class ByHand:
    """A reader who is given files: what is asked is written there, and answered with what stands there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        answers = folder / "answers.json"
        self.answers: dict[str, str] | None = json.loads(answers.read_text()) if answers.exists() else None
        self.asked: dict[tuple[str, bool], dict[str, str]] = {}

    def __call__(self, messages: list[Row], options: Sequence[str]) -> str:
        *behind, question = messages
        helped, _, asked = question["content"].partition(QUESTION)
        asked = f"{QUESTION}{asked.partition(CHOICE)[0]}"
        # The id of the stored session, which a recall names, is another in each run.
        key = blake2b(f"{shown(behind)}{asked}{bool(helped)}".encode(), digest_size=6).hexdigest()
        self.asked.setdefault((shown(behind), bool(helped)), {})[key] = f"{helped}{asked}"
        said = (self.answers or {}).get(key, "").strip().casefold()
        return next((one for one in options if one.casefold() == said), "")

    def write(self, name: str) -> None:
        """What was asked about a session so far, a file for each text that stands before the questions."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for number, ((behind, _), questions) in enumerate(self.asked.items()):
            asked = "\n\n".join(f"### {key}\n\n{text}" for key, text in questions.items())
            (self.folder / f"{name}-{number}.md").write_text(f"{behind}\n\n# Questions\n\n{asked}\n")
        self.asked.clear()


def read_by_hand(sessions: Sequence[Recorded], draws: int, folder: Path, reader: str) -> Row | None:
    """The counts of the answers in a folder, of all sessions; None where it was only now given its questions."""
    by_hand = ByHand(folder)
    ways: dict[str, Row] = {way: defaultdict(lambda: [[0, 0, 0] for _ in range(draws)]) for way in WAYS[:-1]}
    for session in sessions:
        for way, of_speaker in examined(session, by_hand, draws, has_whole_log=False).items():
            for speaker, counts in of_speaker.items():
                added = zip(ways[way][speaker], counts, strict=True)
                ways[way][speaker] = [list(map(sum, zip(*pair, strict=True))) for pair in added]
        by_hand.write(session.name)
    if by_hand.answers is None:
        return None
    return {"reader": reader, "date": date.today().isoformat(), "sessions": len(sessions), "ways": ways}


def _is_in(cloze: Cloze, pressed: str) -> bool:
    """Whether the line can be read, however it is broken."""
    return _pressed(cloze.line.replace(BLANK, cloze.value)) in pressed


def _pressed(text: str) -> str:
    return " ".join(text.split())


def _recalled(archive: Any, cloze: Cloze) -> str:
    """What nca's recall answers to the words of the line."""
    hits = archive.search(cloze.line.replace(BLANK, " "))
    return answer(hits, RECALL_TOKENS)[0] if hits else "Nothing was found."


def _chooser(address: Any) -> Chooser:
    """The value that the model writes when a grammar lets it write no other: small models are bad at naming letters."""
    import httpx

    client = httpx.Client(headers={"Authorization": f"Bearer {address.api_key}"}, timeout=MOST_SECONDS)

    def chosen(messages: list[Row], options: Sequence[str]) -> str:
        grammar = "root ::= " + " | ".join(json.dumps(one, ensure_ascii=False) for one in options)
        body = {"messages": messages, "grammar": grammar, "max_tokens": ANSWER_TOKENS, "temperature": 0}
        reply = client.post(f"{address.api_base}/chat/completions", json=body)
        reply.raise_for_status()
        return str(reply.json()["choices"][0]["message"]["content"])

    return chosen


def measured(sessions: Sequence[Recorded], whole_logs: Sequence[str], draws: int) -> Iterator[tuple[str, Row]]:
    """Each session's name and counts."""
    from nca.models.embedded.server import EmbeddedModel, open_embedded

    with asyncio.Runner() as runner:
        model = runner.run(open_embedded(MODEL, LOG_TOKENS))
        try:
            assert isinstance(model, EmbeddedModel)
            runner.run(model.warm())
            chosen = _chooser(model.address)
            for session in sessions:
                yield session.name, examined(session, chosen, draws, has_whole_log=session.name in whole_logs)
        finally:
            runner.run(model.close())


def main() -> None:
    played = {one.name: one for one in sessions_in(OWN)}
    parser = argparse.ArgumentParser(prog="python -m benchmarks.closed_book", description=__doc__)
    parser.add_argument("--draws", type=int, choices=sorted(STUDENT), default=5)
    parser.add_argument("--session", action="append", choices=played, help="only this one; the others' answers stay")
    parser.add_argument("--whole-log", action="append", default=[], choices=played, help="behind all messages too")
    parser.add_argument("--lines", action="store_true", help="only count the lines that can be read, without a model")
    parser.add_argument("--by-hand", type=Path, metavar="FOLDER", help="write the questions there, or count answers")
    parser.add_argument("--reader", default="", help="who answered them")
    parser.add_argument("--save", action="store_true", help="put the result into docs/benchmarks.json and on the page")
    options = parser.parse_args()
    if options.by_hand:
        by_hand = read_by_hand(list(played.values()), options.draws, options.by_hand, options.reader)
        if options.save and by_hand is not None:
            saved({"closed_book": {**on_page()["closed_book"], "by_hand": by_hand}})
        return
    if options.lines:
        found = on_page().get("closed_book", {}) | {"legible": legible(list(played.values()), options.draws)}
        print(json.dumps(found["legible"]))
        if options.save:
            saved({"closed_book": found})
        return
    found = {"model": MODEL, "date": date.today().isoformat(), "draws": options.draws, "sessions": {}}
    found |= {key: one for key, one in on_page().get("closed_book", {}).items() if key == "by_hand"}
    found["legible"] = legible(list(played.values()), options.draws)
    # After each session: what was measured is on the page when a later one takes too long.
    for name, counts in measured(
        [played[name] for name in options.session or played], options.whole_log, options.draws
    ):
        earlier: Row = (on_page().get("closed_book") if options.save else None) or {}
        is_same = all(earlier.get(key) == found[key] for key in ("model", "draws"))
        found["sessions"] |= {**(earlier["sessions"] if is_same else {}), **found["sessions"], name: counts}
        if options.save:
            saved({"closed_book": found})
    if not options.save:
        print(page_text(closed_book({"closed_book": found})), end="")


if __name__ == "__main__":
    main()
