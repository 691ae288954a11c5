"""Ask the embedded model about the played sessions, in place of the person's last words, in windows of 8,000 tokens.

    python -m benchmarks.probes [--runs 5] [--peer NAME …] [--session NAME …] [--save]

The questions are in tests/data/sessions/NAME.probes.json; an answer is right if it has a word of each group in
`all_of`; what cannot be read in a request is not asked. Takes minutes of two cores for each program, most of them for
reading its requests, which all questions and runs share. The weights must be here (`nca models get
qwen2.5-coder-1.5b`), and the other programs in .bench/ (`make bench`). NCA_TRANSCRIPTS names a folder of more played
sessions. `--save` puts the result on the page.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.asking import ask, packed
from benchmarks.comparison import SUMMARY, VARIANTS, Variant, limits, named
from benchmarks.environments import NCA, PEERS, Environment, prepared
from benchmarks.figures import on_page
from benchmarks.headline import MOST_SECONDS
from benchmarks.mending import mended
from benchmarks.publish import saved
from benchmarks.requests import heads, requests_of
from benchmarks.small_model import MODEL, SPREAD_TEMPERATURE, WINDOW_TOKENS, probed
from benchmarks.stated import OWN, Recorded, sessions_in, shown
from benchmarks.summed import page_text
from benchmarks.tokens import tokens

Row = dict[str, Any]
Answers = Callable[[list[Row]], str]
"""A model: the answer to these messages. Raises nca.NcaError where there is none, which is no wrong answer."""
MODEL_WINDOW_TOKENS = 12_288
"""More than the window, since the model counts with another tokenizer; a request above the window is not asked."""
ANSWER_TOKENS = 16
ASKED = [
    one
    for one in VARIANTS
    if (one.peer, one.name)
    in (
        ("nca", "extract"),
        ("neurolink", "escalated"),
        ("langchain", "trim_messages"),
        ("pydantic-ai", "clear, deduplicate, slide"),
    )
]
"""None has a summary: one from a script would say nothing about a model's."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A question about a session; a right answer has a word of each group."""

    question: str
    all_of: Sequence[Sequence[str]]

    def is_right(self, answer: str) -> bool:
        return all(any(_has(answer, word) for word in group) for group in self.all_of)


def probes_of(session: Recorded, folder: Path = OWN) -> list[Probe]:
    """The session's questions; none where nobody wrote some."""
    place = folder / f"{session.name}.probes.json"
    return [Probe(**one) for one in json.loads(place.read_text(encoding="utf-8"))] if place.is_file() else []


def asked(
    environment: Environment, variant: Variant, sessions: Sequence[Recorded], answers: Answers, runs: int
) -> list[Row]:
    """For each run, by session: how many answers are right, how many can be read in the request, how many questions.

    What cannot be read is not asked: a right answer would be a guess.
    """
    found: list[Row] = [{} for _ in range(runs)]
    for session in sessions:
        probes = probes_of(session)
        request = request_of(environment, variant, mended(session.rows))
        legible = [probe for probe in probes if probe.is_right(shown(request))]
        right = [0] * runs
        # The model's server keeps what it read last: a question reads the request no second time, a run reads nothing.
        for probe in legible:
            said = [answers([*request, {"role": "user", "content": probe.question}]) for _ in right]
            right = [count + probe.is_right(one) for count, one in zip(right, said, strict=True)]
            print(f"    {sum(map(probe.is_right, said))} of {runs}  {probe.question}  {said}", flush=True)
        for run, count in zip(found, right, strict=True):
            run[session.name] = [count, len(legible), len(probes)]
    return found


def request_of(
    environment: Environment, variant: Variant, rows: Sequence[Row], window_tokens: int = WINDOW_TOKENS
) -> list[Row]:
    """The program's request when the person's last words have come, without these words: some ask for the facts.

    Empty where the program failed, or its request does not fit into the window: then no answer is right.
    """
    with tempfile.TemporaryDirectory() as folder:
        case = {"file": str(packed(rows, Path(folder) / "session.json")), "summary": SUMMARY, **limits(window_tokens)}
        task = {"op": "replay", "variant": variant.name}
        answer = ask(environment, task, [case], most_seconds=MOST_SECONDS)[0]
    if "error" in answer:
        return []
    last = last_words(rows)
    number = sum(head <= last for head in heads(rows))
    request = [row for row in requests_of(answer)[number] if row.get("content") != rows[last]["content"]]
    return request if tokens(request) <= window_tokens else []


