"""The laws of the view on generated sessions, and the faults that led to them, each by its name.

NCA_LAWS_EXAMPLES says how many sessions each law is tried on. `python -m tests.context.laws 20000` tries all at once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from nca.context.tokens import message_tokens, text_tokens
from nca.context.validate import validate_request
from nca.context.view import Summary, View
from nca.messages import Message, ToolCall, user_message
from nca.wire import message_to_dict
from nca.words import Span
from tests.context.generated_sessions import GeneratedSession, Said, session
from tests.context.laws import (
    ANSWERED,
    CHANGED,
    CLAIM,
    FAILED,
    LAWS,
    LOOP_RATIO,
    NAMES,
    NUMBER,
    SAID,
    loop_shares,
    problems_of,
)
from tests.context.trials import Chat, Outcome, Trial, in_library, text_of_row

USUAL_EXAMPLES = 12
EXAMPLES = int(os.environ.get("NCA_LAWS_EXAMPLES") or USUAL_EXAMPLES)
IS_SEARCH = EXAMPLES > USUAL_EXAMPLES
trying = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=not IS_SEARCH,
    # A smaller seed is no smaller session.
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow],
)
patient = pytest.mark.timeout(0 if IS_SEARCH else 900)
seeds = st.integers(0, 2**32)


@patient
@trying
@given(seed=seeds)
def test_the_laws_hold(seed: int) -> None:
    trial = Trial(session(seed))
    assert {number: found for number, law in LAWS.items() if (found := list(law(trial)))} == {}


BROKE_ONCE = [
    (1, 308),
    (1, 840),
    (1, 861),
    (1, 3464),
    (1, 90_012_603),
    (1, 260_032_267),
    (1, 260_037_630),
    (2, 617),
    (2, 1585),
    (2, 1829),
    (2, 190_644),
    (2, 4_002_371),
    (2, 8_001_016),
    (2, 90_001_840),
    (2, 200_001_617),
    (2, 240_000_539),
    (2, 260_037_630),
    (3, 12),
    (3, 231),
    (3, 276),
    (2, 840_001_073),
    (2, 840_001_842),
    (3, 4_001_555),
    (4, 260_001_977),
    (4, 810_000_204),
    (4, 820_000_403),
    (7, 205),
    (10, 6_100_031),
    (10, 7_002_350),
    (10, 260_001_940),
]
"""Laws with sessions that broke them."""


@pytest.mark.parametrize(("number", "seed"), BROKE_ONCE)
def test_a_law_that_was_broken_holds(number: int, seed: int) -> None:
    assert problems_of(number, seed) == []


@patient
def test_the_library_in_a_loop_keeps_what_it_keeps_at_once() -> None:
    shares = [found for seed in range(2 * EXAMPLES) if (found := loop_shares(Trial(session(seed)))) is not None]
    looped, whole = (sum(found) / len(shares) for found in zip(*shares, strict=True))
    assert abs(looped - whole) <= LOOP_RATIO


@trying
@given(seed=seeds)
def test_a_session_is_a_valid_request_that_says_what_it_says(seed: int) -> None:
    made = session(seed)
    assert made == session(seed)
    assert validate_request([message_to_dict(message) for message in made.messages], "openai") == []
    for said in made.said:
        text = text_of_row(message_to_dict(made.messages[said.message - 1]))
        assert said.token in text
        if said.by == "typed" and said.chars <= 600:
            (typed,) = [span.text for span in made.messages[said.message - 1].said if said.token in span.text]
            assert typed.strip().index(said.token) + len(said.token) <= 200


# The laws see what breaks them.

BROKEN: dict[str, tuple[int, str, Sequence[str]]] = {
    "an unknown section": (1, "Rules", ["(2) x"]),
    "names beside a missing message": (1, NAMES, ["Names: a.py"]),
    "a number of another message": (5, SAID, ["(4) Kiren bb2b2bb lomat."]),
    "a green run that fails": (6, FAILED, ["(3) shell make dd2d2dd"]),
    "what was said to be mended": (6, CHANGED, ["(3) shell make dd2d2dd: fixed"]),
    "nothing where something came": (6, CHANGED, ["(3) shell make dd2d2dd → nothing"]),
    "an older version alone": (7, ANSWERED, ["(5) Lomat ff2f2ff"]),
    "a model's text as the person's": (9, SAID, ["(6) Lomat gg2g2gg"]),
    "a paste as the person's": (9, SAID, ["(2) Lomat hh2h2hh"]),
    "a message that is missing without a word": (12, ANSWERED, [CLAIM]),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_law_sees_what_breaks_it(name: str) -> None:
    number, heading, lines = BROKEN[name]
    assert list(LAWS[number](_trial(heading, lines)))


@pytest.mark.parametrize("number", [1, 5, 6, 7, 9, 12])
def test_a_law_is_content_with_what_is_right(number: int) -> None:
    lines = ["- (2) Kiren bb2b2bb lomat.", "  [pasted: hh2h2hh]"]
    assert list(LAWS[number](_trial(SAID, lines))) == []


def _trial(heading: str, lines: Sequence[str]) -> Trial:
    """A session of six messages, of which the view is a record with these lines."""
    run, other = ToolCall("1", "shell", '{"command": "make dd2d2dd"}'), "Lomat ff2f2ff\nkiren"
    messages = (
        Message("system", "Lomat."),
        user_message((Span("Kiren bb2b2bb lomat.\n", "typed"), Span("hh2h2hh\nlomat", "pasted"))),
        Message("assistant", other, (run,)),
        Message("tool", "all ok", tool_call_id="1", name="shell"),
        Message("assistant", "Lomat gg2g2gg\nkiren"),
        user_message((Span("Lomat.", "typed"),)),
    )
    said = (
        Said(2, "bb2b2bb", "typed", 20),
        Said(2, "hh2h2hh", "pasted"),
        Said(3, "dd2d2dd", "call"),
        Said(3, "ff2f2ff", "answer"),
        Said(5, "gg2g2gg", "answer"),
    )
    trial = Trial(GeneratedSession(0, messages, 60_000, said, (("ff2f2ff", "gg2g2gg"),)))
    text = "\n".join([f"### {heading}", *lines])
    view = View((Summary("a", ((1, 6),), text),), 7)
    rows = [message_to_dict(Message("user", text))]
    trial.__dict__ |= {"chat": Outcome(messages, said, rows, view, True, 900, 1_000, 2_000, True), "library": None}
    trial.__dict__ |= {"looped": None}
    return trial


# The faults that led to the laws.

RULES = "Never touch f5.py. Tests run with `make check` only."
WORDS = "What is to be done is said in a few plain words, so that nobody has to ask a second time. " * 3
Messages = list[Message]
Place = Callable[[Messages, int], str]


def in_chat(messages: Messages, window: int) -> str:
    """All that the model sees in the chat after a compaction."""
    chat = Chat(_made(messages, window))
    chat.grow(len(messages))
    return _seen(chat.compact())


def by_library(messages: Messages, window: int) -> str:
    """The same of a program's messages."""
    return _seen(in_library(_made(messages, window), [message_to_dict(message) for message in messages]))


