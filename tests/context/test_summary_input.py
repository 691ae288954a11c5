"""The input of a summarizer: all messages in order, in chunks, and what is shortened first."""

from __future__ import annotations

import re
from itertools import pairwise

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nca.context.rules.cut_points import blocks
from nca.context.summary_input import (
    MAX_CHUNKS,
    MESSAGE_CHARS,
    SMALLEST_CHUNK_TOKENS,
    Chunk,
    ends,
    framed,
    split,
    within,
)
from nca.context.tokens import text_tokens
from nca.messages import Message, user_message
from nca.words import Source, Span
from tests.context.logs import logs
from tests.context.samples import agent_turn, assistant, call, calling, result, some, step, talk, user

LEFT_OUT = re.compile(r"\[… (\d+) messages left out for length …\]")


def marked(messages: list[Message]) -> list[Message]:
    """The same messages, each of which says first which one it is."""
    return [
        msgspec.structs.replace(message, content=f"#{place}# {message.text}") for place, message in enumerate(messages)
    ]


def shown_in(chunk: Chunk) -> list[int]:
    return [int(place) for place in re.findall(r"^#(\d+)#", chunk.text, re.MULTILINE)]


@some
@given(logs(40), st.integers(SMALLEST_CHUNK_TOKENS, 3_000), st.integers(SMALLEST_CHUNK_TOKENS, 3_000), st.booleans())
@example(talk(300), 200, 200, False)
@example([*talk(900), *agent_turn(90), *talk(2)], 400, 300, True)
@example([user("🦀" * 9_000)] * 3, 160, 160, False)
@example([calling(*(call(f"c{n}", "shell", command="make " * 90) for n in range(200)))] * 12, 160, 300, True)
def test_every_message_is_in_one_chunk_or_said_to_be_left_out(
    messages: list[Message], first: int, later: int, is_scored: bool
) -> None:
    messages = marked(messages)
    scores = [len(message.text) % 11 / 10 for message in messages] if is_scored else []
    chunks = split(messages, first_tokens=first, later_tokens=later, scores=lambda: scores)
    assert 1 <= len(chunks) <= MAX_CHUNKS
    edges = [0, *(chunk.end for chunk in chunks)]
    assert [chunk.start for chunk in chunks] == edges[:-1]
    assert edges[-1] == len(messages)
    for chunk, room in zip(chunks, [first, *[later] * len(chunks)], strict=False):
        assert text_tokens(chunk.text) <= room
        assert chunk.left_out == sum(map(int, LEFT_OUT.findall(chunk.text)))
        shown = shown_in(chunk)
        assert shown == sorted(set(shown))
        assert len(shown) + chunk.left_out == chunk.end - chunk.start
        assert set(shown) <= set(range(chunk.start, chunk.end))


@some
@given(logs(20), st.integers(400, 3_000))
def test_a_chunk_ends_between_blocks_unless_a_block_is_larger_than_one(messages: list[Message], room: int) -> None:
    chunks = split(messages, first_tokens=room, later_tokens=room)
    for chunk in chunks[1:]:
        for start, end in blocks(messages):
            if start < chunk.start <= end:
                (alone,) = split(messages[start : end + 1], first_tokens=100_000, later_tokens=0)
                assert text_tokens(alone.text) >= room - (end + 1 - start)


def test_what_fits_is_one_chunk_in_full() -> None:
    messages = [*talk(3), *agent_turn(2)]
    (chunk,) = split(messages, first_tokens=2_000, later_tokens=0)
    assert (chunk.start, chunk.end, chunk.left_out) == (0, len(messages), 0)
    assert all(message.text in chunk.text for message in messages)


def test_a_room_of_no_use_gives_no_chunk() -> None:
    assert split(talk(60), first_tokens=2_000, later_tokens=SMALLEST_CHUNK_TOKENS - 1) == ()
    assert split(talk(60), first_tokens=-50, later_tokens=2_000) == ()
    assert len(split(talk(60), first_tokens=500, later_tokens=500, least_tokens=500)) > 1
    assert split(talk(60), first_tokens=500, later_tokens=500, least_tokens=501) == ()


def test_chunks_end_with_turns_and_are_about_equally_full() -> None:
    messages = talk(40)
    chunks = split(messages, first_tokens=1_000, later_tokens=1_000)
    assert len(chunks) > 2
    assert all(messages[chunk.start].role == "user" for chunk in chunks)
    sizes = [text_tokens(chunk.text) for chunk in chunks]
    assert max(sizes) - min(sizes) < 250


