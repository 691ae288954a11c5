"""/config: find, explain, change, unset and save settings."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from nca.config.claude_permissions import HeldRule
from nca.config.layers import load
from nca.config.saving import save_value
from nca.config.schema import KEYS
from nca.config.tables import PermissionRule
from nca.errors import ConfigError, UsageError
from nca.models.catalog import ModelFacts
from nca.terminal.commands.command import find_command
from nca.terminal.panels.config_browser import matching, value_text
from nca.testing.scripted import ScriptedModel
from tests.terminal.stage import a_stage


async def test_the_overview_is_one_screen_with_what_is_changed_first(tmp_path: Path) -> None:
    with a_stage(tmp_path) as stage:
        assert "All settings have their defaults." in await stage.command("/config")
        await stage.command("/config context.target_ratio 0.45")
        lines = (await stage.command("/config")).splitlines()
        assert lines[0].split() == ["•", "context.target_ratio", "0.45", "set", "in", "this", "chat"]
        assert len(lines) <= 20
        for group in ("model", "context.prune", "terminal"):
            assert any(line.startswith(f"{group} ") for line in lines)


async def test_a_zero_that_is_no_amount_says_what_it_means(tmp_path: Path) -> None:
    with a_stage(tmp_path, model__context_window=0) as stage:
        for said in (
            "context_window = 0 (look it up)",
            'summarizer = "" (the chat\'s model)',
            "max_cost = 0 (no limit)",
        ):
            assert said in await stage.command(f"/config {said.partition(' ')[0]}")
    # Whoever writes such a setting says it in its description.
    counts = [key for key in KEYS.values() if key.unit and key.default == 0]
    assert [key.name for key in counts if "(" not in value_text(key.name, key.default)] == []


async def test_room_for_the_answer_is_at_most_half_of_the_window(tmp_path: Path) -> None:
    with a_stage(tmp_path, window_tokens=20_000) as stage:
        said = await stage.command("/config model.max_output_tokens 19000")
        assert "model.max_output_tokens is lowered from 19,000 to 10,000: the answer may take half" in said
        assert "lowered" not in await stage.command("/config model.max_output_tokens 10000")


async def test_a_word_finds_settings_and_a_group_lists_them(tmp_path: Path) -> None:
    with a_stage(tmp_path) as stage:
        found = await stage.command("/config compact")
        assert "context.compact_threshold" in found.splitlines()[0]
        assert "context.auto " in found
        assert "model.name" not in found
        assert "session.max_cost" in await stage.command("/config USD")
        group = await stage.command("/config context.prune")
        assert group.count("context.prune.") == sum(name.startswith("context.prune.") for name in KEYS)
        with pytest.raises(ConfigError, match="no setting") as refused:
            await stage.command("/config context.compct_threshold")
        assert refused.value.advice == "Did you mean context.compact_threshold?"
        with pytest.raises(ConfigError, match="no setting threshold") as refused:
            await stage.command("/config threshold 0.5")
        names = [f"context.{name}_threshold" for name in ("info", "idle", "compact")]
        assert all(name in (refused.value.advice or "") for name in names)


@pytest.mark.parametrize("columns", [60, 80, 100, 140])
async def test_nothing_is_left_out_of_a_list_of_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    with a_stage(tmp_path) as stage:
        await stage.command("/config context.target_ratio 0.45")
        for wanted, names in (("threshold", matching("threshold")), ("all", list(KEYS))):
            # Columns part the words of a cell, and no dot stands at the end of a row.
            letters = Counter("".join((await stage.command(f"/config {wanted}")).split()))
            loaded = stage.conversation.loaded
            said = [(name, value_text(name, loaded.value(name)), KEYS[name].about) for name in names]
            said = [one if one[0] != "context.target_ratio" else (*one[:2], "set in this chat") for one in said]
            told = Counter("".join("".join(part for one in said for part in one).split()))
            assert set(told - letters) <= {"·"}


async def test_the_end_of_a_name_is_enough_if_only_one_setting_has_it(tmp_path: Path) -> None:
    with a_stage(tmp_path) as stage:
        assert "context.compact_threshold = 0.7, for this chat" in await stage.command("/config compact_threshold 0.7")
        assert "context.prune.keep_results = 3" in await stage.command("/config prune.keep-results 3")
        assert "(set in this chat)" in await stage.command("/config compact_threshold")
        assert "auto again (default)" in await stage.command("/config compact_threshold --unset")
        assert "context.max_turns = 9 turns, saved in " in await stage.command("/config max_turns 9 --save")
        with pytest.raises(ConfigError, match=r"max_tokens could be any of context\.max_tokens, ") as refused:
            await stage.command("/config max_tokens 9")
        assert "Give more of the name" in str(refused.value)
        command = find_command("config")
        assert command is not None
        assert command.needs_person(stage.app, "api_base http://evil.example") == "changes api_base"


async def test_the_default_comes_back_and_what_was_below(tmp_path: Path) -> None:
    with a_stage(tmp_path, context__target_ratio=0.45) as stage:
        loaded = stage.conversation.loaded
        assert loaded.value("context.target_ratio") == 0.45
        await stage.command("/config context.target_ratio default")
        assert stage.conversation.loaded.settings.context.target_ratio == "auto"
        await stage.command("/config context.max_turns 7")
        shown = await stage.command("/config context.max_turns")
        assert "Before: 0 (no limit) (default); --unset restores it." in shown
        assert "context.max_turns = 0 (no limit) again (default)." in await stage.command(
            "/config context.max_turns --unset"
        )
        assert stage.conversation.loaded.origin("context.max_turns") == "default"
        with pytest.raises(UsageError, match="was not set in this chat"):
            await stage.command("/config context.max_turns --unset")
        with pytest.raises(UsageError, match="takes no value"):
            await stage.command("/config context.max_turns 3 --unset")
        with pytest.raises(UsageError, match="no file has it") as refused:
            await stage.command("/config context.max_turns --unset --save")
        assert "default --save" in refused.value.advice


async def test_every_default_can_be_set_again(tmp_path: Path) -> None:
    with a_stage(tmp_path) as stage:
        before = stage.conversation.loaded.settings
        for name, key in KEYS.items():
            if not key.value_type.is_named:
                await stage.command(f"/config {name} default")
        assert stage.conversation.loaded.settings == before


async def test_default_with_save_takes_it_out_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / ".nca" / "config.toml"

    with a_stage(tmp_path) as stage:
        await stage.command("/config context.prune.keep_results 3 --save")
        await stage.command("/config context.auto off --save")
        assert "keep_results = 3" in path.read_text()
        said = await stage.command("/config context.prune.keep_results default --save")
        assert ", removed from " in said
        assert path.read_text() == '[context]\nauto = "off"\n'


async def test_what_was_taken_out_of_the_file_does_not_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("NCA_HOME", str(home))
    with a_stage(tmp_path) as stage:
        for own, again in ((0, "0 (no limit)"), (5, "5 turns")):
            if own:
                save_value(home / "config.toml", "context.max_turns", own)
            await stage.command("/config context.max_turns 7 --save")
            await stage.command("/config context.max_turns default --save")
            said = await stage.command("/config context.max_turns --unset")
            assert f"context.max_turns = {again} again" in said


async def test_what_is_saved_comes_from_the_file_and_not_from_the_chat(tmp_path: Path) -> None:
    path = tmp_path / ".nca" / "config.toml"

    with a_stage(tmp_path) as stage:
        await stage.command("/config context.max_turns 7 --save")
        assert stage.conversation.loaded.origin("context.max_turns") == str(path)
        assert stage.conversation.loaded.value("context.max_turns") == 7
        with pytest.raises(UsageError, match="was not set in this chat"):
            await stage.command("/config context.max_turns --unset")
        await stage.command("/config context.max_turns 9")
        assert "context.max_turns = 7 turns again" in await stage.command("/config context.max_turns --unset")


async def test_what_a_change_does_not_reach_is_said(tmp_path: Path) -> None:
    with a_stage(tmp_path) as stage:
        said = await stage.command("/config model.name openai/other")
        assert "this chat stays with scripted/model (/model openai/other switches)" in " ".join(said.split())
        assert "for this chat; --save" in await stage.command("/config model.max_retries 2")
        assert "for this chat; --save" in await stage.command("/config model.name scripted/model")


async def test_what_this_chat_has_in_place_of_a_setting_is_said_wherever_the_setting_is_shown(tmp_path: Path) -> None:
    mine = (HeldRule("deny", "Bash(rm *)", "f.json", (("deny", PermissionRule("shell", "rm *")),), True),)
    with a_stage(tmp_path, held=mine, model__name="openai/configured", model__context_window=9_000) as stage:
        facts = ModelFacts("scripted/other", "scripted", 8_000)
        await stage.conversation.use_model(ScriptedModel([], facts=facts))
        stage.conversation.approvals.session_rules.append(PermissionRule("fetch_url"))
        await stage.command("/config session.persist false")
        other = "this chat has scripted/other (/model openai/configured switches)"
        assert f"T{other[1:]}." in (await stage.command("/config model.name"))
        for wanted in ("model", "all", ""):
            assert other in " ".join((await stage.command(f"/config {wanted}")).split())
        assert "This chat has true." in await stage.command("/config session.persist")
        for kind in ("allow", "deny"):
            said = await stage.command(f"/config permissions.{kind}")
            assert "This chat has 1 rule more (/permissions lists all)." in said
        assert "This chat has" not in await stage.command("/config permissions.ask")
        # A window that is set holds.
        assert "This chat has" not in await stage.command("/config model.context_window")
        assert stage.conversation._window.state.learn_window(5_000)
        assert "This chat has 5,000 tokens (from the provider's error)." in await stage.command(
            "/config model.context_window"
        )


async def test_what_a_file_sets_for_the_model_that_answers_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[for."scripted/m*"]\ncontext.max_turns = 7\nmodel.reasoning = "high"\n')
    loaded = load(project=tmp_path, env={"NCA_HOME": str(tmp_path)})
    with a_stage(tmp_path, base=loaded) as stage:
        said = "".join((await stage.command("/config context.max_turns")).split())
        assert said.startswith(f'context.max_turns=7turns({file}[for."scripted/m*"])')
        assert "Reasoning: high" in await stage.command("/effort")
        await stage.conversation.use_model(ScriptedModel([], facts=ModelFacts("scripted/other", "scripted", 8_000)))
        assert "context.max_turns = 0 (no limit)  (default)" in await stage.command("/config context.max_turns")


async def test_only_what_acts_in_this_chat_is_said_to_and_the_way_to_keep_it_is_one(tmp_path: Path) -> None:
    with a_stage(tmp_path) as stage:
        for key, value in (("session.persist", "false"), ("session.retention_days", "9"), ("terminal.plain", "true")):
            said = " ".join((await stage.command(f"/config {key} {value}")).split())
            assert "this chat stays as it is, only a start reads it" in said
            assert "for this chat" not in said
        for key in ("agent.permission ask", "session.max_cost 3", "context.max_turns 9"):
            said = " ".join((await stage.command(f"/config {key}")).split())
            if "; --save keeps it" in said:
                assert ", saved in " in await stage.command(f"/config {key} --save")
            else:
                assert said.endswith(", for this chat; nca config set --user keeps it.")
                with pytest.raises(ConfigError, match="nca config set --user"):
                    await stage.command(f"/config {key} --save")


def test_values_are_completed_with_what_can_be_done(tmp_path: Path) -> None:
    with a_stage(tmp_path, models=["openai/one", "anthropic/two"]) as stage:
        config = find_command("config")
        assert config is not None

        def words(typed: str) -> list[str]:
            return [suggestion.text for suggestion in config.complete(stage.app, typed)]

        assert words("context.auto ") == ["on", "off", "preview", "default", "--save"]
        assert words("context.auto off ") == ["--save"]
        assert words("context.compact_threshold 0.7 ") == ["--save"]
        assert words("context.auto off --save ") == []
        assert "--save" not in words("agent.permission "), "a project's file may not hold it"
        stage.conversation.set("context.auto", "off")
        assert words("context.auto -") == ["--save", "--unset"]
        assert words("context.auto --unset ") == []
        assert "prune" in words("context.stages trim, ")
        assert "anthropic/two" in words("model.summarizer a")
        assert "context.compact_threshold" in words("compact")


async def test_one_is_not_a_plural(tmp_path: Path) -> None:
    with a_stage(tmp_path) as stage:
        assert "model.max_reserve_tokens = 1 token, " in await stage.command("/config model.max_reserve_tokens 1")
        assert "2 tokens, " in await stage.command("/config model.max_reserve_tokens 2")


async def test_quotes_around_a_value_are_taken_off_as_a_shell_does(tmp_path: Path) -> None:
    with a_stage(tmp_path) as stage:

        async def given(value: str) -> str:
            await stage.command(f"/config terminal.status {value}")
            return stage.conversation.loaded.settings.terminal.status

        assert await given('"{model}  {percent}"') == "{model}  {percent}"
        assert await given("'{model} \"{mode}\"'") == '{model} "{mode}"'
        assert await given('"{model}" or "{mode}"') == '"{model}" or "{mode}"'
        assert await given("{model}'s") == "{model}'s"
        assert await given('"{model}') == '"{model}'
        for empty in ('""', "''"):
            await given("{mode}")
            assert await given(empty) == ""


@pytest.mark.parametrize("word", ["reset", "unset"])
async def test_a_reset_leads_to_what_does_it(tmp_path: Path, word: str) -> None:
    with a_stage(tmp_path) as stage, pytest.raises(UsageError) as raised:
        await stage.command(f"/config {word} compact_threshold")
    assert "/config context.compact_threshold --unset " in str(raised.value.advice)
    assert "/config context.compact_threshold default resets it" in str(raised.value.advice)