def _made(messages: Messages, window: int) -> GeneratedSession:
    return GeneratedSession(0, tuple(messages), window, (), ())


def _seen(outcome: Outcome | None) -> str:
    assert outcome is not None
    assert outcome.compacted
    return "\n".join(map(text_of_row, outcome.rows))


everywhere = pytest.mark.parametrize("seen", [in_chat, by_library])
Made = tuple[str, Mapping[str, object], str]
"""A call: its tool, what it asks, and what came."""


def typed(text: str) -> Message:
    return Message("user", text, source="typed")


def said(text: str) -> Message:
    return Message("assistant", text)


def step(number: int, *calls: Made, is_error: bool = False) -> Messages:
    """Calls with what came back."""
    made = tuple(ToolCall(f"{number}-{at}", name, json.dumps(given)) for at, (name, given, _) in enumerate(calls))
    results = [
        Message("tool", result, tool_call_id=call.id, name=call.name, is_error=is_error)
        for call, (_, _, result) in zip(made, calls, strict=True)
    ]
    return [Message("assistant", None, made), *results]


def code(name: str, count: int) -> str:
    """A file of so many lines, the first ones imports; 12 tokens a line or so."""
    imports = [f"import {name}_{at}" for at in range(5)]
    return "\n".join([*imports, *(f"    {name}_{at} = kiren({at}, lomat.{name})" for at in range(5, count))])


def read(number: int, name: str, count: int) -> Messages:
    return step(number, ("read_file", {"path": f"{name}.py"}, code(name, count)))


def work(first: int, count: int, lines: int) -> Messages:
    """Turns in which files are read."""
    turns = range(first, first + count)
    return [m for at in turns for m in (typed(f"Look at g{at}.py."), *read(at, f"g{at}", lines), said(f"Read g{at}."))]


