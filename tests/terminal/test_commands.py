"""Every slash command, over a real conversation."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

import pytest

from nca.config.schema import KEYS
from nca.context.retention import FILES, WORDS
from nca.errors import ConfigError, ModelUnavailable, UsageError
from nca.events import Event
from nca.humanize import percent
from nca.models import keys
from nca.models.embedded.known import SMOLLM
from nca.models.embedded.server import facts_of
from nca.terminal.commands.command import advice_for, all_commands, find_command, foreign_names, short_for
from nca.terminal.interrupts import Leave
from nca.testing.scripted import ScriptedModel
from tests.agent.test_conversation import call
from tests.terminal.stage import Stage, a_stage

LONG = "The parser reads src/parse.py and fails at line 12 with ValueError: bad token. " * 40

SUMMARY = "## Goal and intent\n\nFix src/parse.py, which fails at line 12 with ValueError: bad token."


async def a_long_chat(stage: Stage) -> None:
    for number in range(6):
        await stage.conversation.send(f"Question {number}: {LONG}")
    stage.take()


def replies(count: int) -> list[str]:
    return [f"Answer {number}. {LONG}" for number in range(count)]


async def test_permissions_name_the_file_that_rules_stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCA_HOME", str(tmp_path / "home"))
    with a_stage(tmp_path) as stage:
        said = "".join((await stage.command("/permissions")).split())
        assert f"{tmp_path}/home/config.toml." in said


async def test_help_names_every_command_and_one_in_detail(tmp_path: Path) -> None:
    with a_stage(tmp_path) as stage:
        text = await stage.command("/help")
        for command in all_commands():
            assert f"/{command.name}" in text
        assert "/context compact" in await stage.command("/help context")
        assert "/context undo" in await stage.command("/help /ctx")
        with pytest.raises(UsageError, match="no command /nothing"):
            await stage.command("/help nothing")
        for wrong, meant in (("contxt", "/context?"), ("kys", "/help keys?"), ("revert", "/rewind")):
            with pytest.raises(UsageError) as raised:
                await stage.command(f"/help {wrong}")
            assert meant in raised.value.advice


async def test_context_shows_the_one_usage(tmp_path: Path) -> None:
    with a_stage(tmp_path, ["Hello."]) as stage:
        await stage.conversation.send("Hi.")
        stats = stage.conversation.context.stats()
        text = await stage.command("/context")
        assert f"Context: {stats.usage_ratio:.0%} used" in text
        assert f"{stats.used_tokens:,} of {stats.budget_tokens:,} tokens" in text
        for row in ("system prompt", "tools", "conversation", "free", "reserve"):
            assert row in text
        assert "2 messages in 1 turn." in text
        assert not set(text) & set("█░·┊└┘") - {"·"}, "plain lines have no picture"
        rows = [line.split("%")[0].split() for line in text.splitlines() if line.startswith(" ") and line.endswith("%")]
        parts = [*filter(None, stats.parts.values()), stats.budget_tokens - stats.used_tokens]
        assert [row[-2:] for row in rows] == [[f"{n:,}", percent(n / stats.budget_tokens)[:-1]] for n in parts]
        assert stats.next_rung in text.replace("\n", " ")


async def test_context_shows_how_much_the_heaviest_messages_matter(tmp_path: Path) -> None:
    with a_stage(tmp_path, ["It turns out to be \x1b[31mred."]) as stage:
        await stage.conversation.send("Which colour? Never guess.")
        text = await stage.command("/context")
        heaviest = text[text.index("Largest items (id, tokens") :]
        assert "\x1b" not in text
        (mine,) = [line for line in heaviest.splitlines() if line.split()[:1] == ["1"]]
        (answer,) = [line for line in heaviest.splitlines() if line.split()[:1] == ["2"]]
        assert mine.rstrip().endswith("0.90 your words")
        assert answer.rstrip().endswith("0.60 an answer")


async def test_compact_undo_redo_and_history_agree(tmp_path: Path) -> None:
    with a_stage(tmp_path, [*replies(6), SUMMARY, SUMMARY], window_tokens=40_000) as stage:
        await a_long_chat(stage)
        assert "No compactions yet." in await stage.command("/context history")
        before = stage.conversation.context.effective_history()
        text = await stage.command("/context compact the parser")
        (record,) = stage.conversation.context.history()
        numbers = f"{record.tokens_before:,} → {record.tokens_after:,}"
        assert f"Compacted {numbers} tokens" in text
        assert "compacted" in await stage.command("/context")
        history = " ".join((await stage.command("/context history")).split())
        assert numbers in history
        assert sum(kept for kind, (kept, _) in record.kept.items() if kind in (WORDS, FILES)) == record.kept_facts > 0
        assert " of your " in history
        assert "facts" not in history
        after = stage.conversation.context.effective_history()
        text = await stage.command("/context undo")
        assert text.startswith("Undid the compaction of 2")
        assert f"{stage.conversation.context.stats().used_tokens:,}" in text
        assert stage.conversation.context.effective_history() == before
        assert "1 compaction, 1 undone." in await stage.command("/context history")
        text = await stage.command("/context redo")
        assert text.startswith("Redid the compaction of 2")
        assert f"({stage.conversation.context.stats().used_tokens:,} / " in text
        assert stage.conversation.context.effective_history() == after
        (summary,) = stage.conversation.context.summaries()
        assert summary.id in await stage.command("/context show")
        with pytest.raises(UsageError, match=summary.id):
            await stage.command("/context show nothing")
        with pytest.raises(UsageError, match="nothing to redo"):
            await stage.command("/context redo")
        stage.conversation.set("context.compact_threshold", 0.05)
        said = (await stage.command("/context undo")).replace("\n", " ")
        assert f"Next: {stage.conversation.context.stats().next_rung}." in said


async def test_how_often_it_compacted_is_said_of_all_compactions(tmp_path: Path) -> None:
    """It was "2 compactions, 1 undone: one every 3 turns"."""
    with a_stage(tmp_path, [*replies(6), SUMMARY, SUMMARY], window_tokens=40_000) as stage:
        await a_long_chat(stage)
        for line in ("/compact", "/context undo", "/compact"):
            await stage.command(line)
        said = await stage.command("/context history")
        assert said.endswith("2 compactions, one every 3 turns, 1 undone.\n")


async def test_clear_is_undoable_and_said_when_there_is_nothing(tmp_path: Path) -> None:
    with a_stage(tmp_path, ["Hello."]) as stage:
        with pytest.raises(UsageError, match="already empty"):
            await stage.command("/context clear")
        with pytest.raises(UsageError, match="nothing to undo"):
            await stage.command("/context undo")
        await stage.conversation.send("Hi.")
        before = stage.conversation.context.effective_history()
        assert "/context undo" in await stage.command("/context clear")
        assert stage.conversation.context.effective_history() != before
        await stage.command("/context undo")
        assert stage.conversation.context.effective_history() == before
        with pytest.raises(UsageError, match="/context takes no") as raised:
            await stage.command("/context claer")
        assert raised.value.advice == "Did you mean /context clear?"


async def test_a_compaction_that_is_stopped_says_so_once(tmp_path: Path) -> None:
    with a_stage(tmp_path, [*replies(6), SUMMARY], window_tokens=40_000) as stage:
        await a_long_chat(stage)
        compacting = asyncio.create_task(stage.command("/compact"))

        def stop(event: Event) -> None:
            compacting.cancel()

        stage.conversation.subscribe(stop)
        with pytest.raises(asyncio.CancelledError):
            await compacting
        assert stage.take().splitlines()[-1] == "Compaction stopped; nothing changed."


async def test_compact_says_when_there_is_nothing_to_do(tmp_path: Path) -> None:
    with a_stage(tmp_path, ["Hello."]) as stage:
        await stage.conversation.send("Hi.")
        assert (await stage.command("/compact")).endswith(" tokens.\n")
        assert "Nothing to compact" in await stage.command("/compact")


async def test_compact_says_how_another_focus_is_named(tmp_path: Path) -> None:
    """What is compacted already cannot be made smaller by naming what to keep; that came without a way out."""
    with a_stage(tmp_path, [*replies(6), SUMMARY, SUMMARY], window_tokens=200_000) as stage:
        await a_long_chat(stage)
        assert "Compacted" in await stage.command("/compact")
        said = " ".join((await stage.command("/compact the parser")).split())
        assert "To use another focus, run /context undo first" in said
        told = re.search(r"compact: ([\d,]+) of .* compacted already; above ([\d,]+) tokens, newer messages go", said)
        assert told
        used, above = (int(number.replace(",", "")) for number in told.groups())
        assert used < above
        await stage.command("/context undo")
        assert "with scripted/model" in await stage.command("/compact the parser")


async def test_config_shows_changes_and_refuses(tmp_path: Path) -> None:
    with a_stage(tmp_path) as stage:
        everything = await stage.command("/config all")
        assert all(name in everything for name in KEYS)
        one = await stage.command("/config context.target_ratio")
        assert "context.target_ratio = auto" in one
        assert "Valid: auto, or a share" in one
        assert "context.compact_threshold = 0.7" in await stage.command("/config context.compact_threshold 70%")
        assert stage.conversation.loaded.settings.context.compact_threshold == pytest.approx(0.7)
        assert "set in this chat" in await stage.command("/config context.compact_threshold")
        foreign = await stage.command("/config contextCompaction.threshold 0.6")
        assert "contextCompaction.threshold is context.compact_threshold in nca" in foreign
        with pytest.raises(ConfigError, match="valid: auto, or a share"):
            await stage.command("/config context.compact_threshold 3x")
        with pytest.raises(ConfigError, match="no setting"):
            await stage.command("/config context.compct_threshold")
        assert 'model.summarizer = ""' in await stage.command('/config model.summarizer ""')


async def test_config_saves_what_is_in_force(tmp_path: Path) -> None:
    path = tmp_path / ".nca" / "config.toml"
    with a_stage(tmp_path) as stage:
        with pytest.raises(UsageError):
            await stage.command("/config --save")
        said = await stage.command("/config context.target_ratio 40% --save")
        assert ", saved in " in said
        await stage.command("/config context.stages summarize,truncate --save")
        assert path.read_text() == '[context]\ntarget_ratio = 0.4\nstages = ["summarize", "truncate"]\n'


async def test_a_key_that_is_stored_while_the_chat_is_open_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NCA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENAI_API_KEY", "")
    key = "sk-proj-walrus-walrus-walrus"
    (tmp_path / "notes.txt").write_text(f"the key is {key}")
    with a_stage(tmp_path, [call("read_file", '{"path": "notes.txt"}'), "Read."]) as stage:
        model = stage.conversation.model
        with pytest.raises(ModelUnavailable):
            await stage.command("/model openai/gpt-4.1")
        keys.save(os.environ, "OPENAI_API_KEY", key)
        assert "openai/gpt-4.1 answers from now on." in await stage.command("/model openai/gpt-4.1")
        await stage.conversation.use_model(model)
        await stage.conversation.send("Read notes.txt")
        assert [entry.message.text for entry in stage.conversation.context.entries][
            2
        ] == "the key is [redacted OPENAI_API_KEY]"


async def test_model_shows_and_switches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with a_stage(tmp_path) as stage:
        assert "scripted/model · window 10,000 tokens\n" in await stage.command("/model")
        with pytest.raises(ModelUnavailable):
            await stage.command("/model openai/gpt-4.1")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
        assert "openai/gpt-4.1 answers from now on." in await stage.command("/model openai/gpt-4.1")
        assert "openai/gpt-4.1 · window 1,047,576" in await stage.command("/model")
        session = stage.conversation.session
        assert session.info.chosen_model == "openai/gpt-4.1"
        session.remember_model("")
        await stage.command("/model openai/gpt-4.1")
        assert session.info.chosen_model == "", "it answered already: nothing was chosen"
        await stage.conversation.close()


async def test_effort_is_set_for_the_chat_and_sent(tmp_path: Path) -> None:
    with a_stage(tmp_path, ["Hello."]) as stage:
        shown = await stage.command("/effort")
        assert "Reasoning: auto (the provider's default). Another level: /effort auto|off|low|medium|high." in shown
        assert "Reasoning: high" in await stage.command("/effort HIGH")
        await stage.conversation.send("Hi.")
        assert stage.conversation.model.requests[-1].reasoning == "high"  # type: ignore[attr-defined]
        with pytest.raises(UsageError, match="takes no most"):
            await stage.command("/effort most")


async def test_effort_claims_no_effect_on_a_model_that_does_not_reason(tmp_path: Path) -> None:
    with a_stage(tmp_path) as stage:
        await stage.conversation.use_model(ScriptedModel((), facts=facts_of(SMOLLM, 0)))
        said = await stage.command("/effort medium")
        assert "Reasoning: medium. " in said
        assert "embedded/smollm2-135m is not known to reason; this has no effect." in said
        assert "(answer at once)" in await stage.command("/effort off")


async def test_sessions_cost_clear_and_exit(tmp_path: Path) -> None:
    with a_stage(tmp_path, ["Hello."]) as stage:
        await stage.conversation.send("What is \x1b[2J this?")
        listed = await stage.command("/sessions")
        assert f"{stage.conversation.session.info.id} (this)  " in listed
        assert "What is this?" in listed
        used = stage.conversation.session.usage.totals()
        assert f"{used.prompt_tokens:,} tokens in" in await stage.command("/cost")
        assert "not the conversation; /context clear or /new" in await stage.command("/clear")
        with pytest.raises(Leave) as leave:
            await stage.command("/exit")
        assert leave.value.exit_code == 0


def test_names_are_found_and_mistyped_ones_suggested() -> None:
    assert find_command("CONTEXT") is find_command("ctx")
    assert find_command("mod") is find_command("model")
    assert find_command("con") is None, "two begin so"
    assert find_command("mo") is None, "too short to mean one"


def test_words_of_other_programs_lead_to_what_nca_has() -> None:
    assert advice_for("contxt") == "Did you mean /context?"
    assert advice_for("con") == "Did you mean /context or /config?"
    assert advice_for("con", ["connect"]) == "Did you mean /context, /config or /connect?"
    assert advice_for("review-ti", ["review-it"]) == "Did you mean /review-it?"
    assert advice_for("git:deep:commit", ["commit", "git:push"]) == "Did you mean /commit?"
    assert advice_for("git:", ["commit", "git:push"]) == "Did you mean /git:push?"
    assert short_for("mod") == ["model"]
    assert short_for("mod", ["modify"]) == ["model", "modify"], "it may mean either"
    assert advice_for("zzzzzz") == advice_for("foo") == advice_for("") == "/help shows all commands."
    assert advice_for("PLAN").startswith("/permissions ")
    assert advice_for("add-dir").startswith("/config tools.readable ")
    leads_to = {
        "fork": "/rewind",
        "compress": "/compact",
        "doctor": "nca doctor",
        "think": "/effort",
        "recall": "/context search",
    }
    assert all(place in advice_for(word) for word, place in leads_to.items())
    assert "/help" not in advice_for("skills")
    assert not [word for word in foreign_names() if find_command(word)]
    named = {found for advice in foreign_names().values() for found in re.findall(r"(?:^|\s)/(\w+)", advice)}
    assert all(find_command(name) for name in named)


async def test_model_shows_the_window_that_is_in_force(tmp_path: Path) -> None:
    with a_stage(tmp_path, model__context_window=6_000) as stage:
        assert "scripted/model · window 6,000 tokens" in await stage.command("/model")


@pytest.mark.parametrize(
    ("command", "argument", "expected"),
    [
        ("context", "his", "history"),
        ("config", "threshold", "context.compact_threshold"),
        ("config", "context.auto o", "off"),
        ("config", "context.stages pr", "prune"),
        ("config", "context.target_ratio a", "auto"),
        ("config", "context.target_ratio 0.4 -", "--save"),
        ("help", "mod", "model"),
    ],
)
def test_arguments_are_completed(tmp_path: Path, command: str, argument: str, expected: str) -> None:
    with a_stage(tmp_path) as stage:
        found = find_command(command)
        assert found is not None
        assert expected in [suggestion.text for suggestion in found.complete(stage.app, argument)]
        assert list(found.complete(stage.app, "zzz zzz")) == []


async def test_memory_adds_and_lists_notes(tmp_path: Path) -> None:
    with a_stage(tmp_path, []) as stage:
        assert "No notes yet" in await stage.command("/memory")
        noted = await stage.command("/memory the tests run with make\x1b[31m test")
        assert "memory.json (1 in all)" in " ".join(noted.split())
        assert "The model sees it in sessions that begin from now on, not in this one." in " ".join(noted.split())
        shown = await stage.command("/memory")
        assert "the tests run with make" in shown
        assert "\x1b" not in shown


async def test_the_verb_of_memory_is_no_part_of_the_note(tmp_path: Path) -> None:
    with a_stage(tmp_path) as stage:
        said = await stage.command("/memory add the tests run with make test")
        assert "(1 in all): the tests run with make test" in " ".join(said.split())
        await stage.command("/memory Add  tabs")
        assert [note.text for note in stage.conversation.memory.notes()] == ["the tests run with make test", "tabs"]
        with pytest.raises(UsageError, match="/memory add needs a text"):
            await stage.command("/memory add")
        assert len(stage.conversation.memory.notes()) == 2


async def test_a_note_of_a_clock_that_was_far_off_is_shown(tmp_path: Path) -> None:
    file = tmp_path / ".nca" / "memory.json"
    file.parent.mkdir()
    file.write_text('{"notes": [{"text": "written by hand", "at": 1e300}]}')
    with a_stage(tmp_path) as stage:
        assert "unknown time  written by hand" in await stage.command("/memory")


async def test_a_note_is_removed_by_its_number(tmp_path: Path) -> None:
    with a_stage(tmp_path) as stage:
        for text in ("the tests run with make", "remove the old parser", "tabs"):
            await stage.command(f"/memory {text}")
        shown = " ".join((await stage.command("/memory")).split())
        assert ".nca/memory.json; /memory remove N removes one." in shown
        memory = find_command("memory")
        assert memory is not None
        assert [one.text for one in memory.complete(stage.app, "remove ")] == ["1", "2", "3"]
        assert "memory.json: the tests run with make" in " ".join((await stage.command("/memory remove 1")).split())
        assert [note.text for note in stage.conversation.memory.notes()] == ["remove the old parser", "tabs"]
        for wrong, about in {
            "3": "no number 3. Valid: 1 to 2",
            "9" * 5_000: "no number 999",
            "": "needs a number",
        }.items():
            with pytest.raises(UsageError, match=about) as refused:
                await stage.command(f"/memory remove {wrong}")
            assert "Valid: 1 to 2" in refused.value.advice
        for slip, meant in {"rm 1": "/memory remove 1?", "delete 2": "/memory remove 2?", "rm": "remove N?"}.items():
            with pytest.raises(UsageError, match=f"/memory {slip} notes nothing") as refused:
                await stage.command(f"/memory {slip}")
            assert meant in refused.value.advice
        assert len(stage.conversation.memory.notes()) == 2
        await stage.command("/memory delete no branches")
        assert stage.conversation.memory.notes()[-1].text == "delete no branches"


async def test_a_word_of_the_shell_s_command_is_no_setting(tmp_path: Path) -> None:
    with a_stage(tmp_path) as stage:
        for line in ("set context.auto off", "get context.auto", "show auto"):
            with pytest.raises(UsageError, match="is no setting") as refused:
                await stage.command(f"/config {line}")
            assert refused.value.advice == "/config context.auto shows it; /config context.auto VALUE changes it."


async def test_a_command_without_an_argument_refuses_one(tmp_path: Path) -> None:
    alone = [command.name for command in all_commands() if command.usage == f"/{command.name}"]
    assert {"cost", "clear", "exit", "undo", "redo"} <= set(alone)
    with a_stage(tmp_path) as stage:
        for name in alone:
            with pytest.raises(UsageError, match=f"/{name} takes no now"):
                await stage.command(f"/{name} now")
