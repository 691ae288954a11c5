"""Excerpts of real transcripts: every seventh prefix fits, is valid and keeps what it must."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nca.config.extensions import STAGES
from nca.context.budget import Budget
from nca.context.history import History
from nca.context.meter import Meter
from nca.context.plan import Proposal
from nca.context.rules.steps import open_step
from nca.context.stages.truncate import SMALLEST_CONTENT_TOKENS
from nca.context.validate import CHECKS, validate_request
from nca.context.view import Stub, Summary, check_partition
from nca.errors import ContextDoesNotFit
from nca.messages import Message
from nca.transcripts import read_transcript
from nca.wire import messages_from_list
from tests.context.logs import history_of
from tests.context.promises import newest_problem, too_large
from tests.context.samples import answering, compacted, contents, sent

DATA = Path(__file__).parents[1] / "data"
CONVERSATIONS = ["airline-support/0", "airline-support/1", "airline-support/2", "coding-session/0"]
CONVERSATIONS += ["issue-fixing/0", "issue-fixing/1"]
STAGE_SETS = [STAGES, *((stage,) for stage in STAGES)]
STEP = 7
MARKER_TOKENS = 40
"""What a marker costs: less than this is not hidden behind one."""
REPAIR_TOKENS = 60
"""What the results cost that stand in for missing ones."""


@cache
def conversation(name: str) -> tuple[Message, ...]:
    """One conversation. A line of the file is a whole one, or the file is one with a message a line."""
    file, _, number = name.partition("/")
    raw = (DATA / f"{file}.jsonl").read_bytes()
    if file == "coding-session":
        return tuple(messages_from_list(read_transcript(raw, file).messages))
    line = raw.splitlines()[int(number)]
    return tuple(messages_from_list(read_transcript(line, file).messages))


def untouchable_tokens(history: History, meter: Meter) -> int:
    """What is never touched while no step is open: system messages and the newest user message."""
    newest = history.newest_user
    raw = sum(
        history.run_tokens(entry.seq, entry.seq)
        for entry in history.entries
        if entry.message.role == "system" or entry.seq == newest
    )
    return meter.scaled(meter.fixed_raw + raw)


def pairs_hold(rows: list[dict[str, Any]]) -> bool:
    """Each call has exactly one result, right after it."""
    for place, row in enumerate(rows):
        ids = [call["id"] for call in row.get("tool_calls") or ()]
        behind = rows[place + 1 : place + 1 + len(ids)]
        if [answer.get("tool_call_id") for answer in behind] != ids:
            return False
    called = sum(len(row.get("tool_calls") or ()) for row in rows)
    answers = [row for row in rows if row["role"] == "tool"]
    return called == len(answers)


def check(history: History, proposal: Proposal, meter: Meter, stages: tuple[str, ...], window: int) -> None:
    used = meter.used(history)
    assert used <= proposal.budget_tokens
    if "truncate" in stages and not open_step_raw(history):
        fixed = untouchable_tokens(history, meter) + MARKER_TOKENS + meter.scaled(unseen(history))
        records = sum(history.item_tokens(item) for item in history.view.items if isinstance(item, Summary))
        target, rest = (
            max(proposal.target_tokens + MARKER_TOKENS, fixed),
            fixed + meter.scaled(records),
        )
        assert too_large(contents(history), used, target, proposal.budget_tokens, rest) == ""
    check_partition(history.view)
    rows = sent(history)
    assert pairs_hold(rows)
    for provider in CHECKS:
        assert validate_request(rows, provider) == []
        assert validate_request(sent(history, provider), provider) == []


def unseen(history: History) -> int:
    """What stays of a newest step whose results the model has not seen: its calls, and a little of each result."""
    results = 0
    for entry in reversed(history.entries):
        if entry.message.role != "tool":
            break
        results += 1
    call = history.head - results
    return history.run_tokens(call, call) + results * (SMALLEST_CONTENT_TOKENS + REPAIR_TOKENS) if results else 0


def open_step_raw(history: History) -> int:
    """A prefix may end before the results of a call are all in; that step stays whole."""
    position = open_step([entry.message for entry in history.entries])
    return 0 if position is None else history.run_tokens(position + 1, history.head) + REPAIR_TOKENS


@pytest.mark.parametrize("window", [2_000, 4_000, 8_000, 16_000])
@pytest.mark.parametrize("name", CONVERSATIONS)
def test_every_prefix_lands(name: str, window: int) -> None:
    whole = conversation(name)
    lengths = [*range(1, len(whole), STEP), len(whole)]
    for stages in STAGE_SETS:
        for length in lengths:
            messages = list(whole[:length])
            before = msgspec.json.encode(messages)
            history, meter = history_of(messages), Meter()
            try:
                proposal = compacted(history, window, stages=stages, meter=meter)
            except ContextDoesNotFit:
                untouchable = untouchable_tokens(history, meter) + meter.scaled(open_step_raw(history))
                assert untouchable + MARKER_TOKENS > Budget.of(window).budget_tokens
                continue
            check(history, proposal, meter, stages, window)
            assert newest_problem(messages, history.view, sent(history)) == ""
            if untouchable_tokens(history, meter) <= proposal.budget_tokens:
                assert not any(
                    isinstance(item, Stub) and item.seq == history.newest_user for item in history.view.items
                )
            view = history.view
            assert not compacted(history, window, stages=stages, meter=meter).compacted
            assert history.view == view
            assert msgspec.json.encode(messages) == before


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_a_conversation_that_grows_is_compacted_again_and_again(name: str) -> None:
    history, meter, count = History(), Meter(), 0
    window = 8_000 if "airline" in name else 4_000
    for entry in history_of(list(conversation(name))).entries:
        history.append(entry)
        if entry.message.tool_calls or meter.used(history) < 0.8 * window * 0.65:
            continue
        count += compacted(history, window, meter=meter, summarizer=answering()).compacted
        check(history, compacted(history, window, meter=meter), meter, STAGES, window)
    assert count > 0 or meter.used(history) < 0.8 * window * 0.65


def test_notes_between_messages_are_skipped() -> None:
    raw = (DATA / "coding-session.jsonl").read_bytes()
    assert b'"_compaction"' in raw
    assert len(conversation("coding-session/0")) < len(raw.splitlines())