@everywhere
@pytest.mark.parametrize("lines", [400, 800, 1_500])
def test_rules_stay_when_six_large_reads_follow(seen: Place, lines: int) -> None:
    log = [typed(RULES), said("Understood."), typed("Read f0.py to f6.py.")]
    for at in range(6):
        log += read(at, f"f{at}", lines)
    assert RULES in seen(log, 120_000)


@everywhere
def test_of_a_paste_the_rules_and_the_one_warning_stay(seen: Place) -> None:
    lines = [f"2026-11-21 01:{at // 60:02}:{at % 60:02} INFO runner job {at} done in {at} ms" for at in range(150)]
    lines[77] = "2026-11-21 01:01:17 WARN scheduler lost its lease on shard seven"
    pasted = user_message((Span(f"{RULES} Why is it slow?\n", "typed"), Span("\n".join(lines), "pasted")))
    view = seen([pasted, *read(0, "g", 200), said("I see."), *work(1, 8, 200), typed("Go on.")], 16_000)
    assert RULES in view
    assert "lost its lease on shard seven" in view


@everywhere
def test_a_plan_that_was_approved_stays_whole(seen: Place) -> None:
    names = ["parser", "reader", "writer", "cache", "index", "store", "shell", "pager", "editor"]
    plan = "\n".join(f"{at}. Move the {name} to a module of its own, with tests." for at, name in enumerate(names, 1))
    log = [typed("Make a plan."), said(f"I would go like this.\n\n{plan}"), typed("Approved, one after the other.")]
    for at, name in enumerate(names[:6], 1):
        log += [*read(at, name, 300), said(f"The {name} has moved."), typed("Next.")]
    view = seen(log, 24_000)
    assert [name for name in names if f"Move the {name} to" not in view] == []


@everywhere
def test_the_version_to_keep_is_the_newest(seen: Place) -> None:
    lines = [f"Paragraph {at} of the letter says what the others before it do not say yet." for at in range(20)]
    log, names = list[Message](), ("first", "second", "third")
    for at, name in enumerate(names):
        lines[4 + 5 * at] = f"This line is from the {name} version of the letter."
        log += [typed("Revise it." if at else "Write a letter."), said("\n".join(lines))]
        lines[4 + 5 * at] = "This line is another."
    log += [typed("That is the version to keep."), said("It is kept."), *work(0, 8, 250), typed("Go on.")]
    view = seen(log, 14_000)
    assert "from the third version" in view
    assert log[5].text in view
    assert log[1].text not in view
    assert log[3].text not in view


