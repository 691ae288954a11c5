"""Every prefix of every transcript, in every usual window, with all stages and with each alone.

The test run takes a fixed sample of the excerpts in tests/data, and of one long log made of them all. A long search
(`make fuzz`) takes every prefix, and of the transcripts in the folder NCA_TRANSCRIPTS where it names one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

from nca.config.extensions import STAGES
from nca.context.budget import Budget
from nca.context.history import History
from nca.context.meter import Meter
from nca.context.rules.steps import open_step
from nca.context.view import View
from nca.errors import ContextDoesNotFit, InvalidMessages
from nca.messages import Entry, Message
from nca.transcripts import read_transcript
from nca.wire import messages_from_list
from tests.context.effort import IS_SEARCH, patient
from tests.context.logs import grow
from tests.context.promises import digest, misplaced, newest_problem, refused, too_large
from tests.context.samples import answering, compacted, contents, sent
from tests.context.test_transcripts import DATA, MARKER_TOKENS, open_step_raw, untouchable_tokens

FOLDER = Path(os.environ.get("NCA_TRANSCRIPTS") or DATA) if IS_SEARCH else DATA
WINDOWS = (8_000, 16_000, 64_000, 128_000, 200_000)
STAGE_SETS = (STAGES, *((stage,) for stage in STAGES))
STEP = 1 if IS_SEARCH else 9
"""Every so many messages a prefix is tried."""
LONG_STEP = 2_803
LONG_TIMES = 12
"""So often the excerpts follow each other in the long log: more tokens than the largest window has."""


@cache
def conversations(folder: Path) -> dict[str, tuple[Message, ...]]:
    """All of a folder's, by name; a line of a file is a whole one, or the file is one with a message a line."""
    found: dict[str, tuple[Message, ...]] = {}
    for path in sorted(folder.glob("*.jsonl")):
        raw = path.read_bytes()
        try:
            rows = {path.stem: read_transcript(raw, path.name).messages}
        except InvalidMessages:
            rows = {
                f"{path.stem}/{n}": read_transcript(line, path.name).messages for n, line in enumerate(raw.splitlines())
            }
        found |= {name: tuple(messages_from_list(messages)) for name, messages in rows.items()}
    return found


def log_of(name: str) -> tuple[Message, ...]:
    if name == "long":
        return tuple(message for messages in conversations(DATA).values() for message in messages) * LONG_TIMES
    return conversations(FOLDER)[name]


def tried(messages: Sequence[Message], windows: Sequence[int], lengths: Sequence[int]) -> Iterator[str]:
    """What goes wrong, one line each. The log grows from prefix to prefix, as it does in a session."""
    history, before = History(), digest(messages[: lengths[-1]])
    for length in lengths:
        grow(history, messages[history.head : length])
        log = messages[:length]
        history.view = View()
        yield from (f"{length} messages as they are: {problem}" for problem in refused(history))
        for window in windows:
            for stages in STAGE_SETS:
                history.view = View()
                for problem in compacted_badly(history, log, window, stages):
                    yield f"{length} messages, {window}, {'+'.join(stages)}: {problem}"
    if digest(entry.message for entry in history.entries) != before:
        yield "the log was changed"


def compacted_badly(history: History, log: Sequence[Message], window: int, stages: tuple[str, ...]) -> Iterator[str]:
    """Compact once, look at the request, and compact once more."""
    meter, budget = Meter(), Budget.of(window)
    untouchable = untouchable_tokens(history, meter)
    try:
        proposal = compacted(history, window, stages=stages, meter=meter, summarizer=answering())
    except ContextDoesNotFit:
        if untouchable + meter.scaled(open_step_raw(history)) + MARKER_TOKENS <= budget.budget_tokens:
            yield "it refused although it could have made room"
        return
    used = meter.used(history)
    if used != proposal.tokens_after:
        yield f"it says {proposal.tokens_after} tokens, and they are {used}"
    reaches = "truncate" in stages and open_step(log) is None
    target = max(proposal.target_tokens, untouchable) if reaches else budget.budget_tokens
    # Where a large step leaves nothing below the ceiling, a record may fill half of what the budget leaves.
    rest = untouchable + (budget.budget_tokens - untouchable) // 2
    yield from filter(None, [too_large(contents(history), used, target, budget.budget_tokens, rest)])
    if not proposal.compacted:
        return
    yield from refused(history)
    yield from misplaced(log, history.view)
    yield from filter(None, [newest_problem(log, history.view, sent(history))])
    view = history.view
    if compacted(history, window, stages=stages, meter=meter, summarizer=answering()).compacted or history.view != view:
        yield "twice is not once"


@patient
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", conversations(FOLDER))
def test_every_prefix_keeps_every_promise(name: str, window: int) -> None:
    messages = log_of(name)
    assert list(tried(messages, [window], [*range(1, len(messages), STEP), len(messages)])) == []


@patient
@pytest.mark.parametrize("window", WINDOWS[2::2])
def test_a_long_log_keeps_every_promise(window: int) -> None:
    """Its calls have the same ids again and again, and its files are read as often."""
    messages = log_of("long")
    history = History(Entry(seq, message) for seq, message in enumerate(messages, 1))
    assert Meter().used(history) > WINDOWS[-1]
    assert list(tried(messages, [window], [*range(LONG_STEP, len(messages), LONG_STEP), len(messages)])) == []
