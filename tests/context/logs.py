"""Random logs: parallel calls, missing and duplicate results, invalid arguments, unusual texts."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from nca.context.history import History
from nca.messages import AttachmentPart, Entry, Message, TextPart, ToolCall

texts = st.one_of(
    st.text(max_size=60),
    st.sampled_from(
        [
            "",
            "   ",
            "Please always use tabs, never spaces.",
            "word " * 400,
            "日本語のテキスト" * 40,
            "🦀🎉" * 30,
            "a\0b",
            "Error: cannot open file /srv/data.txt",
            "def f(x):\n    return x + 1\n" * 60,
            "x" * 4000,
            "sentence one. sentence two.\n\nparagraph " * 50,
        ]
    ),
)
names = st.sampled_from(["read_file", "write_file", "grep", "shell", "skill", "bad name!"])
arguments = st.sampled_from(
    [
        "{}",
        '{"path": "src/a.py"}',
        '{"path": "src/b.py", "offset": 10, "limit": 20}',
        '{"command": "make test"}',
        "not json",
        "[1, 2]",
        '{"path": "src/a.py", "content": "' + "z" * 500 + '"}',
    ]
)
ids = st.sampled_from(["a", "b", "c", "call_1", "call_2", "with space", "x" * 60])


@st.composite
def steps(draw: st.DrawFn) -> list[Message]:
    """An assistant message with calls and what came back, in any state of repair."""
    calls = tuple(
        ToolCall(draw(ids), draw(names), draw(arguments)) for _ in range(draw(st.integers(min_value=1, max_value=4)))
    )
    results = [
        Message("tool", draw(texts), tool_call_id=call.id, name=call.name, is_error=draw(st.booleans()))
        for call in calls
        if draw(st.integers(0, 9)) > 0
    ]
    if draw(st.integers(0, 9)) == 0:
        results.append(Message("tool", draw(texts), tool_call_id=draw(ids), name="grep"))
    if draw(st.booleans()):
        results = draw(st.permutations(results))
    return [Message("assistant", draw(st.one_of(st.none(), texts)), calls), *results]


@st.composite
def turns(draw: st.DrawFn) -> list[Message]:
    content = draw(texts)
    user = Message("user", content)
    if draw(st.integers(0, 9)) == 0:
        user = Message("user", (TextPart(content), AttachmentPart("a.txt", draw(texts), 10)))
    messages = [user]
    for step in draw(st.lists(steps(), max_size=3)):
        messages += step
    if draw(st.integers(0, 3)) > 0:
        messages.append(Message("assistant", draw(texts)))
    if draw(st.integers(0, 19)) == 0:
        messages.append(Message("system", "A rule from the middle."))
    return messages


@st.composite
def logs(draw: st.DrawFn, max_turns: int = 8) -> list[Message]:
    messages: list[Message] = [Message("system", "You are a test.")] if draw(st.booleans()) else []
    for turn in draw(st.lists(turns(), min_size=1, max_size=max_turns)):
        messages += turn
    return messages


def history_of(messages: list[Message], pins: set[int] | None = None) -> History:
    return History((Entry(seq, message) for seq, message in enumerate(messages, 1)), pins=pins or ())


def grow(history: History, messages: Iterable[Message]) -> None:
    """Go on with these."""
    for message in messages:
        history.append(Entry(history.head + 1, message))
