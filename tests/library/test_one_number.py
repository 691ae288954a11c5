"""A compaction, a fit and a check give one number for the same request, whatever the text and the tokenizer."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nca
from nca.errors import ContextDoesNotFit
from nca.messages import Message
from nca.wire import message_to_dict
from tests.context.logs import logs
from tests.shapes.conversions import to_anthropic, to_responses

Row = dict[str, Any]
MODELS = ("claude-sonnet-4-5", "claude-opus-4-7", "gpt-4", "gpt-4o", "mistral-large", "")
SHAPES: dict[str, Callable[[Sequence[Row]], Row]] = {
    "openai": lambda rows: {"messages": list(rows)},
    "anthropic": to_anthropic,
    "responses": to_responses,
}
SAID = (
    "Please book a table for {0} at Noma.",
    "Kannst du die Rechnung INV-{0} erstatten? Es wurden Gebühren doppelt abgebucht.",
    "¿Cuál es el estado del pedido {0}? Se cobraron dos veces los gastos de envío.",
    "請求書INV-{0}を返金できますか？ユーロが二重に請求されました。ありがとうございます。",
)
TOLD = "the guest asked whether room service closes late and staff noted availability for window seats "


def talk(turns: int, said: Sequence[str], told: str) -> list[Row]:
    rows: list[Row] = [{"role": "system", "content": "You are the concierge. Use tools."}]
    for turn in range(turns):
        call = {"name": "get_order", "arguments": json.dumps({"id": turn})}
        calls = [{"id": f"c{turn}", "type": "function", "function": call}]
        rows += [
            {"role": "user", "content": said[turn % len(said)].format(turn)},
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": f"c{turn}", "content": json.dumps({"order": turn, "text": told * 3})},
            {"role": "assistant", "content": f"Order {turn} is in transit. {told}"},
        ]
    return [*rows, {"role": "user", "content": "Which orders are there?"}]


@given(
    turns=st.integers(2, 120),
    said=st.lists(st.sampled_from(SAID), min_size=1, max_size=8),
    told=st.sampled_from((TOLD, *SAID)),
    window=st.sampled_from((3_000, 8_000, 16_000)),
    model=st.sampled_from(MODELS),
    shape=st.sampled_from(list(SHAPES)),
)
def test_a_compaction_gives_the_number_of_a_check_and_it_fits(
    turns: int, said: list[str], told: str, window: int, model: str, shape: str
) -> None:
    request = SHAPES[shape](talk(turns, said, told))
    result = nca.compact(request, model=model, context_window=window)
    for one, tokens in ((request, result.tokens_before), (result.request, result.tokens_after)):
        assert one is not None
        check = nca.check_context_budget(one, model=model, context_window=window)
        assert check.estimated_input_tokens == tokens
    assert check.within_budget
    assert tokens <= result.budget_tokens


@given(logs(), st.sampled_from(MODELS), st.sampled_from((400, 900, 3_000)))
def test_it_holds_for_any_log(messages: list[Message], model: str, window: int) -> None:
    rows = [message_to_dict(message) for message in messages]
    try:
        result = nca.compact(rows, model=model, context_window=window)
    except ContextDoesNotFit:
        return
    check = nca.check_context_budget(result.messages, model=model, context_window=window)
    assert check.estimated_input_tokens == result.tokens_after <= result.budget_tokens


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("shape", SHAPES)
def test_so_does_each_request_of_a_view(shape: str, model: str) -> None:
    # The first half is English, the second is not: what is shown becomes denser than what is gone.
    rows = [*talk(30, SAID[:1], TOLD)[:-1], *talk(40, SAID[1:], TOLD)[1:]]
    view = nca.ContextView(model=model, context_window=6_000)
    # By whole turns and by less of them.
    for end in range(2, len(rows), 7):
        request = SHAPES[shape](rows[:end])
        fitted = view.fit(request)
        assert fitted.request is not None
        check = nca.check_context_budget(fitted.request, model=model, context_window=6_000)
        assert check.estimated_input_tokens == fitted.used_tokens <= fitted.budget_tokens


@pytest.mark.parametrize("model", ["", "claude-sonnet-4-5", "gemini/gemini-2.5-pro", "gpt-4o"])
def test_what_is_added_to_a_conversation_of_a_prompt_alone_is_counted(model: str) -> None:
    """Some providers refuse a request without a message of the person's."""
    for words in range(560, 640, 9):
        rows = [{"role": "system", "content": "word " * words}]
        try:
            fitted = nca.ContextView(model=model, context_window=1_000).fit(rows)
        except nca.ContextDoesNotFit:
            continue
        again = nca.check_context_budget(fitted.messages, model=model, context_window=1_000)
        assert again.estimated_input_tokens == fitted.used_tokens <= fitted.budget_tokens
