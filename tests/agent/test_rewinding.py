"""Going back and forward: the conversation is what it was, and nothing of what was left comes back by itself."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nca.agent.approvals import Nobody
from nca.agent.conversation import Conversation
from nca.agent.hooks import Hooks
from nca.agent.rewinding import Point, Rewinds
from nca.agent.user_input import UserInput
from nca.config.loaded import defaults
from nca.config.schema import RewindSettings
from nca.context.view import is_in
from nca.errors import StoreError, UsageError
from nca.events import SideRequestFinished
from nca.file_history.history import FileHistory, RewindOutcome
from nca.file_history.plan import RewindPlan
from nca.messages import Message, ToolCall
from nca.models.catalog import ModelFacts
from nca.redact import Redactor
from nca.sessions.store import Store
from nca.testing.scripted import ScriptedModel
from nca.tools.files.reading_rules import FilesRead
from nca.tools.shell.jobs import Jobs
from tests.agent.parts import compactor_of, context_of, window_of
from tests.agent.test_conversation import Room, call, sent_by
from tests.context.effort import patient, trying

LARGE = ModelFacts(name="scripted/large", provider="scripted", window_tokens=100_000)
LOADED = defaults().with_values({"model.summarizer": "none"}, "the test")


async def back(conversation: Conversation, point: Point | None = None) -> RewindOutcome:
    """Go back with the files; without a point, to before the person's last message."""
    point = point or conversation.rewinds.last_turn()
    assert point is not None
    return await conversation.rewinds.go_back(point, await conversation.rewinds.plan(point), "both")


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


class Talk:
    """A session whose turns are given, and what its requests were when the person spoke."""

    def __init__(self, window_tokens: int = 3_000) -> None:
        self.store = Store.open(None)
        self.facts = ModelFacts(name="scripted/model", provider="openai", window_tokens=window_tokens)
        self.session = self.store.create(directory="/", model=self.facts.name)
        self.shown_at: dict[int, Any] = {}
        self.open()

    def open(self) -> None:
        self.window = window_of(self.store, self.session, LOADED, self.facts)
        self.compactor = compactor_of(self.window, ScriptedModel([], facts=self.facts))
        self.context = context_of(self.window, self.compactor)
        unused: Any = None
        self.files = self.files_of(Path("/nowhere"))
        hooks = Hooks(self.window, Path("/nowhere"), print, Redactor(), unused)
        self.user_input = UserInput(
            self.window, unused, Redactor(), print, FilesRead(), unused, Nobody(), hooks, Jobs(), self.files
        )
        self.rewinds = Rewinds(self.window, self.compactor, self.user_input, self.files, Jobs())

    def files_of(self, root: Path) -> FileHistory:
        history = self.window.history
        return FileHistory(self.store, self.session.info.id, root, head=lambda: history.head, limits=RewindSettings)

    def reopen(self) -> None:
        """The same session in another process."""
        self.session.close()
        self.session = self.store.open_session(self.session.info.id)
        self.open()

    def turn(self, kind: int, number: int) -> None:
        self.shown_at[self.window.history.head + 1] = self.state()
        self.window.append(*turn(kind, number))

    def state(self) -> Any:
        """All that the next request and what is decided before it depend on."""
        history = self.window.history
        return (
            self.window.request_messages(),
            self.window.measure().used_tokens,
            (history.turns, history.newest_user, history.newest_list, history.pins),
        )

    def compact(self) -> None:
        asyncio.run(self.context.compact())

    def back(self, seq: int) -> str:
        point = self.rewinds.point(seq)
        asyncio.run(self.rewinds.go_back(point, RewindPlan(), "chat"))
        return point.text

    def forward(self) -> bool:
        return asyncio.run(self.rewinds.go_forward()) is not None

    def beside(self) -> None:
        self.window.append_beside(Message("user", "By the way?", name="btw"))
        self.window.append_beside(Message("assistant", "An aside.", name="btw"))


