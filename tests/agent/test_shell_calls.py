"""Commands of the model in a conversation: output shortened, saved and found again, and without keys."""

from __future__ import annotations

import asyncio
import json
import os
import re
from pathlib import Path

import pytest

from nca.agent.conversation import Conversation
from nca.config.layers import defaults
from nca.context.validate import validate_request
from nca.events import Event, ToolFinished, ToolOutput
from nca.messages import Message, ToolCall
from nca.models.catalog import ModelFacts
from nca.sessions.store import Store
from nca.terminal.render.calls import last_lines
from nca.testing.scripted import ScriptedModel
from nca.words import words

KEY = "sk-proj-" + "a1B2" * 10


def calling(command: str) -> Message:
    return Message("assistant", tool_calls=(ToolCall("call-1", "shell", json.dumps({"command": command})),))


async def result_of(tmp_path: Path, store: Store, command: str, *, window_tokens: int) -> tuple[Conversation, str]:
    root = tmp_path / "root"
    root.mkdir()
    facts = ModelFacts("scripted/model", "scripted", window_source="the script", window_tokens=window_tokens)
    conversation = Conversation.open(
        defaults().with_value("agent.permission", "auto", "the test"),
        store=store,
        model=ScriptedModel([calling(command), "Done."], facts=facts),
        directory=root,
    )
    finished = await conversation.send("go")
    assert finished.reason == "answered"
    return conversation, conversation.context.entries[2].message.text


async def test_events_have_what_a_command_printed_without_notes_and_keys(tmp_path: Path) -> None:
    events: list[Event] = []
    with Store.open(None) as store:
        conversation = Conversation.open(
            defaults().with_value("agent.permission", "auto", "the test"),
            store=store,
            model=ScriptedModel([calling(f"echo one; echo {KEY}; exit 3"), "Done."]),
            directory=tmp_path,
            listener=events.append,
        )
        await conversation.send("go")
        await conversation.close()
    (finished,) = [event for event in events if isinstance(event, ToolFinished)]
    assert finished.printed == "one\n[redacted]\n"
    assert finished.summary == "exit code 3 · 2 lines"


@pytest.mark.parametrize(
    ("command", "lines", "above"),
    [
        ("seq 1 100000", 100_000, "… 4 of 100,000 lines (/show has more)"),
        ("seq 1 100000; printf open", 100_001, "… 4 of 100,001 lines (/show has more)"),
        ("seq 1 100", 0, "… 96 lines above (/show has more)"),
    ],
)
async def test_of_an_output_that_was_cut_the_screen_counts_all_lines(
    tmp_path: Path, command: str, lines: int, above: str
) -> None:
    events: list[Event] = []
    with Store.open(tmp_path / "data" / "store.db") as store:
        conversation = Conversation.open(
            defaults().with_value("agent.permission", "auto", "the test"),
            store=store,
            model=ScriptedModel([calling(command), "Done."]),
            directory=tmp_path,
            listener=events.append,
        )
        await conversation.send("go")
        await conversation.close()
    (finished,) = [event for event in events if isinstance(event, ToolFinished)]
    assert finished.printed_lines == lines
    assert finished.summary.endswith("cut for the model") == (lines > 0)
    shown = [line.plain.strip() for line in last_lines(finished.printed, finished.printed_lines)]
    assert shown[0] == above
    assert shown[-1] in ("100000", "open", "100")


async def test_a_running_command_shows_its_last_lines_without_keys(tmp_path: Path) -> None:
    """The command ends when its lines have been told of."""
    os.mkfifo(tmp_path / "gate")
    told: list[str] = []
    ended: list[Event] = []

    def hear(event: Event) -> None:
        if isinstance(event, ToolOutput):
            told.append(event.text)
            if event.text.endswith("80%"):
                with (tmp_path / "gate").open("w") as gate:
                    gate.write("on")
        elif isinstance(event, ToolFinished):
            ended.append(event)
            told.append("")

    with Store.open(None) as store:
        conversation = Conversation.open(
            defaults().with_value("agent.permission", "auto", "the test"),
            store=store,
            model=ScriptedModel(
                [calling(f"seq 1 9; printf '\\033[1m%s\\n\\n' {KEY}; printf '60%%\\r80%%'; read -r _ <gate"), "Done."]
            ),
            directory=tmp_path,
            listener=hear,
        )
        await conversation.send("go")
        log = "".join(entry.message.text for entry in conversation.context.entries)
        await conversation.close()
    assert "7\n8\n9\n[redacted]\n80%" in told
    assert told[-1] == "", "nothing is told of a command that has ended"
    assert len(told) <= 4
    assert len(ended) == 1
    assert "[redacted]" in log


