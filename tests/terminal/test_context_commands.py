"""/context expand, pin, preview, history and show."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import pytest

from nca.context.view import Summary, View
from nca.errors import UsageError
from nca.messages import Message, ToolCall
from nca.terminal.commands.context import SUBCOMMANDS
from tests.context.samples import talk
from tests.sessions.samples import MANUAL
from tests.terminal.stage import Stage, a_stage
from tests.terminal.test_commands import LONG, SUMMARY, a_long_chat, replies
from tests.terminal.test_help import columns
from tests.terminal.test_widths import printed
from tests.terminal.tty import chat

EDITOR = """#!/bin/sh
echo "the editor has the terminal: $(tty >/dev/null && stty -a | grep -o -e '-\\?icanon')"
printf '## Goal and intent\\n\\nOnly what I wrote myself.\\n' > "$1"
"""


async def compacted(stage: Stage) -> Summary:
    await a_long_chat(stage)
    await stage.command("/context compact")
    return stage.conversation.context.summaries()[-1]


async def test_expand_puts_the_originals_of_a_summary_back_and_undo_hides_them(tmp_path: Path) -> None:
    with a_stage(tmp_path, [*replies(6), SUMMARY], window_tokens=40_000, context__target_ratio=0.1) as stage:
        await a_long_chat(stage)
        before = stage.conversation.context.effective_history()
        await stage.command("/context compact")
        summary = stage.conversation.context.summaries()[-1]
        hidden = stage.conversation.context.effective_history()
        assert f"of messages 1–{summary.ranges[-1][1]}, written by scripted/model" in await stage.command(
            "/context show"
        )
        assert "summarize with scripted/model" in " ".join((await stage.command("/context history")).split())
        assert "summarize with scripted/model" in " ".join((await stage.command("/context diff")).split())
        text = await stage.command(f"/context expand {summary.id[:4]}")
        assert text.startswith("Restored. Context: ")
        # The system prompt stands before the messages. Behind the summary's, the newest may be cut as they were.
        shown = slice(0, 1 + summary.ranges[-1][1])
        assert stage.conversation.context.effective_history()[shown] == before[shown]
        with pytest.raises(UsageError, match="already in the context"):
            await stage.command("/context expand 1")
        assert "no longer in the context" in await stage.command(f"/context show {summary.id}")
        assert "1 compaction, 1 change by hand." in await stage.command("/context history")
        await stage.command("/context undo")
        assert stage.conversation.context.effective_history() == hidden


async def test_the_history_says_why_the_model_asked_for_a_compaction(tmp_path: Path) -> None:
    asks = Message("assistant", None, (ToolCall("c", "compact", '{"reason": "the step\\nis done"}'),))
    said = [*replies(6), asks, SUMMARY, "Done."]
    with a_stage(tmp_path, said, window_tokens=40_000, context__target_ratio=0.1) as stage:
        await a_long_chat(stage)
        await stage.command("/context pin 1")
        await stage.conversation.send("Go on.")
        shown = await stage.command("/context history")
    (line,) = [line for line in shown.splitlines() if "asked for by the model" in line]
    assert line.endswith(", asked for by the model: the step is done")


async def test_clear_says_that_pinned_messages_go_too(tmp_path: Path) -> None:
    """/context counted a pinned message that no request held any more."""
    with a_stage(tmp_path, replies(6), window_tokens=200_000) as stage:
        await a_long_chat(stage)
        await stage.command("/context pin 1")
        assert stage.conversation.context.stats().pinned_messages == 1
        assert "is empty, and the 1 pinned message left it as well;" in await stage.command("/context clear")
        assert stage.conversation.context.stats().pinned_messages == 0
        await stage.command("/context undo")
        assert stage.conversation.context.stats().pinned_messages == 1


async def test_a_focus_that_played_no_part_is_said(tmp_path: Path) -> None:
    """Of so little, code makes the record, whatever somebody names."""
    with a_stage(tmp_path, [*replies(6), SUMMARY], window_tokens=40_000, model__summarizer="none") as stage:
        await a_long_chat(stage)
        said = await stage.command("/compact the parser")
        assert "The focus was not used: no model wrote" in said
    (other := tmp_path / "with").mkdir()
    with a_stage(other, [*replies(6), SUMMARY], window_tokens=40_000, context__target_ratio=0.1) as stage:
        await a_long_chat(stage)
        assert "was not used" not in await stage.command("/compact the parser")


async def test_a_refused_summary_says_why_and_that_code_wrote(tmp_path: Path) -> None:
    """With earlier prose in it, /context diff named that prose's model, and nothing said why no model had written."""
    script = [*replies(6), SUMMARY, *replies(6), "", ""]
    with a_stage(tmp_path, script, window_tokens=40_000, context__target_ratio=0.1) as stage:
        await compacted(stage)
        await a_long_chat(stage)
        said = await stage.command("/compact the parser")
        assert "by code: " in said
        # One was asked, and answered.
        assert "The focus was not used: no model wrote the summary." in " ".join(said.split())
        assert "none answered" not in said
        for command in ("/context diff", "/context history"):
            assert "summarize with code" in " ".join((await stage.command(command)).split())


