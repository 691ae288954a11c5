"""What `--resume` offers: nca's sessions and those of other agents, each once, newest first."""

from __future__ import annotations

import asyncio
from pathlib import Path

from nca.sessions import Store
from nca.terminal.panels.offered_sessions import OfferedSessions, OtherSessions
from nca.terminal.panels.session_picker import SessionList
from tests.sessions.samples import said
from tests.transcripts.formats import test_codex as codex
from tests.transcripts.formats.test_claude_code import raw, user


def claude(home: Path, name: str, *more: bytes) -> Path:
    folder = home / ".claude" / "projects" / "-work"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.jsonl").write_bytes(raw(user("u1", None, f"Fix \x1b[2J{name}")) + b"".join(more))
    return folder / f"{name}.jsonl"


def offered(store: Store, others: OtherSessions, *, own: bool = True) -> list[str]:
    loader = OfferedSessions(store, others, own=own)
    try:
        infos = asyncio.run(loader.sessions())
        previews = [asyncio.run(loader.preview(info.id)) for info in infos]
    finally:
        loader.close()
    assert all(preview is None or preview.asked for preview in previews)
    return [info.name or info.title for info in infos]


def test_both_kinds_are_offered_and_what_is_imported_already_only_once(tmp_path: Path) -> None:
    claude(tmp_path, "a")
    with Store.open(tmp_path / "nca" / "sessions.db") as store:
        with store.create(directory="/work", model="m", name="mine") as session:
            session.log.append(said("hello", "yes"))
        others = OtherSessions({}, tmp_path, "/work")
        assert sorted(offered(store, others)) == ["Claude Code: Fix \x1b[2Ja", "mine"]
        [theirs] = others.rows(store)
        rows = SessionList("/work")
        rows.offer([theirs])
        shown = rows.listing(100)
        assert "\x1b" not in shown.row(0)[0][1]
        assert "–" in shown.row(0)[0][1]
        facts = "".join(text for line in rows.about(200) for _, text in line)
        assert "imported when it is opened · last used " in facts
        assert "began" not in facts
        imported = others.chosen(store, theirs)
        assert imported.info.messages == 1
        assert others.waiting_line(theirs) == ""
        assert sorted(offered(store, others)) == ["Fix \x1b[2Ja", "mine"]
        assert others.chosen(store, imported.info).info == imported.info
        only = OtherSessions({}, tmp_path, "/work", "claude")
        assert offered(store, only, own=False) == ["Claude Code: Fix \x1b[2Ja"]
        assert only.chosen(store, only.rows(store)[0]).info.id == imported.info.id


def test_a_large_file_is_announced_and_many_bad_ones_are_one_note(tmp_path: Path) -> None:
    claude(tmp_path, "large", b" " * (6 * 1024 * 1024))
    folder = tmp_path / ".codex" / "sessions"
    for number in range(5):
        (folder / f"rollout-{number}.jsonl").mkdir(parents=True)
    (folder / "rollout-x.jsonl").write_bytes(codex.raw(codex.meta(cwd="/elsewhere"), codex.message("x")))
    with Store.open(None) as store:
        others = OtherSessions({}, tmp_path, "/work")
        [large] = others.rows(store)
        assert others.waiting_line(large) == "Reading a session of Claude Code (6.3 MB) …"
        [note] = others.notes
        assert note.startswith("Codex CLI: ")
        assert note.endswith("4 more files could not be read.")
