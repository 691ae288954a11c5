"""The running cost of repairs equals a fresh count."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.context.history import History
from nca.context.repair_cost import RepairCost, repair_cost_of
from nca.context.request import of_a_program, resolve
from nca.context.rules import PROGRAM_REPAIRS
from nca.context.view import Marker, Summary, Verbatim, View
from nca.messages import Entry, Message
from tests.context.logs import grow, logs
from tests.context.samples import assistant, call, calling, result, some, step, user

KINDS = ("step", "two", "late", "empty", "bad", "said", "plain", "nothing", "orphan")
OF_A_PROGRAM = [of_a_program(name) for name in PROGRAM_REPAIRS]
PROVIDERS = st.sampled_from(["", "openai", "anthropic", "mistral", *OF_A_PROGRAM])


@some
@given(logs(), PROVIDERS, st.integers(0, 6))
def test_counted_message_by_message_it_is_what_the_whole_gives(
    messages: list[Message], provider: str, hidden: int
) -> None:
    history, counted = History(), RepairCost(provider)
    for seq, message in enumerate(messages, 1):
        history.append(Entry(seq, message))
        if seq == hidden:
            history.view = View((Marker("m", ((1, seq),), "[out]"),), seq + 1)
        assert counted.raw(history) == repair_cost_of(resolve(history), provider)


@some
@given(
    st.lists(st.sampled_from(KINDS), max_size=14),
    PROVIDERS,
    st.booleans(),
)
def test_a_long_turn_with_faults_between_its_steps(kinds: list[str], provider: str, is_summed_up: bool) -> None:
    history, counted = History(), RepairCost(provider)
    for seq, message in enumerate([user(), *(m for n, kind in enumerate(kinds) for m in of(kind, n))], 1):
        history.append(Entry(seq, message))
        if is_summed_up and seq == 3:
            history.view = View((Summary("s", ((1, 1),), "before"),), 2)
        assert counted.raw(history) == repair_cost_of(resolve(history), provider)


@pytest.mark.parametrize("provider", ["openai", "anthropic", "mistral", *OF_A_PROGRAM])
def test_a_turn_that_begins_the_tail_stands_behind_what_is_shown_and_not_behind_what_is_hidden(provider: str) -> None:
    messages = [user(), *step("c1", "text"), assistant("Hidden.")]
    history, counted = History(Entry(seq, message) for seq, message in enumerate(messages, 1)), RepairCost(provider)
    history.view = View((Verbatim(1, 3), Marker("clear", ((4, 4),), "")), 5)
    for message in (None, user("And now?"), assistant("This."), user("Good."), assistant("Yes.")):
        if message is not None:
            history.append(Entry(history.head + 1, message))
        assert counted.raw(history) == repair_cost_of(resolve(history), provider)


def of(kind: str, number: int) -> list[Message]:
    name = f"c{number}"
    match kind:
        case "step":
            return list(step(name, "text"))
        case "two":
            return [calling(call(name), call(f"{name}b")), result(name), result(f"{name}b")]
        case "late":
            return [*step(name, "text"), result(f"c{max(0, number - 2)}", "again")]
        case "empty":
            return [calling(call(name)), result(name, "")]
        case "bad":
            return [calling(call(name)), result("nobody's")]
        case "said":
            return [user("And this?")]
        case "nothing":
            return [assistant("")]
        case "plain":
            return [assistant("Well.")]
        case _:
            return [result("nobody's", "out")]


def test_a_step_is_looked_at_once() -> None:
    history, counted = History([Entry(1, user())]), RepairCost("openai")
    seen: list[int] = []
    for number in range(60):
        grow(history, step(f"c{number}", "text"))
        assert counted.raw(history) == 0
        state = counted._known
        assert state is not None
        seen.append(history.head - state.settled)
    assert max(seen) <= 2
