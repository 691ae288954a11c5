"""Formats are found by content and by name, and their stores are listed without one bad file hiding the others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nca.errors import UsageError
from nca.transcripts.conversation_file import read_conversation, read_plain
from nca.transcripts.formats.registry import format_named, formats, stored_sessions
from nca.transcripts.formats.source import Source
from tests.transcripts.formats import test_codex as codex
from tests.transcripts.formats.samples import SAMPLES
from tests.transcripts.formats.test_claude_code import raw, user

DOCS = Path(__file__).parents[3] / "docs" / "other-agents.md"


def test_each_has_a_name_of_its_own_and_is_documented() -> None:
    names = [one.name for one in formats()]
    assert len(set(names)) == len(names)
    page = DOCS.read_text(encoding="utf-8")
    assert [name for name in names if f"`{name}`" not in page] == []
    assert format_named("nobody") is None


def test_stores_are_listed_newest_first_and_a_bad_file_is_a_note(tmp_path: Path) -> None:
    claude = tmp_path / ".claude" / "projects" / "-work"
    claude.mkdir(parents=True)
    rollouts = tmp_path / ".codex" / "sessions"
    rollouts.mkdir(parents=True)
    for number, name in enumerate(("old", "new")):
        (claude / f"{name}.jsonl").write_bytes(raw(user("u1", None, name)))
        os.utime(claude / f"{name}.jsonl", (1000 * number, 1000 * number + 1))
    (rollouts / "rollout-1.jsonl").write_bytes(codex.raw(codex.meta(cwd="/other"), codex.message("there")))
    (rollouts / "rollout-2.jsonl").mkdir()
    found = stored_sessions({}, tmp_path, None)
    assert [one.title for one in found.sessions] == ["there", "new", "old"]
    assert len(found.notes) == 1
    assert found.notes[0].startswith(f"Codex CLI: {rollouts / 'rollout-2.jsonl'}: cannot be read")
    here = stored_sessions({}, tmp_path, "/work")
    assert [one.title for one in here.sessions] == ["new", "old"]
    assert [one.title for one in stored_sessions({}, tmp_path, "/other", agents=["claude"]).sessions] == []
    # A session that says nowhere where it worked is only told to who asks for its agent.
    (rollouts / "rollout-3.jsonl").write_bytes(codex.raw(codex.meta(cwd=""), codex.message("somewhere")))
    for agents, titles in ([], ["there"]), (["codex"], ["somewhere", "there"]):
        assert [one.title for one in stored_sessions({}, tmp_path, "/other", agents=agents).sessions] == titles


def test_one_of_several_sessions_is_named_by_its_key(tmp_path: Path) -> None:
    path = SAMPLES["llm"][1](tmp_path)
    found = format_named("llm")
    assert found is not None
    keys = [one.key for one in found.sessions(Source.of_file(path))]
    assert keys
    copy = read_conversation(Source.of_file(path), key=keys[0]).copy
    assert copy.info.origin is not None
    assert copy.info.origin.key == keys[0]
    rows, _ = read_plain(Source.of_file(path), key=keys[0])
    assert rows.messages
    with pytest.raises(UsageError, match=r"holds no session 'nobody'; valid: .*Name one: .*#KEY"):
        read_conversation(Source.of_file(path), key="nobody")