def turn(kind: int, number: int) -> list[Message]:
    """A turn with something to be recorded: rules, files, lists, errors, long outputs."""
    word = "abcdefghij"[number % 10] * 3
    asked = Message("user", f"Always name it {word}. Then go on, please.")
    path = f'{{"path": "src/{word}.py"'
    steps = {
        1: [ToolCall(f"r{number}", "read_file", f"{path}}}")],
        2: [ToolCall(f"w{number}", "write_file", f'{path}, "content": "{word}"}}')],
        3: [ToolCall(f"t{number}", "todo", f'{{"doing": "the {word}", "open": ["more"], "done": []}}')],
        4: [ToolCall(f"s{number}", "shell", f'{{"command": "make {word}"}}')],
    }.get(kind, [])
    output = {1: f"line of {word}\n" * 120, 4: f"Error: {word} failed\n[exit code 2]"}.get(kind, "Done.")
    done = [Message("tool", output, tool_call_id=one.id, name=one.name, is_error=kind == 4) for one in steps]
    calls = [Message("assistant", None, tuple(steps)), *done] if steps else []
    if kind == UNANSWERED:
        return [asked]
    return [asked, *calls, Message("assistant", f"We decided to keep {word} from now on.")]


UNANSWERED = 5
kinds = st.integers(0, 4)
turns = st.lists(st.tuples(st.just("turn"), kinds), min_size=1, max_size=6)
actions = st.lists(
    st.one_of(
        st.tuples(st.just("turn"), kinds),
        st.tuples(st.sampled_from(["compact", "forward", "beside", "reopen"]), st.just(0)),
        st.tuples(st.just("back"), st.integers(0, 30)),
    ),
    max_size=14,
)


def act(talk: Talk, what: str, value: int, number: int) -> None:
    match what:
        case "turn":
            talk.turn(value, number)
        case "compact":
            talk.compact()
        case "beside":
            talk.beside()
        case "reopen":
            talk.reopen()


@patient
@trying(0.04)
@given(st.sampled_from([1_200, 3_000, 100_000]), actions)
@example(3_000, [("back", 0), ("turn", 0), ("forward", 0)])
@example(3_000, [("back", 0), ("turn", UNANSWERED), ("forward", 0)])
def test_going_back_shows_what_was_shown_then(window_tokens: int, steps: list[tuple[str, int]]) -> None:
    talk = Talk(window_tokens)
    talk.turn(1, 0)
    ahead: list[Any] = []
    for number, (what, value) in enumerate(steps, 1):
        before = talk.state()
        if what == "back":
            seq = sorted(talk.shown_at)[value % len(talk.shown_at)]
            text = talk.back(seq)
            assert text == talk.session.log.entries(seq, seq)[0].message.text
            assert talk.state() == talk.shown_at[seq]
            ahead.append(before)
        elif what == "forward":
            assert talk.forward() == bool(ahead)
            assert talk.state() == (ahead.pop() if ahead else before)
        else:
            act(talk, what, value, number)
            ahead = [] if what == "turn" else ahead
            assert what not in ("beside", "reopen") or talk.state() == before
    assert all(entry.seq == place for place, entry in enumerate(talk.session.log.entries(), 1))
    talk.window.request_messages()


@patient
@trying(0.04)
@given(turns, st.integers(0, 5), actions, actions, st.lists(kinds, max_size=4))
def test_what_was_left_leaves_no_trace(
    before: list[tuple[str, int]],
    place: int,
    branch: list[tuple[str, int]],
    after: list[tuple[str, int]],
    end: list[int],
) -> None:
    """A branch gives way to one of the same length that says nothing: all that follows is the same."""
    one, other, never = Talk(), Talk(), Talk()
    for number, (what, value) in enumerate(before):
        for talk in (one, other):
            act(talk, what, value, number)
        if number < place % len(before):
            act(never, what, value, number)
    for number, (what, value) in enumerate(branch, 20):
        act(one, what, value, number)
    filler = [Message("user", "x"), Message("assistant", "x")] * one.window.history.head
    other.window.append(*filler[: one.window.history.head - other.window.history.head])
    seq = sorted(one.shown_at)[place % len(before)]
    assert one.back(seq) == other.back(seq)
    is_compacted = False
    for number, (what, value) in enumerate([*after, *(("turn", kind) for kind in end), ("compact", 0)], 40):
        if what != "back":
            act(one, what, value, number)
            act(other, what, value, number)
        assert one.state() == other.state()
        # Placeholders and records name messages by their numbers, which are others where none was left.
        is_compacted = is_compacted or what == "compact"
        if what == "turn" and not is_compacted:
            never.turn(value, number)
            assert one.window.request_messages() == never.window.request_messages()
        recalled = one.context.archive.recall("always keep", "session", 8, 200).hits
        assert not any(is_in(hit.seq, one.window.history.view.aside) for hit in recalled)
    for scope in ("messages", "answers", "errors", "files"):
        assert [h.snippet for h in one.context.archive.recall("", scope, 50, 200).hits] == [
            h.snippet for h in other.context.archive.recall("", scope, 50, 200).hits
        ]


