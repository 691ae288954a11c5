"""Measure with a model in the loop: what it still answers after several compactions, and the spread.

A session some times as large as the budget, with one thing planted in each of four kinds, compacted before the request
that would be above the threshold, as in a chat. At its end the model is asked for each. The same questions on three
contexts: nca with the model's own summaries, nca with summaries by code, and the newest messages alone.
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import nca
from benchmarks.material import coding_session
from nca.config.schema import ContextSettings
from nca.context.budget import Budget
from nca.context.driver import run
from nca.context.history import History
from nca.context.meter import Meter
from nca.context.plan import compact
from nca.context.policy import is_due, target_ratio, target_tokens
from nca.context.request import request_messages
from nca.context.summary_writer import BY_CODE
from nca.library.engine import asking
from nca.messages import Entry
from nca.wire import message_from_dict

Row = dict[str, Any]
RUNS = 5
WINDOW_TOKENS = 3_000
"""Small, so that a model on two cores reads a context in seconds."""
SUMMARY_TOKENS, ANSWER_TOKENS = 160, 24
FILLER_MESSAGES, FILLER_CHARS = 12, 900
NAMES = ("amber", "birch", "cobalt", "delta", "ember", "fjord", "garnet", "heron", "indigo", "juniper")
TOLD = (
    "The release code is {}. Remember it.",
    "Ops gave us {} as the release code for this one.",
    "By the way, {} is the release code, we need it at the end.",
    "Release code: {}. Keep it at hand.",
)
SETTLED = (
    "I looked at both. We decided to use the {} cache because it is simpler.",
    "Both would do. The {} cache has fewer moving parts, so that one it is.",
    "I compared them: let's take the {} cache, the other needs a server.",
)
NEXT_IS = (
    "When this is done, the next task is to document the {} module.",
    "After that, please write the docs of the {} module.",
    "The {} module has no documentation yet; that is what I want to see next.",
)
"""What is planted is said in several ways, so that no program's pattern is what is measured."""
KINDS = ("recall", "artifact", "continuation", "decision")
Ask = Callable[[list[Row], int], str]


@dataclass(frozen=True, slots=True)
class Probe:
    """A question, and the text that a right answer holds."""

    kind: str
    question: str
    expected: str


def planted(seed: int, filler_messages: int = FILLER_MESSAGES) -> tuple[list[Row], list[Probe]]:
    """A session, and what is asked about it."""
    chance = random.Random(seed)
    code = f"K-{chance.randint(1_000, 9_999)}"
    path = f"src/{chance.choice(NAMES)}_{chance.randint(10, 99)}.py"
    task, decided = chance.sample(NAMES, 2)
    told, settled, next_is = (chance.choice(ways) for ways in (TOLD, SETTLED, NEXT_IS))
    said = [
        [_user(told.format(code)), _answer("Noted.")],
        [
            _user("Which cache shall we use?"),
            _answer(settled.format(decided)),
            *_edit(path),
            _answer(f"I put the cache into {path}; its tests pass."),
        ],
        [
            _user(next_is.format(task)),
            _answer("Yes, that comes next."),
        ],
    ]
    rows = [
        row for number, stretch in enumerate(said) for row in (*stretch, *_filler(seed * 10 + number, filler_messages))
    ]
    probes = [
        Probe("recall", "What is the release code? Answer with the code only.", code),
        Probe("artifact", "Into which file did you put the cache? Answer with its path only.", path),
        Probe("continuation", "Which module is to be documented next? Answer with its name only.", task),
        Probe("decision", "Which cache did we decide to use? Answer with its name only.", decided),
    ]
    return rows, probes


def in_the_loop(name: str, runs: int = RUNS) -> Row:
    """Share of right answers by context and kind, over several runs; or why it was not run."""
    try:
        with asyncio.Runner() as runner:
            model = runner.run(_opened(name))
            try:
                return _measured(model.facts.name, _asking(runner, model), runs)
            finally:
                runner.run(model.close())
    except nca.NcaError as error:
        return {"model": name, "error": str(error).splitlines()[0][:160]}


