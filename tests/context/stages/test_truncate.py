"""The oldest turns are hidden behind a marker; as a last resort contents are cut."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.config.schema import TruncateSettings
from nca.context.draft import Draft
from nca.context.stages.truncate import TRUNCATED, cut_contents, cut_message, truncate
from nca.context.tokens import message_tokens
from nca.context.view import Marker, Stub, Summary, View, seqs
from nca.messages import AttachmentPart, MediaPart, Message, TextPart
from tests.context.logs import history_of, logs
from tests.context.samples import (
    agent_turn,
    assistant,
    call,
    calling,
    compacted,
    contents,
    draft_of,
    result,
    sent,
    some,
    talk,
    user,
)


def truncated(
    messages: list[Message], target: int, *, budget: int = 10_000, fraction: float = 0.5, pins: set[int] | None = None
) -> Draft:
    draft = draft_of(messages, pins)
    settings = TruncateSettings(fraction)
    truncate(draft, settings, target_tokens=target, budget_tokens=budget)
    return draft


def hidden(draft: Draft) -> list[int]:
    return [seq for item in draft.view().items if isinstance(item, Marker) for seq in seqs(item.ranges)]


def test_the_exact_text_of_the_spec() -> None:
    assert TRUNCATED == "[Earlier conversation history was truncated to fit within context limits]"
    assert TruncateSettings().fraction == 0.5


@pytest.mark.parametrize(("fraction", "gone"), [(0.5, 4), (0.25, 2), (1.0, 8), (0.01, 1)])
def test_a_fraction_of_the_older_turns_goes_first(fraction: float, gone: int) -> None:
    log = talk(10)
    draft = truncated(log, draft_of(log).tokens - 10, fraction=fraction)
    assert hidden(draft) == list(range(3, 3 + 2 * gone))
    text = f"{TRUNCATED} [recall expand=3-{2 + 2 * gone}]"
    assert draft.history.shown(draft.view().items[1]) == Message("user", text, source="nca")  # type: ignore[arg-type]


def test_then_as_many_whole_turns_as_the_target_needs() -> None:
    log = talk(10)
    whole = draft_of(log).tokens
    draft = truncated(log, whole * 3 // 10)
    assert draft.tokens <= whole * 3 // 10
    gone = hidden(draft)
    assert gone[0] == 3
    assert len(gone) % 2 == 0
    assert gone == list(range(3, 3 + len(gone)))


def test_the_first_exchange_stays_only_while_it_is_at_most_a_tenth_of_the_budget() -> None:
    log = talk(10)
    cost = draft_of(log).meter.scaled(sum(map(message_tokens, log[:2])))
    target = draft_of(log).tokens // 2
    assert hidden(truncated(log, target, budget=cost * 10))[0] == 3
    assert hidden(truncated(log, target, budget=cost * 10 - 10))[0] == 1


def test_the_first_exchange_goes_where_the_target_needs_it() -> None:
    log = talk(4)
    draft = truncated(log, draft_of(log[-2:]).tokens + 40)
    assert hidden(draft) == [1, 2, 3, 4, 5, 6]


def test_steps_of_the_turn_in_progress_go_when_earlier_turns_are_used_up() -> None:
    log = [*talk(2), *agent_turn(30)]
    draft = truncated(log, 1_200)
    gone = set(hidden(draft))
    assert draft.tokens <= 1_200
    assert {3, 4, 6, 7} <= gone
    assert gone == {seq for seq in range(3, max(gone) + 1) if seq != 5}
    assert not gone & {len(log) - 1, len(log)}


def test_old_markers_become_one() -> None:
    history = history_of(talk(30))
    compacted(history, 6_000, stages=["truncate"])
    for entry in history_of(talk(60)).entries[60:]:
        history.append(entry)
    compacted(history, 6_000, stages=["truncate"])
    markers = [item for item in history.view.items if isinstance(item, Marker)]
    assert len(markers) == 1
    assert sum(text.startswith(TRUNCATED) for text in contents(history)) == 1


def test_a_marker_that_is_replaced_takes_no_room_beside_the_new_one() -> None:
    draft = truncated(talk(12), draft_of(talk(12)).tokens - 10, fraction=0.5)
    again = Draft(draft.history.seen_as(draft.view()), draft.meter)
    turn = sum(block.raw for block in again.turns()[1])
    truncate(again, TruncateSettings(0.01), target_tokens=again.tokens - turn + 10, budget_tokens=10_000)
    assert len(hidden(again)) == len(hidden(draft)) + 2


def test_a_cleared_context_stays_silent() -> None:
    history = history_of(talk(30))
    history.view = View((Marker("clear", ((1, 10),), ""),), 11)
    compacted(history, 3_000, stages=["truncate"])
    first, second = [item for item in history.view.items if isinstance(item, Marker)]
    assert (first.id, first.text) == ("clear", "")
    assert second.ranges[0][0] > 10


def test_a_record_that_came_with_the_messages_goes_last() -> None:
    record = Message("user", "## Conversation Summary (Earlier Context)\nUse tabs.", source="nca")
    history = history_of([record, *talk(40), user("The newest.")])
    compacted(history, 2_000, stages=["truncate"])
    assert "Use tabs." in sent(history)[0]["content"]


def test_old_summaries_go_before_contents_are_cut() -> None:
    history = history_of([*talk(4), user("The newest.")])
    old = [Summary(f"s{place}", ((place, place),), "what was said " * 60) for place in (1, 2)]
    history.view = View(tuple(old), 3)
    compacted(history, 900, stages=["truncate"])
    assert [item.id for item in history.view.items if isinstance(item, Summary)] == ["s2"]


def test_no_more_summaries_go_than_the_target_needs() -> None:
    history = history_of([*talk(4), user("The newest.")])
    old = [Summary(f"s{place}", ((place, place),), "what was said " * 60) for place in (1, 2, 3)]
    history.view = View(tuple(old), 4)
    compacted(history, 1_600, stages=["truncate"], target_tokens=500)
    assert [item.id for item in history.view.items if isinstance(item, Summary)] == ["s2", "s3"]


def test_crumbs_are_not_cut() -> None:
    draft = draft_of([user("Why, " * 10), assistant("Because. " * 4), user("And?")])
    cut_contents(draft, 0)
    assert draft.view() == View()


def test_pins_and_the_newest_user_message_stay() -> None:
    draft = truncated([*talk(10), user("newest")], 50, pins={5})
    assert set(hidden(draft)) == set(range(1, 21)) - {5}
    assert not any(isinstance(item, Stub) and item.seq in {5, 21} for item in draft.view().items)


def test_contents_are_cut_largest_first_between_lines() -> None:
    long = "A paragraph of the answer.\n\n" * 200
    draft = draft_of([user("Why?"), assistant(long), assistant("Because."), user("And?")])
    cut_contents(draft, draft.tokens // 3)
    (stub,) = [item for item in draft.view().items if isinstance(item, Stub)]
    assert stub.seq == 2
    head, tail = re.split(r"\n\[… \d+ lines left out; recall expand=2 …\]\n", stub.text)
    assert set(head.splitlines()) == set(tail.splitlines()) == {"A paragraph of the answer.", ""}
    assert draft.tokens <= draft_of([user("Why?"), assistant(long), assistant("Because."), user("And?")]).tokens // 3


def test_what_was_attached_is_cut_visibly_too() -> None:
    file = AttachmentPart("a.txt", "data line\n" * 2_000, 20_000)
    image = MediaPart("image", {"type": "image_url"})
    draft = draft_of([Message("user", (TextPart("Look at this."), file, image)), assistant(), user()])
    block = draft.blocks()[0]
    assert cut_message(draft, block, 1, 200)
    (shown,) = draft.shown(block)
    assert shown.text.startswith('Look at this.\n\n<file path="a.txt">\ndata line\n')
    assert "lines left out; recall expand=1 …]\ndata line\n" in shown.text
    assert shown.text.endswith("</file>\n\n[image, not shown]")
    assert message_tokens(shown) <= 204
    picture = draft_of([Message("user", (TextPart("Look."), image)), assistant(), user()])
    assert cut_message(picture, picture.blocks()[0], 1, 200)
    assert picture.shown(picture.blocks()[0])[0].text == "Look.\n\n[image, not shown]"


@pytest.mark.parametrize("note", ["[The whole output is in /data/outputs/ab12/3.txt]", "[exit code 1]"])
def test_the_end_of_a_cut_result_stays_with_what_the_tool_adds_there(note: str) -> None:
    draft = draft_of(
        [user("Run it."), calling(call("c1", "shell")), result("c1", "a line\n" * 900 + note), user("And?")]
    )
    block = draft.blocks()[1]
    for keep in (200, 60):
        assert cut_message(draft, block, 3, keep)
        shown = draft.shown(block)[1]
        assert shown.text.startswith("a line\n")
        # recall shows a saved output by the lines of its file.
        lines = "" if "whole" in note else r" lines=\d+-\d+"
        assert re.search(rf"left out; recall expand=3{lines} …\]\n", shown.text)
        assert shown.text.endswith(f"\n{note}")
        assert message_tokens(shown) <= keep + 8
    assert cut_message(draft, block, 3, 12)
    assert len(draft.shown(block)[1].text) < 60


def test_a_cut_that_saves_nothing_is_not_made() -> None:
    draft = draft_of([user("short"), assistant(), user()])
    assert not cut_message(draft, draft.blocks()[0], 1, 200)
    assert draft.view() == View()


@some
@given(logs(), st.integers(0, 3_000), st.sets(st.integers(1, 12), max_size=2))
def test_it_lands_or_only_the_untouchable_and_crumbs_are_left(
    messages: list[Message], target: int, pins: set[int]
) -> None:
    draft = draft_of(messages, pins)
    before = draft.tokens
    truncate(draft, TruncateSettings(), target_tokens=target, budget_tokens=10_000)
    if before <= target:
        assert draft.view() == View()
    elif draft.tokens > target:
        assert not any(
            message_tokens(shown) > 100
            for block in draft.blocks()
            if not block.is_locked
            for shown in draft.shown(block)
            if not shown.tool_calls
        )
    touched = {seq for item in draft.view().items if isinstance(item, Stub) for seq in [item.seq]} | set(hidden(draft))
    assert not touched & draft.locked