def last_words(rows: Sequence[Row]) -> int:
    """The place of the person's newest message that has an answer."""
    answered = max(heads(rows))
    return max(place for place, row in enumerate(rows[:answered]) if row["role"] == "user")


def _has(answer: str, word: str) -> bool:
    """As a word of its own: 60 is not in 600."""
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", answer, re.IGNORECASE) is not None


def joined(rows: Sequence[Row], row: Row) -> list[Row]:
    """These rows with that program's new one; of sessions that were not asked about now, its earlier answers stay."""
    labels = [one["label"] for one in rows]
    if row["label"] not in labels:
        return [*rows, row]
    place = labels.index(row["label"])
    runs = [{**before, **now} for before, now in zip(rows[place]["runs"], row["runs"], strict=True)]
    return [*rows[:place], {**row, "runs": runs}, *rows[place + 1 :]]


def question_count(rows: Sequence[Row], played: Iterable[Recorded]) -> int:
    """How many there are: about the sessions that are here, and about those that were asked about before."""
    asked_before = {name: count for row in rows for name, (*_, count) in row["runs"][0].items()}
    return sum((asked_before | {session.name: len(probes_of(session)) for session in played}).values())


def measured(variants: Sequence[Variant], sessions: Sequence[Recorded], runs: int) -> Iterator[Row]:
    """A row for each program."""
    environments = {peer.name: prepared(peer) for peer in (NCA, *PEERS) if peer.name in {v.peer for v in variants}}
    with asyncio.Runner() as runner:
        model = runner.run(_opened())
        try:
            answers = _answers(runner, model, SPREAD_TEMPERATURE if runs > 1 else 0.0)
            for variant in variants:
                if not environments[variant.peer].is_ready:
                    continue
                started = time.perf_counter()
                found = asked(environments[variant.peer], variant, sessions, answers, runs)
                print(f"{variant.label}: {found}, {time.perf_counter() - started:.0f} s", flush=True)
                yield {**named(variant), "runs": found}
        finally:
            runner.run(model.close())


async def _opened() -> Any:
    from nca.models.embedded.server import open_embedded

    return await open_embedded(MODEL, MODEL_WINDOW_TOKENS)


def _answers(runner: asyncio.Runner, model: Any, temperature: float) -> Answers:
    from nca.models.client import ModelRequest

    def answer(messages: list[Row]) -> str:
        request = ModelRequest(messages, max_output_tokens=ANSWER_TOKENS, temperature=temperature)
        return str(runner.run(model.ask(request, lambda _: None)).message.text)

    return answer


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.probes", description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    peers = [one.peer for one in ASKED]
    parser.add_argument("--peer", action="append", choices=peers, help="only this program; the others' figures stay")
    parser.add_argument("--session", action="append", default=[], help="only this one; the answers about others stay")
    parser.add_argument("--save", action="store_true", help="put the result into docs/benchmarks.json and on the page")
    options = parser.parse_args()
    chosen = [one for one in ASKED if one.peer in (options.peer or peers)]
    folders = [OWN, *([Path(more)] if (more := os.environ.get("NCA_TRANSCRIPTS")) else [])]
    played = [one for folder in folders for one in sessions_in(folder) if probes_of(one)]
    sessions = [one for one in played if one.name in options.session or not options.session]
    found: Row = {"model": MODEL, "date": date.today().isoformat(), "runs": options.runs, "questions": 0, "rows": []}
    earlier = on_page().get("probes")
    if earlier and all(earlier[name] == found[name] for name in ("model", "runs")):
        found["rows"] = earlier["rows"]
    # After each program: what was measured is on the page when a later program fails or takes too long.
    for row in measured(chosen, sessions, options.runs):
        found["rows"] = joined(found["rows"], row)
        found["questions"] = question_count(found["rows"], played)
        if options.save:
            saved({"probes": found})
    if not options.save:
        print(page_text(probed({"probes": found})), end="")


if __name__ == "__main__":
    main()