@everywhere
@pytest.mark.parametrize("window", [16_000, 32_000, 64_000, 128_000])
def test_fifty_two_bookings_can_be_read(seen: Place, window: int) -> None:
    log = list[Message]()
    for turn in range(4):
        log.append(typed(f"Take care of the bookings of week {turn}."))
        for at in range(13 * turn, 13 * turn + 13):
            name = "cancel_booking" if at % 4 == 3 else "book_reservation"
            log += step(2 * at, ("list_places", {"day": at}, code(f"p{at}", window // 600)))
            log += step(2 * at + 1, (name, {"id": f"R-{7000 + at}"}, '{"state": "ok"}'))
        log.append(said(f"Week {turn} is taken care of."))
    view = seen([*log, typed("Which were they?")], window)
    assert [at for at in range(52) if f"R-{7000 + at}" not in view] == []


PLAN = ("todo", {"doing": "Compare the six", "open": ["Report"]}, "[0 of 2 done; now: Compare the six]")


@everywhere
@pytest.mark.parametrize("beside", [(), (PLAN,)])
def test_what_a_step_of_six_reads_brought_is_there_when_it_is_read(seen: Place, beside: Sequence[Made]) -> None:
    log = [message for at in range(25) for message in (typed(f"{at}. {WORDS}"), said(f"Noted as {at}."))]
    reads = [("read_file", {"path": f"f{at}.py"}, code(f"f{at}", 220)) for at in range(6)]
    view = seen([*log, typed("Compare the six."), *step(9, *beside, *reads)], 16_000)
    for at in range(6):
        assert sum(f" f{at}_{line} = " in view for line in range(5, 220)) >= 8


@everywhere
def test_what_came_beside_a_todo_list_is_cut_no_more_than_other_results(seen: Place) -> None:
    """The step with the list stays for the list; the rest of it has room as any older step has."""
    log = [message for at in range(25) for message in (typed(f"{at}. {WORDS}"), said(f"Noted as {at}."))]
    log += [
        typed("Compare the two."),
        *step(8, PLAN, ("read_file", {"path": "a.py"}, code("a", 150))),
        *read(9, "b", 150),
    ]
    view = seen([*log, *read(10, "c", 400)], 16_000)
    assert "Compare the six" in view
    shown = {name: sum(f" {name}_{line} = " in view for line in range(5, 150)) for name in "ab"}
    assert shown["a"] >= shown["b"] / 4 > 5


def test_what_compactions_store_does_not_grow() -> None:
    log = [message for at in range(400) for message in (typed(f"{at}. {WORDS}"), said(f"{at}. {WORDS}"))]
    chat = Chat(_made(log, 16_000))
    for head in range(100, len(log) + 1, 100):
        chat.grow(head)
        outcome = chat.compact()
        assert outcome is not None
        assert sum(map(text_tokens, outcome.records)) <= outcome.target_tokens
        # A token is some four bytes; the items beside the record are few.
        assert len(msgspec.json.encode(outcome.view)) <= 8 * outcome.target_tokens


@everywhere
def test_a_large_call_takes_no_facts_along(seen: Place) -> None:
    facts = [f"Port {8_000 + at} belongs to service {chr(97 + at)}." for at in range(25)]
    log = [message for fact in facts for message in (typed(fact), said("Noted."))]
    wrote = step(1, ("write_file", {"path": "a.py", "content": code("a", 700)}, "Wrote 700 lines to a.py."))
    view = seen([*log, typed("Write it."), *wrote, said("Written."), typed("Go on.")], 16_000)
    assert [fact for fact in facts if fact not in view] == []


def test_the_library_in_a_loop_neither_loses_nor_counts() -> None:
    facts = [f"Port {8_000 + at} belongs to service {chr(97 + at)}." for at in range(25)]
    rows = list[dict[str, object]]()
    for at, fact in enumerate(facts):
        wrote = step(at, ("write_file", {"path": "a.py", "content": code("a", 500)}, "Wrote 500 lines to a.py."))
        added = [typed(fact), *(wrote if at == 12 else read(at, f"g{at}", 150)), said("Noted."), typed("Go on.")]
        outcome = in_library(_made(added, 16_000), [*rows, *map(message_to_dict, added)])
        assert outcome is not None
        rows = [*outcome.rows, message_to_dict(said("I go on."))]
    view = "\n".join(map(text_of_row, rows))
    assert [fact for fact in facts if fact not in view] == []
    assert [line for line in view.splitlines() if NUMBER.match(line)] == []


@everywhere
def test_nothing_is_said_that_did_not_happen(seen: Place) -> None:
    log = [
        typed("See why it fails."),
        *step(1, ("shell", {"command": "make check"}, "lomat\nmake: *** Error 2"), is_error=True),
        *step(2, ("shell", {"command": "make check | head; true"}, "lomat")),
        *step(3, ("shell", {"command": "find . -name lomat"}, "")),
        *step(4, ("shell", {"command": "rm a.txt || # keep\nrm important.txt"}, "")),
        *step(5, ("shell", {"command": "pytest -q"}, "test_error_handling ok\ntest_failed_login ok\n2 ok")),
        said("I looked."),
    ]
    view = seen([*log, *work(6, 8, 250), typed("Go on.")], 24_000).lower()
    lines = [line for line in view.splitlines() if "find . -name" in line]
    assert "fixed" not in view
    assert "deleted" not in view
    assert not any("→ ok" in line for line in lines)
    assert not any("fail" in line for line in view.splitlines() if "pytest -q" in line or "test_error" in line)


def test_a_session_is_made_of_what_is_promised() -> None:
    """Sizes from small to large, every source, failures that end and that do not, calls at once."""
    made = [session(seed) for seed in range(60)]
    messages = [message for one in made for message in one.messages]
    assert {said.by for one in made for said in one.said} == {
        *("typed", "pasted", "answer", "prose", "call", "effect", "tool"),
    }
    assert any(len(message.tool_calls) == 8 for message in messages)
    assert any(message.role == "tool" and not message.text for message in messages)
    assert max(map(message_tokens, messages)) > 10_000
    assert any(len(versions) > 2 for one in made for versions in one.versions)
    assert min(len(one.messages) for one in made) < 30 < 400 < max(len(one.messages) for one in made)