async def test_one_message_comes_back_by_its_number_and_the_summary_stands_for_the_rest(tmp_path: Path) -> None:
    with a_stage(tmp_path, [*replies(6), SUMMARY], window_tokens=40_000, context__target_ratio=0.1) as stage:
        summary = await compacted(stage)
        assert "hidden: summary" in await stage.command("/context show 1")
        await stage.command("/context expand 1")
        assert "message 1, user; in the context in full" in await stage.command("/context show 1")
        assert "hidden: summary" in await stage.command("/context show 2")
        (left,) = stage.conversation.context.summaries()
        assert left.ranges == ((2, summary.ranges[-1][1]),)
        text = await stage.command("/context expand 1, 3-2")
        assert "Message 1 is already in the context." in text
        assert text.count("Restored.") == 1
        assert stage.conversation.context.summaries()[0].ranges[0][0] == 4
        with pytest.raises(UsageError, match="no summary, marker or message"):
            await stage.command("/context expand 4 nothing")
        assert "Restored." in stage.take()


async def test_what_is_kept_counts_a_message_that_was_expanded(tmp_path: Path) -> None:
    with a_stage(tmp_path, [*replies(6), SUMMARY], window_tokens=40_000, context__target_ratio=0.1) as stage:
        await compacted(stage)
        before = int(re.search(r"messages, (\d+) of them whole", await stage.command("/context all"))[1])  # type: ignore[index]
        await stage.command("/context expand 1")
        shown = " ".join((await stage.command("/context all")).split())
        assert f"Readable now: 6 of 6 of your messages, {before + 1} of them whole" in shown
        assert f"kept at that time 6 of 6 of your messages, {before} of them whole" in shown
        await stage.command("/context undo")
        shown = await stage.command("/context all")
        assert "Readable now" not in shown
        assert "at that time" not in shown


@pytest.mark.parametrize("command", ["pin", "show", "collapse"])
async def test_a_message_of_a_session_without_any_is_not_one_of_1_to_0(tmp_path: Path, command: str) -> None:
    with a_stage(tmp_path, []) as stage, pytest.raises(UsageError) as refused:
        await stage.command(f"/context {command} 9")
    assert refused.value.advice == "The session has no messages yet."


async def test_what_cannot_be_shown_says_why(tmp_path: Path) -> None:
    with a_stage(tmp_path, [*replies(6), SUMMARY], window_tokens=40_000, context__target_ratio=0.1) as stage:
        summary = await compacted(stage)
        for line, words in (
            ("/context expand", "ID"),
            ("/context expand nothing", summary.id),
            ("/context show zzz", summary.id),
            ("/context show 99", "1 to 12"),
            ("/context pin 99", "1 to 12"),
            ("/context pin the rule", "is not a message number"),
            ("/context accept", "There is no preview"),
            ("/context clear now", "takes no now"),
            ("/context history 3", "takes no 3"),
            ("/compact 200%", "is not a focus in words"),
            ("/context compact from", "needs a message's number"),
            ("/compact from foo", "from needs a message's number"),
            ("/compact Before the deployment", "Before needs a message's number"),
            ("/compact from 99", "1 to 12"),
            ("/compact undo", "undo is no focus"),
            ("/context compact History", "History is no focus"),
        ):
            with pytest.raises(UsageError, match=words):
                await stage.command(line)


async def test_a_subcommand_is_asked_about_and_no_focus(tmp_path: Path) -> None:
    with a_stage(tmp_path, [*replies(6), SUMMARY], window_tokens=40_000, context__target_ratio=0.1) as stage:
        await compacted(stage)
        for word in SUBCOMMANDS:
            with pytest.raises(UsageError) as refused:
                await stage.command(f"/compact {word}")
            assert refused.value.advice == f"Did you mean /context {word}?"
        assert len(stage.conversation.context.history()) == 1
        await stage.command("/compact undo of the editor")  # of several words it is a focus


