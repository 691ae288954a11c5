"""Switching to another session: what continues, what ends, and what remains after an error."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from nca.config.tables import PermissionRule
from nca.errors import SessionLocked, SessionNotFound, StoreError
from nca.messages import Message
from nca.sessions import Store
from nca.sessions.session import Session
from nca.terminal.panels.session_loader import KeyChoice
from tests.terminal.stage import ScriptedReader, a_stage


async def test_a_new_session_has_the_model_and_settings_and_nothing_else_of_the_old(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Be short.")
    with a_stage(tmp_path, ["One.", "Two."]) as stage:
        before = stage.conversation
        await before.send("a question")
        before.set("context.compact_threshold", 0.5)
        before.approvals.session_rules.append(PermissionRule("shell", "git status", str(tmp_path)))
        stage.app.hold_preview(object())  # type: ignore[arg-type]  # anything
        said = await stage.command("/new  The second ")
        assert f"The previous one is kept: /resume {before.session.info.id}" in said
        assert "Instructions:" not in said  # told once in a chat
        after = stage.conversation
        assert after is not before
        assert after.approvals.person is before.approvals.person is stage.app.reader
        assert (after.session.info.name, after.context.entries, list(after.approvals.session_rules)) == (
            "The second",
            (),
            [],
        )
        assert stage.app.preview is None
        assert after.model is before.model
        assert after.loaded.settings.context.compact_threshold == 0.5
        with pytest.raises(StoreError, match="closed"):
            before.session.rename("gone")
        await after.send("another")
        assert "The previous one is kept: /resume The second" in await stage.command("/new")
        await stage.command("/resume The second")
        after = stage.conversation
        assert [entry.message.text for entry in after.context.entries] == ["another", "Two."]
        await after.close()


async def test_a_new_session_with_the_name_of_another_says_which_id_reaches_each(tmp_path: Path) -> None:
    with a_stage(tmp_path, ["One."]) as stage:
        stage.conversation.session.rename("parser")
        await stage.conversation.send("a question")
        first = stage.conversation.session.info.id
        for said in (await stage.command("/new parser"), await stage.command("/new parser")):
            assert f"Session {first} also has this name" in said
            assert f"{stage.conversation.session.info.id} reaches this one" in said
        assert "also has" not in await stage.command("/new lexer")


async def test_rules_of_the_command_line_hold_in_each_session_of_the_chat(tmp_path: Path) -> None:
    given, answered = PermissionRule("write_file", "", ""), PermissionRule("shell", "git status", str(tmp_path))
    with a_stage(tmp_path, ["One."]) as stage:
        stage.conversation.approvals.session_rules.append(given)
        stage = stage.with_reader(ScriptedReader())
        stage.conversation.approvals.session_rules.append(answered)
        await stage.conversation.send("a question")
        await stage.command("/new")
        assert stage.conversation.approvals.session_rules == [given]


async def test_a_new_session_has_no_name_of_before(tmp_path: Path) -> None:
    with a_stage(tmp_path, ["One."]) as stage:
        await stage.command("/rename my work")
        await stage.command("/new")
        assert stage.conversation.session.info.name == ""
        await stage.command("/rename my work")
        await stage.conversation.send("first question")
        assert "/resume my work" in await stage.command("/new")
        assert stage.conversation.session.info.name == ""
        await stage.command("/new other work")
        assert stage.conversation.session.info.name == "other work"


async def test_back_and_forth_between_two_sessions(tmp_path: Path) -> None:
    with a_stage(tmp_path, ["One.", "Two.", "Three."]) as stage:
        first = stage.conversation.session.info.id
        await stage.conversation.send("first question")
        await stage.command("/new")
        await stage.conversation.send("second question")
        second = stage.conversation.session.info.id
        said = await stage.command(f"/resume {first}")
        assert "Resuming “first question” (2 messages).\nYou said: first question" in said
        assert "One." not in said  # a pipe has had it
        await stage.conversation.send("third question")
        assert len(stage.conversation.context.entries) == 4
        assert "You are in that session already." in await stage.command(f"/resume {first}")
        await stage.command(f"/resume {second[:6]}")
        assert len(stage.conversation.context.entries) == 2
        # An empty session that is left leaves nothing behind.
        await stage.command("/new")
        await stage.command(f"/resume {first}")
        assert {info.id for info in stage.conversation.store.list()} == {first, second}
        await stage.conversation.close()


async def test_what_cannot_be_opened_leaves_the_chat_as_it_is(tmp_path: Path) -> None:
    with a_stage(tmp_path, ["One.", "Two."]) as stage:
        before = stage.conversation
        await before.send("a question")
        with pytest.raises(SessionNotFound):
            await stage.command("/resume nonesuch")
        held = before.store.create(directory="/", model="m", name="held")
        held.log.append([Message("user", "hello")])
        with pytest.raises(SessionLocked):
            await stage.command("/resume held")
        assert stage.conversation is before
        await before.send("again")
        await before.close()


class Slow(ScriptedReader):
    """A person who answers when the other process has left."""

    def __init__(self, answers: Sequence[str], held: Session) -> None:
        super().__init__(answers)
        self._held = held

    async def choose(self, question: str, keys: Sequence[KeyChoice]) -> str:
        self._held.close()
        return await super().choose(question, keys)


async def test_a_session_that_became_free_while_the_person_was_asked_is_open_for_writing(tmp_path: Path) -> None:
    with a_stage(tmp_path, ["One."], store_path=tmp_path / "sessions.db") as stage:
        with Store.open(tmp_path / "sessions.db") as other:
            held = other.create(directory=str(tmp_path), model="m", name="held")
            held.log.append([Message("user", "hello")])
            stage = stage.with_reader(Slow(["r"], held))
            said = await stage.command("/resume held")
        assert "The other nca has left: this session is open for writing." in said
        assert "read-only" not in said
        assert (await stage.app.conversation.send("hello again")).text == "One."
        await stage.app.conversation.close()


async def test_choosing_and_leaving(tmp_path: Path) -> None:
    with a_stage(tmp_path, ["One."]) as stage:
        await stage.conversation.send("a question")
        first = stage.conversation.session.info
        await stage.command("/new")
        said = await stage.command("/sessions")  # nobody can choose here
        assert "a question" in said
        assert "/resume ID continues one of them." in said
        stage = stage.with_reader(ScriptedReader(picks=[None, first]))
        before = stage.conversation
        assert await stage.command("/resume") == ""
        assert stage.conversation is before
        await stage.command("/sessions")
        assert stage.conversation.session.info.id == first.id
        await stage.conversation.close()


async def test_a_new_session_that_is_new_already_only_gets_the_name(tmp_path: Path) -> None:
    with a_stage(tmp_path) as stage:
        assert "no messages yet" in await stage.command("/new")
        await stage.command("/new A name")
        assert stage.conversation.session.info.name == "A name"
        await stage.conversation.close()


async def test_a_session_goes_on_with_the_model_that_was_chosen_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    with a_stage(tmp_path, ["One.", "Two."]) as stage:
        first = stage.conversation.session.info.id
        await stage.conversation.send("a question")
        await stage.command("/model openai/gpt-5:high")
        await stage.command("/new")
        monkeypatch.setenv("MISTRAL_API_KEY", "none")
        await stage.command("/model mistral/mistral-medium-latest")
        assert stage.conversation.session.info.chosen_model == "mistral/mistral-medium-latest"
        assert stage.conversation.loaded.settings.model.reasoning == "auto", "the level of another choice"
        said = await stage.command(f"/resume {first}")
        assert "openai/gpt-5 answers: set by /model in this session; /model default goes back" in said
        assert stage.conversation.model.facts.name == "openai/gpt-5"
        assert stage.conversation.loaded.settings.model.reasoning == "high"
        fork = stage.conversation.store.fork(first)
        assert fork.chosen_model == "openai/gpt-5:high"
        await stage.command("/effort medium")
        await stage.command("/model mistral/mistral-medium-latest")
        assert stage.conversation.loaded.settings.model.reasoning == "medium", "set for the whole chat"
        imported = stage.conversation.store.add(stage.conversation.store.copy_of(first))
        assert imported.chosen_model == ""
        await stage.conversation.close()
