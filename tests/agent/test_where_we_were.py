"""The card for a person who comes back: at most six lines, from the log alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nca.agent.approvals import Answer, Person
from nca.context.file_reads import CUT_OFF
from nca.errors import ProviderError
from nca.events import ApprovalAsked, ContextCompaction
from nca.messages import Message, ToolCall, Usage
from nca.models.model import Reply
from nca.testing.scripted import ScriptedReply
from tests.agent.test_conversation import Room


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


def calling(name: str, **arguments: object) -> Reply:
    call = ToolCall(f"{name}-{len(json.dumps(arguments))}", name, json.dumps(arguments))
    return Reply(Message("assistant", "", tool_calls=(call,)), Usage(1_000, 50, cost=0.01))


def answer(text: str) -> Reply:
    return Reply(Message("assistant", text), Usage(1_000, 50, cost=0.01))


async def test_it_has_task_step_plan_failure_files_and_cost(room: Room) -> None:
    conversation = room.open(
        [
            calling("todo", doing="mend the parser", open=["write tests", "update the docs"], done=["read it"]),
            calling("write_file", path="parser.py", content="x = 1\n"),
            calling("write_file", path="lexer.py", content="y = 1\n"),
            calling("shell", command="false"),
            answer("The parser is mended; the test still fails."),
            answer("I go on."),
        ],
        settings={"agent.permission": "auto"},
    )
    assert conversation.context.where_we_were() == ()
    await conversation.send("Mend the parser so that it reads dates, please")
    step = conversation.context.where_we_were(is_answer_shown=True)[1]
    await conversation.send("go on")
    lines = conversation.context.where_we_were()
    assert [line.partition(":")[0] for line in lines] == [
        "You said", "Last answer", "Plan", "Failed", "Changed", "So far"
    ]  # fmt: skip
    task, said, plan, fails, changed, cost = lines
    assert task == "You said: go on · earlier: Mend the parser so that it reads dates, please"
    assert said == "Last answer: I go on."
    assert plan == "Plan: 1 of 4 done; open: mend the parser, write tests, update the docs"
    assert fails.startswith("Failed: shell false → ")
    assert changed == "Changed: lexer.py, parser.py"
    assert cost == "So far: $0.0600; the model read 6,000 tokens and wrote 300"
    assert step == f"Last step, failed: {fails.removeprefix('Failed: ')}"
    # A step of the message before is none of this one.
    assert "Last step" not in " ".join(conversation.context.where_we_were(is_answer_shown=True))


@pytest.mark.parametrize(
    ("said", "task"),
    [
        (["tell me about the history of the shop", "now fix calc.py"], "now fix calc.py"),
        (["tell me about the history of the shop", "fix calc.py", "go on", "ok"], "ok · earlier: fix calc.py"),
        (
            ["tell me about the history of the shop", "fix tests"],
            "fix tests · earlier: tell me about the history of the shop",
        ),
        (["tell me about the history of the shop", "ok", "ok"], "ok · earlier: tell me about the history of the shop"),
        (["tell me about the history of the shop", "run the tests"], "run the tests"),
        (["mend the parser of the shop?", "yes, do it"], "yes, do it · earlier: mend the parser of the shop?"),
        (["yes", "ok"], "ok"),
    ],
)
async def test_the_task_is_the_newest_message_and_behind_a_short_one_what_it_belongs_to(
    room: Room, said: list[str], task: str
) -> None:
    conversation = room.open([answer(f"You said: {text}") for text in said])
    for text in said:
        await conversation.send(text)
    assert conversation.context.where_we_were()[0] == f"You said: {task}"


async def test_the_reason_of_a_refusal_is_no_task(room: Room) -> None:
    class Refuses(Person):
        async def ask(self, asked: ApprovalAsked) -> Answer:
            return Answer("deny", "write it into the other file, please")

    replies: list[ScriptedReply] = [calling("write_file", path="a.py", content="x"), answer("I did not.")]
    conversation = room.open(replies, person=Refuses())
    await conversation.send("write the first file of the shop")
    assert conversation.context.where_we_were()[0] == "You said: write the first file of the shop"
    assert conversation.context.last_exchange() == ("write the first file of the shop", "I did not.", 4)


async def test_the_last_exchange_is_the_newest_message_and_what_answers_it(room: Room) -> None:
    conversation = room.open([answer("One."), answer("Two.\n\n- a list"), ProviderError("Down.")])
    assert conversation.context.last_exchange() == ("", "", 0)
    await conversation.send("first")
    await conversation.send("second")
    assert conversation.context.last_exchange() == ("second", "Two.\n\n- a list", 4)
    assert "Last answer" not in " ".join(conversation.context.where_we_were(is_answer_shown=True))
    await conversation.send("third")
    assert conversation.context.last_exchange() == ("third", "", 0)
    assert "Last answer" not in " ".join(conversation.context.where_we_were())


async def test_what_has_worked_since_does_not_fail(room: Room) -> None:
    test = calling("shell", command="test -e done.txt")
    replies: list[ScriptedReply] = [test, calling("write_file", path="done.txt", content="x"), test, answer("Done.")]
    conversation = room.open(replies, settings={"agent.permission": "auto"})
    await conversation.send("Make the test pass now")
    assert not any(line.startswith("Failed") for line in conversation.context.where_we_were())


async def test_what_failed_is_news_until_something_else_is_worked_on(room: Room) -> None:
    replies: list[ScriptedReply] = [
        *(calling("shell", command="false"), answer("It fails."), answer("As I said.")),
        *(calling("shell", command="true"), answer("Done.")),
    ]
    conversation = room.open(replies, settings={"agent.permission": "auto"})
    failing = []
    for text in ("Run the check of the shop", "Why does it fail?", "Leave it, and count the guests"):
        await conversation.send(text)
        failing.append(any(line.startswith("Failed") for line in conversation.context.where_we_were()))
    assert failing == [True, True, False]


async def test_a_call_that_nobody_approved_has_neither_failed_nor_changed_a_file(room: Room) -> None:
    replies: list[ScriptedReply] = [
        calling("shell", command="touch done.txt"),
        calling("write_file", path="done.txt", content="x\n"),
        answer("It was not run."),
    ]
    conversation = room.open(replies, settings={"agent.permission": "ask"})
    await conversation.send("Make the file that we need")
    lines = conversation.context.where_we_were(is_answer_shown=True)
    assert not any(line.startswith(("Failed", "Changed")) for line in lines)
    # A narrow window cuts the result, which says so too.
    assert lines[1].startswith("Last step, not run: write_file done.txt")


async def test_changed_files_are_those_of_commands_too_and_deleted_ones(room: Room) -> None:
    room.path /= "work"  # what commands change is recorded in a folder that does not hold the store
    room.path.mkdir()
    (room.path / "old.py").write_text("x = 1\n")
    (room.path / "kept.py").write_text("x = 1\n")
    conversation = room.open(
        [
            calling("write_file", path="brief.py", content="x = 1\n"),
            calling("write_file", path=str(room.path / "new.py"), content="x = 1\n"),
            calling("shell", command="rm old.py brief.py; echo 'x = 2' > kept.py"),
            answer("Tidied."),
        ],
        settings={"agent.permission": "auto"},
    )
    await conversation.send("Tidy the folder up, please")
    (changed,) = (line for line in conversation.context.where_we_were() if line.startswith("Changed"))
    assert changed == "Changed: kept.py, old.py (deleted), new.py"


async def test_a_plan_that_two_requests_have_passed_over_is_not_asserted(room: Room) -> None:
    conversation = room.open([calling("todo", doing="read it", open=["write tests"]), *map(answer, "abc")])
    for number, request in enumerate(("Mend the parser, please", "Now the lexer, please", "And the docs, please")):
        await conversation.send(request)
        plans = [line for line in conversation.context.where_we_were() if line.startswith("Plan")]
        assert plans == ["Plan: 0 of 2 done; open: read it, write tests"] * (number < 2)


@pytest.mark.parametrize("text", ["a " * 5_000, "\n".join(f"line {number}" for number in range(3_000))])
async def test_it_stays_six_short_lines_whatever_was_said(room: Room, text: str) -> None:
    conversation = room.open([answer(text)], settings={"context.fit": "cut"})
    await conversation.send(text)
    lines = conversation.context.where_we_were()
    assert 0 < len(lines) <= 6
    assert all(len(line) < 200 and "\n" not in line for line in lines)


async def test_a_compaction_shows_it_and_a_preview_does_not(room: Room) -> None:
    conversation = room.open([answer(f"{number} " + "word " * 700) for number in range(12)])
    for number in range(6):
        await conversation.send(f"Question number {number} of some " + "words " * 300)
    await conversation.context.preview()
    await conversation.context.compact()
    *_, completed = (event for event in room.of(ContextCompaction) if event.phase == "completed")
    assert completed.card[0].startswith("You said: Question number 5")
    assert all(not event.card for event in room.of(ContextCompaction) if event.phase != "completed")


async def test_an_automatic_compaction_shows_it_only_if_it_says_more_than_stands_above(room: Room) -> None:
    long = "word " * 700
    plan = calling("todo", doing="the first page", open=["the second"])
    settings = {"model.summarizer": "none"}
    conversation = room.open([*[answer(long)] * 8, *[plan, answer(long)] * 8], settings=settings)

    async def cards() -> list[tuple[str, ...]]:
        before = len(room.of(ContextCompaction))
        for number in range(8):
            await conversation.send(f"Question number {number} of some")
        return [event.card for event in room.of(ContextCompaction)[before:] if event.phase == "completed"]

    talk, work = await cards(), await cards()
    assert talk
    assert not any(talk)
    assert any(any(line.startswith("Plan") for line in card) for card in work)


async def test_of_the_compactions_of_a_turn_the_first_shows_it(room: Room) -> None:
    for name in ("one", "two", "three", "four"):
        (room.path / f"{name}.txt").write_text(f"{name} " * 1_000)
    reads = [calling("read_file", path=f"{name}.txt").message for name in ("one", "two", "three", "four")]
    settings = {"model.summarizer": "none"}
    conversation = room.open([*reads, "Read.", *reads, "Read again."], settings=settings)
    cards = []
    for request in ("Read the four files, please", "Read all four of them again, please"):
        before = len(room.of(ContextCompaction))
        await conversation.send(request)
        done = [event for event in room.of(ContextCompaction)[before:] if event.phase == "completed"]
        cards.append([bool(event.card) for event in done])
    assert all(len(shown) > 1 and shown == [True, *[False] * (len(shown) - 1)] for shown in cards)
    await conversation.context.compact()
    (*_, last) = room.of(ContextCompaction)
    assert last.phase == "completed"
    assert last.card


async def test_a_request_in_a_script_without_blanks_is_a_task(room: Room) -> None:
    conversation = room.open([answer("好的。"), answer("好的。"), answer("好的。")])
    await conversation.send("请修复 parser.py 里的日期解析错误")
    await conversation.send("把结果写成简短的报告")
    await conversation.send("继续")
    assert conversation.context.where_we_were()[0] == "You said: 继续 · earlier: 把结果写成简短的报告"


def test_a_call_that_was_killed_has_not_failed(room: Room) -> None:
    """As the store completes the log of a process that was killed in the middle of a call."""
    call = ToolCall("c1", "shell", json.dumps({"command": "make deploy"}))
    session = room.store.create(directory=str(room.path), model="scripted/model")
    session.log.append([Message("user", "Deploy the new version"), Message("assistant", None, (call,))])
    session.log.save_begun(["c1"])
    (recovered,) = session.log.recover()
    session.close()
    assert recovered.message.text == CUT_OFF
    conversation = room.open([], session=session.info.id)
    (last,) = [line for line in conversation.context.where_we_were() if line.startswith("Last step")]
    assert last == f"Last step, interrupted: shell make deploy → {CUT_OFF}"