async def test_expand_refuses_what_the_budget_has_no_room_for(tmp_path: Path) -> None:
    with a_stage(tmp_path, [*replies(6), SUMMARY], window_tokens=40_000, context__target_ratio=0.1) as stage:
        summary = await compacted(stage)
        stage.conversation.set("context.max_tokens", 4_000)
        view = stage.conversation.context.view
        with pytest.raises(UsageError, match="no room for that") as refused:
            await stage.command(f"/context expand {summary.id}")
        assert "take a single message" in refused.value.advice
        stage.conversation.set("context.max_tokens", 3_000)
        with pytest.raises(UsageError, match="no room for that") as refused:
            await stage.command("/context expand 3")
        assert refused.value.advice == "/context show 3 prints it, and leaves the context as it is."
        assert "message 3, user" in await stage.command("/context show 3")
        assert stage.conversation.context.view == view


async def test_a_pinned_message_stays_and_the_pins_have_a_budget(tmp_path: Path) -> None:
    with a_stage(tmp_path, [*replies(6), SUMMARY, SUMMARY], window_tokens=40_000, context__target_ratio=0.1) as stage:
        await compacted(stage)
        assert "Message 3 is pinned." in await stage.command("/context pin 3")
        assert f"Question 1: {LONG}".strip() in [
            row["content"].strip() for row in stage.conversation.context.effective_history()
        ]
        with pytest.raises(UsageError, match="already pinned"):
            await stage.command("/context pin 3")
        text = await stage.command("/context pin")
        assert "● 3" in text
        assert "/context search TEXT finds one" not in text, "all twelve stand there"
        tokens = stage.conversation.context.pins()[0].tokens
        assert f"Pins: {tokens:,} of {stage.conversation.context.pins_budget_tokens:,} tokens" in text
        await stage.command("/context compact")
        assert any("Question 1" in str(row["content"]) for row in stage.conversation.context.effective_history()[1:])
        assert "is no longer pinned" in await stage.command("/context unpin 3")
        with pytest.raises(UsageError, match="is not pinned"):
            await stage.command("/context unpin 3")
        assert "Messages 1–3 are pinned." in await stage.command("/context pin 1, 3-2")
        text = await stage.command("/context pin 2-4")
        assert "Messages 2–3 are already pinned." in text
        assert "Message 4 is pinned." in text
        with pytest.raises(UsageError, match="no message 99"):
            await stage.command("/context unpin 4 99 3")
        assert [pin.seq for pin in stage.conversation.context.pins()] == [1, 2, 3, 4], "nothing was changed"
        assert "Messages 1–3 are no longer pinned." in await stage.command("/context unpin 1-3")
        assert "Message 11 is pinned." in await stage.command("/context pin last")
        assert "Message 11 is no longer pinned." in await stage.command("/context unpin last")
        assert "Messages 10–11 are pinned." in await stage.command("/context pin 10-last")
        assert "Message 10 is no longer pinned." in await stage.command("/context unpin 10")
        with pytest.raises(UsageError, match="Message 11 is already in the context"):
            await stage.command("/context expand last")
        assert "message 11, user" in await stage.command("/context show last")
        stage.conversation.set("context.max_tokens", 3_000)
        with pytest.raises(UsageError, match="no room for message 12"):
            await stage.command("/context pin 12")


async def test_a_preview_changes_nothing_until_it_is_accepted(tmp_path: Path) -> None:
    with a_stage(tmp_path, [*replies(6), SUMMARY], window_tokens=40_000, context__target_ratio=0.1) as stage:
        await a_long_chat(stage)
        before = stage.conversation.context.view
        text = await stage.command("/context compact --preview the parser")
        assert stage.conversation.context.view == before
        assert not stage.conversation.context.history()
        held = stage.app.preview
        assert held is not None
        assert f"{held.proposal.tokens_before:,} → {held.proposal.tokens_after:,} tokens" in text
        assert "fails at line 12" in text
        assert "messages 1–" in text
        await stage.command("/context accept")
        assert stage.conversation.context.view == held.proposal.view
        (record,) = stage.conversation.context.history()
        assert record.tokens_after == held.proposal.tokens_after == stage.conversation.context.stats().used_tokens