async def test_a_turn_is_taken_back_and_forth(room: Room) -> None:
    conversation = room.open(["One.", call("list_directory", "{}"), "Two.", "Three.", "Four."])
    await conversation.send("First")
    await conversation.send("Second")
    both = conversation.context.effective_history()
    rewinds = conversation.rewinds
    newest = rewinds.last_turn()
    assert newest is not None
    assert newest.text == "Second"
    await back(conversation, newest)
    await back(conversation)
    assert (rewinds.last_turn(), list(conversation.context.backwards())) == (None, [])
    assert await rewinds.go_forward()
    assert await rewinds.go_forward()
    assert conversation.context.effective_history() == both
    assert not await rewinds.go_forward()
    await back(conversation, newest)
    await conversation.send("Another second")
    preview = room.store.preview(conversation.session.info.id)
    assert (preview.asked, preview.answered) == ("Another second", "Three.")
    await back(conversation)
    assert room.store.preview(conversation.session.info.id).answered == "One."
    await conversation.rewinds.go_forward()
    assert sent_by(conversation)[1:] == ["First", "One.", "Another second"]
    # The other branch is reachable: each message of it, and its end.
    points = [(point.text, point.is_left, bool(point.rewind)) for point in rewinds.points()]
    assert points == [
        ("Another second", False, False),
        ("Two.", True, True),
        ("Second", True, False),
        ("First", False, False),
    ]
    await back(conversation, next(point for point in rewinds.points() if point.rewind))
    assert conversation.context.effective_history() == both
    await conversation.send("Third")
    assert sent_by(conversation)[-2:] == ["Two.", "Third"]
    assert {point.text for point in rewinds.points() if point.is_left} == {"Another second", "Three."}


async def test_what_was_rewound_is_recalled_only_by_its_number(room: Room) -> None:
    conversation = room.open(["Noted: aubergine.", "Fine."])
    await conversation.send("The password of the garden is aubergine")
    await back(conversation)
    await conversation.send("Hello there")
    archive = conversation.context.archive
    assert archive.recall("aubergine garden", "session", 5, 300).hits == []
    assert archive.recall("aubergine garden", "all", 5, 300).hits == []
    assert archive.expand("1").startswith("[no part of the conversation")
    assert "aubergine" in archive.expand("1-2")
    assert "aubergine" not in archive.expand("1-4")
    for change in (conversation.context.expand, lambda seq: conversation.context.pin(int(seq))):
        with pytest.raises(UsageError, match="no longer part of the conversation"):
            change("1")


async def test_another_session_hears_nothing_of_what_was_rewound(room: Room) -> None:
    left = room.open(["Good morning.", "Noted: aubergine.", "A magpie."])
    await left.send("Hello there, neighbour")
    await left.send("The password of the garden is aubergine")
    await back(left)
    await left.beside.ask("Which bird is black and white?")
    id = left.session.info.id
    await left.close()
    archive = room.open(["Yes."]).context.archive
    assert 3 in {hit.seq for hit in archive.search("aubergine garden", scope="all")}, "the person finds it"
    for question in ("aubergine garden", "magpie bird black"):
        assert {hit.seq for hit in archive.recall(question, "all", 5, 300).hits} <= {2}, "what stands beside it"
    hello = next(hit for hit in archive.recall("hello neighbour", "all", 5, 300).hits if hit.seq == 1)
    assert {one.seq for one in hello.around} <= {2}
    assert archive.expand(f"{id}:3").startswith("[no part of the conversation")
    assert "aubergine" not in archive.expand(f"{id}:1-4")
    assert not archive.expand(f"{id}:1").startswith("[no part")


