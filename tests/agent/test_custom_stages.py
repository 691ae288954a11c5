"""Stages of other packages in a conversation: they run on a thread, and each failure is reported in one line."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import nca
from nca.agent.conversation import Conversation
from nca.config.loaded import defaults
from nca.events import ContextCompaction, Event
from nca.models.catalog import ModelFacts
from nca.sessions.store import Store
from nca.terminal.render.event_lines import compaction_line
from nca.testing.scripted import ScriptedModel

FACTS = ModelFacts("scripted/model", "scripted", 64_000)
CODE = """
import sys
import threading

began, may_end = threading.Event(), threading.Event()
threads = []


class Stage:
    def should_compact(self, messages, token_count):
        threads.append(threading.current_thread())
        return True

    def token_estimate(self, messages):
        return 0


class Halve(Stage):
    def compact(self, messages):
        return messages[len(messages) // 2 :]


class Raises(Stage):
    def compact(self, messages):
        raise ValueError("no\\x1b[2J such\\nthing")


class Leaves(Stage):
    def compact(self, messages):
        sys.exit(3)


class Nonsense(Stage):
    def compact(self, messages):
        return {"role": "user"}


class Robot(Stage):
    def compact(self, messages):
        return [{"role": "robot", "content": "beep"}]


class Invents(Stage):
    def compact(self, messages):
        return [*messages, {"role": "user", "content": "Something new"}]


class Spoils(Stage):
    def compact(self, messages):
        for message in messages:
            message.clear()
        messages.clear()
        return messages


class Waits(Stage):
    def compact(self, messages):
        began.set()
        may_end.wait(60)
        return messages[len(messages) // 2 :]


def broken():
    raise RuntimeError("out of order")
"""
NAMES = ("Halve", "Raises", "Leaves", "Nonsense", "Robot", "Invents", "Spoils", "Waits")
ENTRIES = "[nca.stages]\n" + "".join(f"{name.lower()} = nca_agent_stages:{name}\n" for name in NAMES)


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package as an installer leaves it: a module, and its metadata beside it."""
    (tmp_path / "nca_agent_stages.py").write_text(CODE)
    metadata = tmp_path / "nca_agent_stages-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: nca-agent-stages\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"{ENTRIES}broken = nca_agent_stages:broken\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("nca_agent_stages", None)


async def opened(path: Path, events: list[Event], *stages: str, **values: Any) -> Conversation:
    """A conversation of ten turns with these stages."""
    conversation = Conversation.open(
        defaults().with_values({"context.stages": stages, **values}, "the test"),
        store=Store.open(path / "sessions.db"),
        model=ScriptedModel(["A long answer with details. " * 60] * 20, facts=FACTS),
        directory=path,
        listener=events.append,
    )
    for number in range(10):
        await conversation.send(f"Question {number}")
    return conversation


def closings(events: list[Event]) -> list[ContextCompaction]:
    return [event for event in events if isinstance(event, ContextCompaction) and event.phase != "starting"]


async def test_a_stage_never_runs_on_the_thread_of_the_chat(tmp_path: Path) -> None:
    conversation = await opened(tmp_path, [], "waits")
    compacting = asyncio.ensure_future(conversation.context.compact())
    # Another thread imports it: it is in sys.modules before it has all its names.
    while not (began := getattr(sys.modules.get("nca_agent_stages"), "began", None)) or not began.is_set():
        await asyncio.sleep(0.01)
    # It is in the middle of its work, and this loop goes on.
    stages = sys.modules["nca_agent_stages"]
    assert threading.current_thread() not in stages.threads
    stages.may_end.set()
    outcome = await compacting
    assert outcome.compacted
    assert outcome.stages_used == ("waits",)
    await conversation.close()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("raises", "the stage raises raised ValueError: no"),
        ("leaves", "the stage leaves raised SystemExit: 3"),
        ("nonsense", "the stage nonsense gave no list of messages"),
        ("robot", "the stage robot returned something that is not a message: message 1: role 'robot' is not known"),
        ("invents", "the stage invents gave messages that are not those of the conversation"),
        ("broken", "the stage broken (nca_agent_stages:broken) cannot be loaded: RuntimeError: out of order"),
    ],
)
async def test_one_that_fails_is_named_once_and_the_others_run(tmp_path: Path, name: str, why: str) -> None:
    alone: list[Event] = []
    conversation = await opened(tmp_path / "alone", alone, name)
    before = conversation.context.effective_history()
    outcome = await conversation.context.compact()
    assert not outcome.compacted
    assert conversation.context.effective_history() == before
    (skipped,) = closings(alone)
    assert skipped.phase == "skipped"
    assert why in skipped.message
    await conversation.close()

    together: list[Event] = []
    conversation = await opened(tmp_path / "together", together, name, "halve")
    outcome = await conversation.context.compact()
    assert outcome.stages_used == ("halve",)
    _, *before = before
    assert conversation.context.effective_history()[1:] == before[len(before) // 2 :]
    (completed,) = closings(together)
    assert completed.phase == "completed"
    assert completed.message.count("Not used: ") == completed.message.count(why) == 1
    line = compaction_line(completed)
    assert "\n" not in line
    assert "\x1b" not in line
    await conversation.close()


async def test_what_a_stage_does_to_what_it_is_handed_changes_nothing(tmp_path: Path) -> None:
    conversation = await opened(tmp_path, [], "spoils")
    before = conversation.context.effective_history()
    await conversation.context.compact()
    texts = [entry.message.text for entry in conversation.context.entries]
    assert texts == [row["content"] for row in before[1:]]
    assert conversation.context.effective_history()[-1] == {"role": "user", "content": "Question 9"}
    await conversation.close()


async def test_one_that_does_not_come_back_is_left_behind(tmp_path: Path) -> None:
    events: list[Event] = []
    conversation = await opened(tmp_path, events, "waits", "halve", **{"context.summarize.deadline_seconds": 1.0})
    outcome = await conversation.context.compact()
    sys.modules["nca_agent_stages"].may_end.set()
    assert outcome.stages_used == ("halve",)
    assert "Not used: the stage waits did not answer within 1 seconds." in closings(events)[0].message
    await conversation.close()


def test_a_program_is_told_too() -> None:
    rows = [{"role": "user", "content": f"Question {number} " + "why " * 60} for number in range(40)]
    result = nca.compact(rows, context_window=4_000, stages=["raises", "halve"])
    assert result.stages_used == ("halve",)
    (notice,) = result.notices
    assert notice.startswith("Not used: the stage raises raised ValueError: no")
    assert nca.compact(rows, context_window=4_000, stages=["halve"]).notices == ()