async def test_a_preview_without_prose_shows_no_empty_summary(tmp_path: Path) -> None:
    with a_stage(
        tmp_path, replies(6), window_tokens=40_000, context__target_ratio=0.1, model__summarizer="none"
    ) as stage:
        await a_long_chat(stage)
        text = await stage.command("/context compact --preview")
        assert "Summary written by code" not in text, "nobody was to be asked"
        assert "## " not in text
        assert "summarize with code; in view: " in await stage.command("/context accept")
        assert "written by code; " in await stage.command("/context show")


async def test_the_names_in_a_preview_are_whole_in_a_narrow_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with a_stage(tmp_path, [*replies(6), SUMMARY], window_tokens=40_000, context__target_ratio=0.1) as stage:
        await a_long_chat(stage)
        text = await printed(stage, "/context compact --preview", 32, monkeypatch)
        assert all(f"  {name} " in text for name in ("summarize", "goes", "each request"))
        kept = text[text.index("  keeps ") :].partition("\n\n")[0].splitlines()
        assert len(kept) > 1
        assert all(row.startswith("  ") for row in kept)


async def test_a_preview_is_dropped_or_outdated(tmp_path: Path) -> None:
    with a_stage(tmp_path, [*replies(6), *[SUMMARY] * 4], window_tokens=40_000, context__target_ratio=0.1) as stage:
        await a_long_chat(stage)
        await stage.command("/context compact --preview")
        assert "Discarded the preview." in await stage.command("/context drop")
        await stage.command("/compact --preview")
        assert "Discarded the preview." in await stage.command("/compact drop")
        assert stage.app.conversation.context.history() == [], "no compaction with this focus"
        await stage.command("/compact --preview")
        assert stage.app.preview is not None
        with pytest.raises(UsageError, match="takes no --previw"):
            await stage.command("/compact --previw")
        assert not stage.conversation.context.history()
        await stage.command("/context compact keep what --fix did")
        view = stage.conversation.context.view
        with pytest.raises(UsageError, match="changed since the preview"):
            await stage.command("/context accept")
        assert stage.conversation.context.view == view