async def test_only_your_own_messages_can_be_gone_back_to(room: Room) -> None:
    conversation = room.open(["One.", "Beside."])
    await conversation.send("First")
    await conversation.beside.ask("By the way, why?")
    for seq in (0, 2, 3, 9):
        with pytest.raises(UsageError, match="none of yours"):
            conversation.rewinds.point(seq)
    assert [point.seq for point in conversation.rewinds.points()] == [1]


async def test_a_question_beside_leaves_the_conversation_as_it_was(room: Room) -> None:
    conversation = room.open(["One.", "It is blue.", "Two.", "It is red."])
    await conversation.send("First")
    before, used = conversation.context.effective_history(), conversation.context.stats().used_tokens
    assert await conversation.beside.ask("Which colour?") == "It is blue."
    asked = conversation.model.requests[-1].messages  # type: ignore[attr-defined]
    assert asked[:-1] == before
    assert asked[-1]["content"].endswith("Which colour?")
    assert conversation.context.effective_history() == before
    assert conversation.context.stats().used_tokens == used
    assert [entry.message.text for entry in conversation.context.entries][-2:] == ["Which colour?", "It is blue."]
    assert [event.purpose for event in room.of(SideRequestFinished)] == ["question"]
    await conversation.send("Second")
    assert sent_by(conversation)[1:] == ["First", "One.", "Second"]
    # Nor is it the end of a branch that is left.
    await conversation.beside.ask("And now?")
    await back(conversation)
    assert [point.text for point in conversation.rewinds.points() if point.rewind] == ["Two."]


async def test_a_compaction_before_a_rewind_is_undone_without_it(room: Room) -> None:
    conversation = room.open(
        ["word " * 300, "word " * 300, "Three.", "Four."], facts=LARGE, settings={"model.summarizer": "none"}
    )
    for text in ("First", "Second", "Third"):
        await conversation.send(text)
    await conversation.context.compact()
    await conversation.send("Fourth")
    compacted = conversation.context.effective_history()
    await back(conversation)
    rewound = conversation.context.effective_history()
    assert conversation.context.undo() is not None
    assert [row["content"] for row in conversation.context.effective_history()[1:]][0::2] == [
        "First",
        "Second",
        "Third",
    ]
    assert conversation.context.undo() is None
    assert conversation.context.redo() is not None
    assert conversation.context.effective_history() == rewound
    assert await conversation.rewinds.go_forward()
    assert conversation.context.effective_history() == compacted


async def test_a_copy_of_a_session_has_its_branches(room: Room) -> None:
    conversation = room.open(["One.", "Two.", "Three."])
    await conversation.send("First")
    await conversation.send("Second")
    await back(conversation)
    await conversation.send("Another")
    shown, points = conversation.context.effective_history(), list(conversation.rewinds.points())
    copied = room.store.fork(conversation.session.info.id)
    again = room.open([], session=copied.id)
    assert again.context.effective_history() == shown
    assert list(again.rewinds.points()) == points


async def test_a_reader_is_refused_whatever_the_writer_has_taken_back_since(room: Room) -> None:
    """Its log ends where it was opened; a branch that was left later is none of it."""
    writer = room.open(["One.", "Two.", "Three."])
    await writer.send("hello 1")
    with Store.open(room.path / "sessions.db") as other:
        reader = Conversation.open(
            defaults(),
            store=other,
            model=ScriptedModel([]),
            directory=room.path,
            session=writer.session.info.id,
            read_only=True,
        )
        await writer.send("hello 2")
        await back(writer)
        await writer.send("hello 3")
        assert [point.seq for point in reader.rewinds.points()] == [1]
        with pytest.raises(StoreError, match="reading only"):
            await back(reader)
        await reader.close()
    await writer.close()