@pytest.mark.parametrize("window_tokens", [6_000, 20_000, 200_000])
async def test_the_whole_is_named_once_and_is_whole(tmp_path: Path, window_tokens: int) -> None:
    with Store.open(tmp_path / "data" / "store.db") as store:
        conversation, text = await result_of(
            tmp_path, store, f"seq 1 200000; echo needle {KEY}; seq 1 200000", window_tokens=window_tokens
        )
        named = re.findall(r"\[The whole output is in (.*)\]", text)
        assert len(named) == 1
        assert text.endswith(f"[The whole output is in {named[0]}]")
        whole = Path(named[0]).read_text()
        assert whole.startswith("1\n2\n")
        assert whole.endswith("\n200000\n")
        assert "needle [redacted]" in whole
        assert list((tmp_path / "data").rglob("*.txt")) == [Path(named[0])]
        assert conversation.context.search("needle"), "recall finds what only the file holds"
        await conversation.close()


async def test_what_is_left_out_can_be_recalled_as_the_seam_says(tmp_path: Path) -> None:
    with Store.open(tmp_path / "data" / "store.db") as store:
        conversation, text = await result_of(tmp_path, store, "seq 1 20000", window_tokens=20_000)
        pointer = re.search(r"\n\[… ([\d,]+) lines left out; recall expand=3 lines=(\d+)-(\d+) …\]\n", text)
        assert pointer
        first, last = int(pointer[2]), int(pointer[3])
        assert int(pointer[1].replace(",", "")) == last - first + 1
        shown = [line for line in text.splitlines() if line.isdigit() and not first <= int(line) <= last]
        assert {*range(1, first), *range(last + 1, 20_001)} <= set(map(int, shown))
        outcome = await conversation.toolbox.run(ToolCall("2", "recall", f'{{"expand": 3, "lines": "{first}-{last}"}}'))
        header, piece = outcome.text.split("\n", 1)
        assert header.startswith(f"[3: lines {first}-")
        assert piece.startswith(f"{first}\n{first + 1}\n")
        saved = text.rpartition("The whole output is in ")[2].rstrip("]")
        read = await conversation.toolbox.run(ToolCall("3", "read_file", json.dumps({"path": saved, "offset": first})))
        assert f"\n{first}\n{first + 1}\n" in read.text
        await conversation.close()


async def test_keys_of_a_command_do_not_get_in(tmp_path: Path) -> None:
    with Store.open(tmp_path / "data" / "store.db") as store:
        conversation, text = await result_of(tmp_path, store, f"echo {KEY[:20]}''{KEY[20:]}", window_tokens=20_000)
        assert text == "[redacted]"
        await conversation.close()


@pytest.mark.parametrize("more", ["", "yes & "])
async def test_an_interrupted_command_keeps_what_it_printed(tmp_path: Path, more: str) -> None:
    events: list[Event] = []
    with Store.open(None) as store:
        conversation = Conversation.open(
            defaults().with_value("agent.permission", "auto", "the test"),
            store=store,
            model=ScriptedModel([calling(f"echo one; echo {KEY}; touch begun; {more}sleep 987655")]),
            directory=tmp_path,
            listener=events.append,
        )
        turn = asyncio.ensure_future(conversation.run_turn(words("go")))
        while not (tmp_path / "begun").exists():
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        turn.cancel()
        assert (await turn).reason == "interrupted"
        result = conversation.context.entries[-1].message
        assert validate_request(conversation.context.effective_history(), "openai") == []
        assert not any(line.startswith("Fails") for line in conversation.context.where_we_were())
        await conversation.close()
    assert (result.role, result.is_error) == ("tool", False)
    assert result.text.startswith("one\n[redacted]\n")
    assert result.text.endswith("[interrupted by the user: outcome unknown]")
    (finished,) = [event for event in events if isinstance(event, ToolFinished)]
    assert finished.printed.startswith("one\n[redacted]\n")
    assert finished.summary.startswith("interrupted · ")


async def test_a_change_of_directory_holds_when_the_session_is_continued(tmp_path: Path) -> None:
    (tmp_path / "new" / "deep").mkdir(parents=True)
    place, commands = "", iter(["cd new/deep", "echo still", "pwd", "cd ../..; rmdir new/deep", "pwd"])
    shown = []
    with Store.open(None) as store:
        for command in commands:
            conversation = Conversation.open(
                defaults().with_value("agent.permission", "auto", "the test"),
                store=store,
                model=ScriptedModel([calling(command), "Done."]),
                directory=tmp_path,
                session=place or None,
            )
            await conversation.send("go")
            place = conversation.session.info.id
            shown.append(conversation.context.entries[-2].message.text)
            await conversation.close()
    assert shown[0].endswith("[The next command runs in new/deep]")
    assert shown[2] == str(tmp_path / "new" / "deep")
    assert shown[3].endswith(f"[The next command runs in {tmp_path}]")
    assert shown[4] == str(tmp_path)