def test_the_summary_of_a_preview_opens_in_the_editor(tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text(EDITOR)
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    with chat(
        *replies(4),
        SUMMARY,
        settings={"context.idle_threshold": 1.0},
        window_tokens=40_000,
        env={"EDITOR": str(editor)},
    ) as tty:
        for number in range(4):
            tty.line(f"Question {number}. {LONG[:200]}")
            tty.sees(f"Answer {number}.")
        tty.line("/context compact --preview")
        tty.sees("Planning the compaction…")
        tty.sees("/context accept applies it")
        tty.line("/context edit")
        tty.sees("the editor has the terminal: icanon")
        tty.sees("Only what I wrote myself.")
        tty.line("/context accept")
        tty.sees("/context undo takes it back")
        tty.line("/context show")
        tty.sees("written by you")
        tty.line("/exit")
        assert tty.ends() == 0


def test_without_an_editor_the_line_says_what_to_set(tmp_path: Path) -> None:
    with chat(*replies(4), SUMMARY, window_tokens=40_000, context__target_ratio=0.1) as tty:
        for number in range(4):
            tty.line(f"Question {number}. {LONG[:200]}")
            tty.sees(f"Answer {number}.")
        tty.line("/context compact --preview")
        tty.sees("/context accept applies it")
        tty.line("/context edit")
        tty.sees("Set EDITOR, as in")


async def test_the_diff_adds_up_to_what_the_compaction_says(tmp_path: Path) -> None:
    with a_stage(tmp_path, [*replies(6), SUMMARY, "Later."], window_tokens=40_000, context__target_ratio=0.1) as stage:
        with pytest.raises(UsageError, match="No compaction is in effect"):
            await stage.command("/context diff")
        summary = await compacted(stage)
        (record,) = stage.conversation.context.history()
        diff = stage.conversation.context.diff(record)
        parts = stage.conversation.context.stats().parts
        assert diff.after == {kind: tokens for kind, tokens in parts.items() if tokens}, "as /context says"
        # What was said since is no part of it.
        await stage.conversation.send(f"And now? {LONG}")
        assert "Before message 3: /context search TEXT finds one" in await stage.command("/context pin")
        await stage.command("/context pin 1")
        diff = stage.conversation.context.diff(record)
        sums = sum(diff.before.values()), sum(diff.after.values())
        assert sums == (record.tokens_before, record.tokens_after)
        assert (diff.before["summaries"], diff.made) == (0, (summary,))
        assert diff.after["summaries"] > 0
        assert diff.hidden == summary.ranges
        assert "█" not in await stage.command("/context diff"), "a screen reader reads each block"
        text = await stage.on_a_screen().command("/context diff")
        numbers = f"{record.tokens_before:,} → {record.tokens_after:,} tokens"
        for words in (numbers, "conversation", "Can still be read: ", f"/context show {summary.id}", "/context undo"):
            assert words in text
        assert "█" in text
        # The messages that went are named, the newest of them if they are many.
        newest = summary.ranges[-1][1]
        assert re.search(rf"^ *{newest} +(you|assistant) +(Question|Answer)", text, re.MULTILINE)
        # A narrow window has no room for the bars, and the numbers stay whole.
        with columns(40):
            text = await stage.on_a_screen().command("/context diff")
        assert "█" not in text
        rows = [line.split() for line in text.splitlines() if line.strip().startswith("conversation ")]
        before, after = diff.before["conversation"], diff.after["conversation"]
        assert rows[0][1:4] == [f"{before:,}", f"−{before - after:,}", f"{after:,}"]
        await stage.command("/context undo")
        await stage.command("/context undo")
        with pytest.raises(UsageError, match="No compaction is in effect"):
            await stage.command("/context diff")


async def test_what_collapsing_does_not_shorten_is_neither_offered_nor_counted(tmp_path: Path) -> None:
    written = json.dumps({"path": "big.py", "content": "x = 1\n" * 2_000})
    replies = [Message("assistant", None, (ToolCall("w", "write_file", written),)), "Done. " + LONG, "Fine.", "Good."]
    with a_stage(tmp_path, replies, window_tokens=60_000, agent__permission="accept-edits") as stage:
        for question in ("Write it.", "And?", "So?"):
            await stage.conversation.send(question)
        items = {item.id: item for item in stage.conversation.context.items()}
        largest = max(items.values(), key=lambda item: item.tokens)
        offered = max((one for one in items.values() if one.is_collapsible), key=lambda item: item.tokens)
        assert "write_file" in largest.label
        assert f"Try: /context collapse {offered.id} ·" in await stage.command("/context all")
        with pytest.raises(UsageError) as refused:
            await stage.command(f"/context collapse {largest.id}")
        assert f"Message {largest.id} is not collapsed: only texts and results are shortened" in str(refused.value)
        said = await stage.command(f"/context collapse {largest.id} {offered.id}")
        assert "Collapsed 1 message: " in said
        assert f"Message {largest.id} is as before." in said


async def test_of_several_summaries_the_newest_is_shown(tmp_path: Path) -> None:
    with a_stage(tmp_path, window_tokens=200_000) as stage:
        with stage.conversation.store.create(directory=str(tmp_path), model="m") as session:
            session.log.append(talk(6))
            made = [Summary(f"s{one}", ((2 * one - 1, 2 * one),), f"Text {one}.") for one in (1, 2, 3)]
            session.views.commit(View(tuple(made), 7), MANUAL)
        await stage.app.sessions.resume(session.info.id)
        for words, shown in (("", 3), (" s", 3), (" s1", 1), (" s2", 2)):
            assert (await stage.command(f"/context show{words}")).startswith(f"Text {shown}."), words
        await stage.conversation.close()


async def test_an_empty_chat_is_offered_nothing_that_needs_a_message(tmp_path: Path) -> None:
    with a_stage(tmp_path, ["Yes."]) as stage:
        assert "Try: /context all" in (await stage.command("/context")).replace("\u00a0", " ")
        await stage.conversation.send("Is it?")
        assert "Try: /context pin 1 · compact from 1" in (await stage.command("/context")).replace("\u00a0", " ")


async def test_the_messages_of_the_context_and_of_a_list_of_sessions_add_up(tmp_path: Path) -> None:
    with a_stage(tmp_path, ["One.", "Two."]) as stage:
        await stage.conversation.send("Please say one")
        assert "2 messages in 1 turn.\n" in await stage.command("/context")
        await stage.conversation.send("Please say two")
        await stage.command("/undo")
        assert "2 messages in 1 turn. 2 more not in the conversation." in await stage.command("/context")
        assert [info.messages for info in stage.conversation.store.list()] == [4]