def _measured(name: str, ask: Ask, runs: int) -> Row:
    scores: dict[str, list[dict[str, bool]]] = {}
    sessions: dict[str, list[Session]] = {}
    for number in range(runs):
        rows, probes = planted(100 + number)
        for label, summarizer in (("nca, the model's summaries", ask), ("nca, summaries by code", None)):
            sessions.setdefault(label, []).append(Session(rows, summarizer))
        contexts = {label: of_label[-1].context for label, of_label in sessions.items()}
        for label, context in {**contexts, "newest messages only": _newest(rows)}.items():
            answers = {
                probe.kind: probe.expected in ask([*context, _user(probe.question)], ANSWER_TOKENS) for probe in probes
            }
            scores.setdefault(label, []).append(answers)
    found = []
    for label, results in scores.items():
        shares = [sum(answers.values()) / len(KINDS) for answers in results]
        by_kind = {kind: sum(answers[kind] for answers in results) / len(results) for kind in KINDS}
        row: Row = {"label": label, "mean": statistics.mean(shares), "spread": [min(shares), max(shares)]}
        ran = sessions.get(label, [])
        counts = {name: sum(getattr(one, name) for one in ran) for name in ("compactions", "summaries", "by_model")}
        found.append({**row, "by_kind": by_kind, **counts})
    return {"model": name, "runs": runs, "window_tokens": WINDOW_TOKENS, "rows": found}


class Session:
    """As in nca's chat: the log grows, and its view is compacted before the request that is above the threshold.

    compactions  how many there were, and of these `summaries` with a summary and `by_model` with one that a model
                 wrote, or began
    """

    def __init__(self, rows: list[Row], ask: Ask | None, window_tokens: int = WINDOW_TOKENS) -> None:
        self._budget = Budget.of(window_tokens)
        self.compactions = self.summaries = self.by_model = 0
        self._ask = ask
        self._history, self._meter = History(), Meter()
        for row in rows:
            if row["role"] == "assistant":
                self._before_a_request()
            self._history.append(Entry(self._history.head + 1, message_from_dict(row)))
        self._before_a_request()
        self.context = request_messages(self._history)

    def _before_a_request(self) -> None:
        history, budget, settings = self._history, self._budget, ContextSettings()
        if not is_due(self._meter.measure(history, budget), settings):
            return
        planning = compact(history, self._meter, budget, settings, has_summarizer=self._ask is not None)
        proposal = run(planning, asking(self._summary if self._ask is not None else None))
        history.view = proposal.view
        self.compactions += proposal.compacted
        self.summaries += bool(proposal.made_by)
        self.by_model += proposal.made_by not in ("", BY_CODE)

    def _summary(self, messages: list[Row]) -> str:
        assert self._ask is not None
        return self._ask(messages, SUMMARY_TOKENS)


def _newest(rows: list[Row]) -> list[Row]:
    """As many of the newest messages as the target has room for."""
    budget = Budget.of(WINDOW_TOKENS)
    target = target_tokens(budget, 0, target_ratio(budget, ContextSettings()))
    for keep in range(len(rows), 0, -1):
        strategy = nca.SlidingWindow(keep, max_tokens=target)
        kept = strategy.compact(rows)
        if strategy.token_estimate(kept) <= target:
            return kept
    return strategy.compact(rows)


async def _opened(name: str) -> Any:
    from nca.config.loaded import defaults
    from nca.models.choose import choose, open_model

    return await open_model(name or choose(defaults().settings.model, os.environ), defaults())


def _asking(runner: asyncio.Runner, model: Any) -> Ask:
    from nca.models.client import ModelRequest

    def ask(messages: list[Row], most_tokens: int) -> str:
        request = ModelRequest(messages, max_output_tokens=most_tokens, temperature=0.0)
        reply = runner.run(model.ask(request, lambda _: None))
        return str(reply.message.text)

    return ask


def _filler(seed: int, length: int) -> list[Row]:
    """Work that has nothing to do with what is asked."""
    rows = coding_session(length, seed)[1:]
    short = [{**row, "content": (row["content"] or "")[:FILLER_CHARS] or None} for row in rows]
    return [{key: value for key, value in row.items() if not key.startswith("_")} for row in short]


def _user(text: str) -> Row:
    return {"role": "user", "content": text}


def _answer(text: str) -> Row:
    return {"role": "assistant", "content": text}


def _edit(path: str) -> list[Row]:
    function = {"name": "edit_file", "arguments": f'{{"path": "{path}", "old": "a", "new": "b"}}'}
    call = {"id": "call_edit", "type": "function", "function": function}
    result = {"role": "tool", "tool_call_id": "call_edit", "content": f"Edited {path}: 1 replacement."}
    return [{"role": "assistant", "content": None, "tool_calls": [call]}, result]