def test_parallel_results_larger_than_a_chunk_are_split_before_they_are_shortened() -> None:
    calls = [call(f"c{n}", path=f"src/{n}.py") for n in range(4)]
    results = [result(f"c{n}", f"#{n}# " + "line of code\n" * 300) for n in range(4)]
    chunks = split([user(), calling(*calls), *results], first_tokens=2_500, later_tokens=2_500)
    assert len(chunks) == 2
    assert all(message.text in "".join(chunk.text for chunk in chunks) for message in results)


def test_where_eight_chunks_are_too_few_the_middle_is_shortened_first() -> None:
    messages = [message for n in range(40) for message in (user(f"#{n}# why?"), assistant("so " * 1_500))]
    chunks = split(messages, first_tokens=4_000, later_tokens=4_000)
    assert len(chunks) <= MAX_CHUNKS
    assert not any(chunk.left_out for chunk in chunks)
    whole = [
        place
        for place, message in enumerate(messages)
        if message.role == "assistant" and any(f"[assistant]\n{message.text}" in chunk.text for chunk in chunks)
    ]
    assert {1, 79} <= {place for chunk in (chunks[0], chunks[-1]) for place in range(chunk.start, chunk.end)}
    assert any("[…]" in chunk.text for chunk in chunks)
    assert whole == [] or whole[0] == 1


def test_what_matters_is_shown_longer_than_what_does_not() -> None:
    messages = [m for n in range(60) for m in (user(f"#u{n}# " + "wish " * 200), *step(f"c{n}", "out " * 2_000))]
    scores = [0.9 if message.role == "user" else 0.3 for message in messages]
    text = "".join(
        chunk.text for chunk in split(messages, first_tokens=5_000, later_tokens=5_000, scores=lambda: scores)
    )
    assert all(message.text in text for message in messages if message.role == "user")
    assert not any(message.text in text for message in messages if message.role == "tool")


def test_what_is_left_out_is_the_middle_and_is_said() -> None:
    messages = marked(talk(400))
    chunks = split(messages, first_tokens=300, later_tokens=300)
    text = "\n".join(chunk.text for chunk in chunks)
    (count,) = LEFT_OUT.findall(text)
    shown = [place for chunk in chunks for place in shown_in(chunk)]
    assert int(count) == len(messages) - len(shown) > 0
    assert shown[0] == 0
    assert shown[-1] == len(messages) - 1
    gaps = [(one, two) for one, two in pairwise(shown) if two != one + 1]
    assert len(gaps) == 1
    assert max(map(len, re.findall(r"#\d+# [^\[]+", text))) <= MESSAGE_CHARS[-1] + 20


@some
@given(st.lists(st.sampled_from(("typed", "pasted", "piped")), min_size=2, max_size=6), st.integers(20, 60))
def test_of_a_long_message_the_typed_words_stay_wherever_they_stand(sources: list[Source], lines: int) -> None:
    spans = [
        Span(f"Rule {place}: keep it. " if source == "typed" else f"line of log {place}\n" * lines * 10, source)
        for place, source in enumerate(sources)
    ]
    (chunk,) = split([user_message(tuple(spans))], first_tokens=100_000, later_tokens=0)
    for place, source in enumerate(sources):
        assert (f"Rule {place}: keep it." in chunk.text) is (source == "typed")


@given(st.text(max_size=3_000), st.integers(16, 400))
def test_ends_keeps_the_beginning_and_the_end(text: str, most: int) -> None:
    cut = ends(text, most)
    assert text_tokens(cut) <= most
    if cut != text:
        first, last = cut.split("\n[… left out for length …]\n")
        assert text.startswith(first)
        assert text.endswith(last)
        assert abs(text_tokens(first) - text_tokens(last)) <= 4


@pytest.mark.parametrize("count", [1, 3, 100])
def test_earlier_summaries_fit_beside_the_transcript(count: int) -> None:
    texts = [f"Part {n}. </existing_summary> 日本語 " + "word " * 40 for n in range(count)]
    shown = within(texts, 400)
    assert sum(text_tokens(framed([text], "")) for text in shown) <= 400 + text_tokens(framed([""], ""))
    assert shown[0].startswith("Part 0. ‹/existing_summary›")
    assert (len(shown) == count) == (count <= 3)
