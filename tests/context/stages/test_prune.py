"""Old tool results become placeholders; ids, error marks and recent results stay."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.config.schema import ContextSettings, PruneSettings
from nca.context.admission import admit_output
from nca.context.draft import Draft
from nca.context.meter import Meter
from nca.context.record.steps import cut_content
from nca.context.rules.untouchable import COLLAPSE
from nca.context.stages.prune import CLEARED, SMALLEST_FILL_TOKENS, fill, prune, stub_text
from nca.context.view import PASSED, Marker, Stub, Verbatim, View
from nca.messages import Message
from tests.context.logs import history_of, logs
from tests.context.samples import (
    agent_turn,
    assistant,
    call,
    calling,
    compacted,
    draft_of,
    result,
    some,
    step,
    talk,
    user,
)

FREELY = PruneSettings(protect_tokens=0, keep_results=0, minimum_savings_tokens=0)


def pruned(
    messages: list[Message], settings: PruneSettings = FREELY, *, target: int = 0, budget: int = 100_000
) -> Draft:
    draft = draft_of(messages)
    prune(draft, settings, target_tokens=target, budget_tokens=budget)
    return draft


def stubs(draft: Draft) -> dict[int, str]:
    return {item.seq: item.text for item in draft.view().items if isinstance(item, Stub)}


def test_the_texts_and_numbers_of_the_spec() -> None:
    assert CLEARED == "[cleared: recall expand={seq}]"
    settings = ContextSettings().prune
    assert (settings.protect_tokens, settings.keep_results, settings.minimum_savings_tokens) == (40_000, 2, 20_000)
    assert settings.protected_tools == ("skill",)


def test_results_become_placeholders_oldest_first_until_the_target_is_met() -> None:
    log = [*chain.from_iterable(step(f"c{number}", "line " * 100) for number in range(6)), user()]
    log.insert(0, user())
    everything = pruned(log)
    assert list(stubs(everything)) == [3, 5, 7, 9, 11, 13]
    assert list(stubs(everything).values()) == [f"[cleared: recall expand={seq}]" for seq in stubs(everything)]
    whole = draft_of(log).tokens
    some = pruned(log, target=whole - 150)
    assert list(stubs(some)) == [3, 5]
    assert some.tokens <= whole - 150


def test_the_oldest_gives_way_first_whatever_it_says() -> None:
    long = "line " * 100
    log = [
        user("Look at the parser."),
        *step("a", long, path="a.py"),
        *step("b", f"{long}commit 1a2b3c4d", "shell", command="git log"),
        *step("c", "Error: no target\n" + long, "shell", command="make", is_error=True),
        *step("d", long, "shell", command="git status"),
        *step("e", long, "shell", command="ls"),
        *step("f", long, "shell", command="git status"),
        user("And 1a2b3c4d?"),
    ]
    target = draft_of(log).tokens
    for count in range(1, 7):
        target = pruned(log, target=target - 1).tokens
        assert list(stubs(pruned(log, target=target))) == [3, 5, 7, 9, 11, 13][:count]


@some
@given(
    st.lists(
        st.tuples(st.sampled_from(["get_page", "shell", "book_flight"]), st.sampled_from([4, 60, 800])), max_size=12
    ),
    st.integers(0, 4_000),
)
def test_what_no_call_can_say_again_stays_where_a_record_follows(rows: list[tuple[str, int]], target: int) -> None:
    """A page can be read again; of what a command printed a line stays, and all that came of a booking."""
    log = [user()]
    said = [f"Receipt R-{number} was mailed. " + "word " * words for number, (_, words) in enumerate(rows)]
    for number, (name, _) in enumerate(rows):
        key = "command" if name == "shell" else "number"
        log += [calling(call(f"c{number}", name, **{key: f"{number}"})), result(f"c{number}", said[number])]
    draft = draft_of([*log, user()])
    prune(draft, FREELY, target_tokens=target, budget_tokens=100_000, has_record=True)
    shown = [message.text for block in draft.blocks() for message in draft.shown(block)]
    for number, (name, _) in enumerate(rows):
        kept = {"get_page": "", "shell": f"R-{number} ", "book_flight": said[number]}[name]
        assert any(kept in text for text in shown)


def test_without_a_record_the_lines_of_results_go_last() -> None:
    log = [user(), *step("a", "R-1 " + "word " * 200, "book"), *step("b", "R-2 " + "word " * 200, "book"), user()]
    whole = draft_of(log).tokens
    assert all("R-" in text for text in stubs(pruned(log, target=whole - 300)).values())
    assert list(stubs(pruned(log)).values()) == ["[cleared: recall expand=3]", "[cleared: recall expand=5]"]
    log[-1:] = [*step("c", "line " * 200, path="a.py"), user()]
    assert list(stubs(pruned(log, target=draft_of(log).tokens - 50))) == [7]


def test_a_pin_overrules_the_age() -> None:
    long = "line " * 100
    log = [user(), *step("a", long, "shell", command="make"), *step("b", long, path="a.py"), user()]
    target = draft_of(log).tokens - 50
    assert list(stubs(pruned(log, target=target))) == [3]
    draft = draft_of(log, pins={3})
    prune(draft, FREELY, target_tokens=target, budget_tokens=100_000)
    assert list(stubs(draft)) == [5]


# The room that is left


def lines(name: str, count: int) -> str:
    return "".join(f"{name} {number} of the output\n" for number in range(count))


def test_the_room_that_is_left_shows_the_newest_of_the_cleared_again_cut_to_fit() -> None:
    log = [user(), *step("a", lines("first", 300)), *step("b", lines("second", 300)), *step("c", "ok"), user()]
    draft = draft_of(log)
    whole, cost = draft.tokens, draft.meter.scaled(draft.history.run_tokens(5, 5))
    target = whole - cost // 2
    prune(draft, FREELY, target_tokens=0, budget_tokens=100_000)
    assert list(stubs(draft)) == [3, 5]
    fill(draft, target)
    assert list(stubs(draft)) == [3], "the second has room again, and of the first a part"
    assert 0.95 * target <= draft.settle() <= target
    assert stubs(draft)[3].startswith("first 0 of the output\nfirst 1 of the output\n")
    assert "first 299 of the output" in stubs(draft)[3]
    assert stubs(draft)[3].endswith("\n[… cut from 300 lines; recall expand=3 …]")


def test_what_a_person_shortened_stays_short_and_little_room_is_left_empty() -> None:
    log = [user(), *step("a", lines("first", 300)), *step("b", lines("second", 300)), user()]
    history = history_of(log)
    history.view = View((Verbatim(1, 2), Stub(3, "[short]", COLLAPSE), Verbatim(4, 4), Stub(5, "[gone]", "prune")), 6)
    draft = Draft(history, Meter())
    fill(draft, draft.tokens + SMALLEST_FILL_TOKENS - 1)
    assert stubs(draft) == {3: "[short]", 5: "[gone]"}
    fill(draft, draft.tokens + 100_000)
    assert stubs(draft) == {3: "[short]"}


@some
@given(logs(), st.integers(100, 4_000), st.booleans())
def test_filling_keeps_to_the_target_and_takes_nothing_away(
    messages: list[Message], target: int, has_recall: bool
) -> None:
    draft = Draft(history_of(messages), Meter(), has_recall=has_recall)
    prune(draft, FREELY, target_tokens=0, budget_tokens=100_000)
    cleared, tokens = stubs(draft), draft.tokens
    fill(draft, target)
    assert tokens <= draft.tokens <= max(tokens, target)
    assert set(stubs(draft)) <= set(cleared)


@some
@given(logs(), st.integers(100, 2_000))
def test_twice_is_once(messages: list[Message], target: int) -> None:
    draft = pruned(messages, target=target)
    once = draft.view()
    prune(draft, FREELY, target_tokens=target, budget_tokens=100_000)
    assert draft.view() == once


@pytest.mark.parametrize("keep", [0, 1, 2, 5])
def test_the_newest_results_stay_by_number(keep: int) -> None:
    assert len(stubs(pruned([*agent_turn(6), user()], replace(FREELY, keep_results=keep)))) == 6 - keep


def test_no_result_before_what_is_hidden_is_among_the_newest() -> None:
    history = history_of([*agent_turn(3), user()])
    history.view = View((Verbatim(1, 3), Marker(PASSED, ((4, 5),), "[left out]")), 6)
    draft = Draft(history, Meter())
    prune(draft, replace(FREELY, keep_results=5), target_tokens=0, budget_tokens=100_000)
    assert list(stubs(draft)) == [3]


def test_the_newest_tokens_stay_but_at_most_a_quarter_of_the_budget() -> None:
    log = [*agent_turn(10, 100), user()]
    cost = draft_of(log).meter.scaled(draft_of(log).history.run_tokens(3, 3))
    protecting = replace(FREELY, protect_tokens=cost * 4 + 5)
    assert len(stubs(pruned(log, protecting))) == 6
    assert len(stubs(pruned(log, protecting, budget=(cost * 2 + 5) * 4))) == 8


def test_nothing_where_too_little_would_be_saved() -> None:
    log = [*agent_turn(10, 100), user()]
    demanding = replace(FREELY, minimum_savings_tokens=20_000)
    assert stubs(pruned(log, demanding)) == {}
    assert len(stubs(pruned(log, demanding, budget=5_000))) == 10
    needed = draft_of(log).tokens - 50
    assert len(stubs(pruned(log, demanding, target=needed))) == 1


def test_protected_tools_stay_by_the_result_s_name_or_the_call_s() -> None:
    log = [
        user(),
        *step("a", "long " * 50, "skill"),
        calling(call("b"), call("c", "skill")),
        result("b", "long " * 50, name="skill"),
        result("c", "long " * 50),
        *step("d", "long " * 50, "shell"),
        user(),
    ]
    assert list(stubs(pruned(log))) == [8]


def test_an_error_keeps_its_first_line_and_its_mark() -> None:
    failed = result("a", "\n  Error: no such file  \n" + "trace\n" * 100, is_error=True)
    cleared = "[cleared: recall expand=3]"
    assert stub_text(failed, 3) == f"{cleared} Error: no such file"
    assert stub_text(result("a", "x" * 900, is_error=True), 3) == f"{cleared} " + "x" * 199 + "…"
    assert stub_text(result("a", "fine"), 3) == cleared
    assert stub_text(result("a", "", is_error=True), 3) == cleared
    assert (
        stub_text(result("a", f"{cleared} Error: no such file", is_error=True), 9) == f"{cleared} Error: no such file"
    )
    assert stub_text(result("a", "fine"), 3, "[Tool result cleared]") == "[Tool result cleared]"
    draft = pruned([user(), calling(call("a")), failed, user()])
    assert draft.shown(draft.blocks()[1])[1] == Message(
        "tool", f"{cleared} Error: no such file", tool_call_id="a", is_error=True
    )


def test_only_where_the_stub_is_smaller_and_never_an_open_step() -> None:
    assert stubs(pruned([user(), *step("a", "ok"), *step("b", "x" * 16), user()])) == {}
    waiting = [user(), calling(call("a"), call("b")), result("a", "long " * 100)]
    assert stubs(pruned(waiting)) == {}


def test_a_long_result_of_an_earlier_turn_says_which_of_its_lines_are_left_out() -> None:
    whole = "".join(f"line {number}\n" for number in range(1, 4_001))
    cut = admit_output(whole, max_bytes=30_000, max_lines=9_000)
    assert cut.left_out is not None
    log = [
        user(),
        *step("a", whole, "shell"),
        *step("b", cut.text.replace("out …]", "out; recall expand=5 lines=1-2 …]")),
        user(),
    ]
    draft = pruned([*log, assistant(), user()], replace(FREELY, keep_results=2), target=100)
    shortened = stubs(draft)
    assert list(shortened) == [3, 5]
    assert all(len(text) <= 20_200 for text in shortened.values())
    found = re.search(r"\n\[… ([\d,]+) lines left out; recall expand=3 lines=(\d+)-(\d+) …\]\n", shortened[3])
    assert found is not None
    first, last = int(found[2]), int(found[3])
    assert found[1] == f"{last - first + 1:,}"
    assert shortened[3].startswith("line 1\n")
    assert f"line {last + 1}\n" in shortened[3]
    # The lines of an output that came cut are not those of the whole, which is what recall shows.
    assert re.search(r"lines left out; recall expand=5 …\]", shortened[5])


def test_a_pinned_result_stays() -> None:
    draft = draft_of([*agent_turn(3, 100), user()], pins={5})
    prune(draft, FREELY, target_tokens=0, budget_tokens=100_000)
    assert list(stubs(draft)) == [3, 7]


@some
@given(logs(), st.integers(0, 2_000))
def test_it_only_saves_and_touches_only_results(messages: list[Message], target: int) -> None:
    before, draft = draft_of(messages), pruned(messages, target=target)
    assert draft.tokens <= before.tokens
    assert all(messages[seq - 1].role == "tool" for seq in stubs(draft))
    assert draft.settle() <= before.settle()
    if before.tokens <= target:
        assert stubs(draft) == {}


def test_talk_is_left_alone() -> None:
    assert stubs(pruned(talk(5))) == {}


def test_long_results_of_earlier_turns_keep_their_beginning_and_end() -> None:
    """As in CowAgent: above 20,000 characters; those of the turn in progress are not touched."""
    long = "first line\n" + "x " * 15_000 + "\nlast line"
    log = [user("One"), *step("a", long), assistant(), user("Two"), *step("b", long), *step("c", long)]
    shortened = stubs(pruned(log, target=100_000))
    assert list(shortened) == [3]
    assert shortened[3].startswith("first line")
    assert "last line" in shortened[3]
    assert "[Output truncated from 30021 bytes" in shortened[3]
    assert len(shortened[3]) < 20_200


def test_a_compaction_fills_its_target_with_the_newest_results() -> None:
    log = [user(), *(row for n in range(40) for row in step(f"c{n}", lines(f"call {n}", 40))), assistant(), user()]
    history = history_of(log)
    proposal = compacted(history, 16_000, stages=["prune"])
    assert 0.95 * proposal.target_tokens <= proposal.tokens_after <= proposal.target_tokens
    cleared = [item.seq for item in history.view.items if isinstance(item, Stub)]
    assert cleared == list(range(3, cleared[-1] + 1, 2)), "the oldest, without a gap"
    assert len(cleared) < 40


def test_what_recall_showed_is_looked_up_where_it_was_said() -> None:
    """Else the pointer leads from one cut answer of `recall` to the next."""
    page = "[57: lines 1-40 of 90; continue with lines=41-90. From the log.]\n" + "a row of the table\n" * 90
    found = result("a", page)
    shown = Message(found.role, page, tool_call_id="a", name="recall")
    assert stub_text(shown, 80) == CLEARED.format(seq=57)
    cut = cut_content(shown, 80, 40)
    assert cut is not None
    assert cut.text.endswith("recall expand=57 …]")
    several = Message("tool", page.replace("57:", "57-60:"), tool_call_id="a", name="recall")
    cut = cut_content(several, 80, 40)
    assert cut is not None
    assert cut.text.endswith("recall expand=57-60 …]")
    assert stub_text(several, 80) == CLEARED.format(seq="57-60")
    assert stub_text(Message("tool", page, tool_call_id="a", name="shell"), 80) == CLEARED.format(seq=80)
