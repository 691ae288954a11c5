"""Conversations that were recorded with Claude Code and Codex: what their compactions lost is handed back."""

from __future__ import annotations

import json
import lzma
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from nca.agent_hooks.agents import AGENTS
from nca.agent_hooks.handover import MOST_CHARS, WORDS_RATIO
from nca.agent_hooks.session import Transcript, WatchedSession
from nca.transcripts.formats.registry import format_named

RECORDINGS = sorted((Path(__file__).parents[1] / "data" / "hooks").glob("*.xz"))
FITTING_CHARS = int(WORDS_RATIO * MOST_CHARS) - 500
"""So much of the person's words has room beside headings and dashes."""
_SENTENCE = re.compile(r"\n+|(?<=[.!?])\s+")


class Told(NamedTuple):
    """What was told after a compaction, and what could be read there: words, and items that are open."""

    text: str
    said_chars: int
    words: int
    words_read: int
    items: int
    items_read: int


def replayed(recording: Path, folder: Path) -> Iterator[Told]:
    """The agent writes its transcript and calls its hooks as it did."""
    agent = recording.name.partition("-")[0]
    path = folder / AGENTS[agent].sessions / "session.jsonl"
    path.parent.mkdir(parents=True)
    path.touch()
    reader = format_named(agent)
    assert reader is not None
    session = WatchedSession(reader, Transcript(folder / AGENTS[agent].sessions, path), str)
    said: list[str] = []
    told, standing = "", ""
    for line in lzma.decompress(recording.read_bytes()).decode().splitlines():
        (kind, value), *_ = json.loads(line).items()
        if kind == "row":
            with path.open("a") as file:
                file.write(json.dumps(value) + "\n")
            standing = json.dumps(value, ensure_ascii=False) if value["type"] == "compacted" else standing
        elif kind == "event" and value["hook_event_name"] == "PreCompact":
            session.note_compacting()
            session.prepare()
        elif kind == "event":
            session.note_compacted(0.001)
            told = session.lost()
        else:
            said += value["said"]
            yield measured(told, standing, said, value["open"])


def measured(told: str, standing: str, said: list[str], items: list[str]) -> Told:
    folded = " ".join(f"{told} {standing}".replace("\\n", " ").replace('\\"', '"').split())
    sentences = [" ".join(one.split()) for text in said for one in _SENTENCE.split(text)]
    words = [(len(one.split()), one in folded) for one in sentences]
    return Told(
        text=told,
        said_chars=sum(map(len, said)),
        words=sum(count for count, _ in words),
        words_read=sum(count for count, is_read in words if is_read),
        items=len(items),
        items_read=sum(item in told for item in items),
    )


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_words_and_open_work_are_handed_back(agent: str, tmp_path: Path) -> None:
    found = [
        told
        for recording in RECORDINGS
        if recording.name.startswith(agent)
        for told in replayed(recording, tmp_path / recording.stem)
    ]
    assert len(found) == 20
    assert all(0 < len(told.text) <= MOST_CHARS for told in found)
    assert all(told.items == told.items_read for told in found)
    # Codex keeps the person's messages; of Claude Code's those count that have room.
    fitting = [told for told in found if agent == "codex" or told.said_chars <= FITTING_CHARS]
    read, words = sum(told.words_read for told in fitting), sum(told.words for told in fitting)
    sys.stdout.write(f"{agent}: {len(fitting)} of {len(found)} compactions, {read:,} of {words:,} words\n")
    assert len(fitting) >= 10
    assert read >= 0.95 * words
