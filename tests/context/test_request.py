"""Requests made from a view are valid for their provider, and the same bytes for the same log."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given

from nca.context.repair_cost import repair_cost_of
from nca.context.request import repair, request_messages, resolve
from nca.context.rules.messages import INTERRUPTED
from nca.context.validate import validate_request
from nca.context.view import Marker, Stub, Summary, Verbatim, View
from nca.messages import Message, ToolCall
from nca.wire import message_to_dict
from tests.context.logs import history_of, logs
from tests.context.samples import assistant, call, calling, result, some, step, talk, user


def test_a_view_is_resolved_in_its_order() -> None:
    history = history_of(talk(4))
    view = View(
        (Summary("s", ((1, 2),), "sum"), Stub(3, "cut", "truncate"), Verbatim(4, 4), Marker("m", ((5, 5),), "")), 6
    )
    assert [message.content for message in resolve(history, view)] == [
        "sum",
        "cut",
        history.message(4).content,
        *(history.message(seq).content for seq in (6, 7, 8)),
    ]


def test_the_system_prompt_comes_before_system_messages_of_the_log() -> None:
    history = history_of([user(), assistant(), Message("system", "Late."), user()])
    rows = request_messages(history, system_prompt="First.")
    assert [row["content"] for row in rows[:2]] == ["First.", "Late."]


@pytest.mark.parametrize("provider", ["", "openai", "anthropic", "mistral", "codestral"])
def test_an_assistant_is_put_between_a_result_and_the_user_where_the_provider_wants_it(provider: str) -> None:
    rows = request_messages(history_of([user(), *step("a"), user("Stop.")]), provider=provider)
    wanted = provider in ("", "mistral", "codestral")
    assert (INTERRUPTED in [row["content"] for row in rows]) == wanted


@some
@given(logs())
def test_a_repair_changes_nothing_it_was_given_and_is_stable(messages: list[Message]) -> None:
    before = msgspec.json.encode(messages)
    once = repair(messages)
    assert msgspec.json.encode(messages) == before
    assert repair(once) == once


@some
@given(logs())
def test_the_same_log_gives_the_same_bytes(messages: list[Message]) -> None:
    one, two = request_messages(history_of(messages)), request_messages(history_of(messages))
    assert msgspec.json.encode(one) == msgspec.json.encode(two)


def test_what_stands_beside_a_call_goes_only_to_the_model_that_gave_it() -> None:
    signed = ToolCall("a" * 50, "read_file", "[]", {"extra_content": {"google": "Zm9v"}}, "gemini/one")
    unknown = ToolCall("b", "read_file", "{}", {"extra_content": {"google": "bar"}})
    log = [user(), calling(signed, unknown, call("c")), result("a" * 50), result("b"), result("c")]

    def beside(model: str) -> list[object]:
        calls = request_messages(history_of(log), provider="gemini", model=model)[1]["tool_calls"]
        assert [set(one) - {"extra_content"} for one in calls] == [{"id", "type", "function"}] * 3
        return [one.get("extra_content") for one in calls]

    assert beside("gemini/one") == [{"google": "Zm9v"}, None, None]
    assert beside("openai/other") == [None, None, None]
    assert beside("") == [{"google": "Zm9v"}, {"google": "bar"}, None]


def test_results_in_another_order_and_a_repeat_are_put_right() -> None:
    log = [user(), calling(call("a"), call("b")), result("b", "B"), user("hm"), result("a", "A"), result("a", "again")]
    rows = request_messages(history_of(log), provider="openai")
    assert [row["content"] for row in rows] == ["Go on.", None, "A", "B", "hm"]


def test_signed_thoughts_go_only_to_the_model_that_had_them() -> None:
    thought = {"thinking_blocks": [{"type": "thinking", "thinking": "Hm.", "signature": "s"}]}
    own = Message("assistant", "Yes.", extra={**thought, "audio": "a"}, made_by="anthropic/one")
    unknown = Message("assistant", "No.", extra={**thought, "audio": "a"})
    log = [user(), own, user(), unknown, user()]

    def beside(model: str) -> list[list[str]]:
        rows = request_messages(history_of(log), provider="anthropic", model=model)
        return [sorted(set(row) - {"role", "content"}) for row in rows if row["role"] == "assistant"]

    assert beside("anthropic/one") == [["audio", "thinking_blocks"], ["audio"]]
    assert beside("anthropic/other") == [[], ["audio"]]
    assert beside("") == [["audio", "thinking_blocks"]] * 2


def test_a_log_that_one_provider_takes_as_it_is_must_be_repaired_for_the_next() -> None:
    # Why logs are not repaired where they are written: the person may go on with another provider at any time.
    log = [user(), calling(call("call_abc-1")), result("call_abc-1"), user("Stop."), assistant("Fine."), user("And?")]
    rows = [message_to_dict(message) for message in log]
    assert validate_request(rows, "openai") == []
    assert repair(log, "openai") == log
    assert repair_cost_of(log, "openai") == 0
    assert "directly after a tool message" in validate_request(rows, "mistral")[0]
    assert validate_request(request_messages(history_of(log), provider="mistral"), "mistral") == []
    assert repair_cost_of(log, "mistral") > 0
    # Nor is a view legal because its log is: here it begins with the assistant.
    view = View((Marker("m", ((1, 4),), ""),), 5)
    shown = [message_to_dict(message) for message in resolve(history_of(log), view)]
    assert "the first message is not the user's" in validate_request(shown, "anthropic")
    assert validate_request(request_messages(history_of(log), view=view, provider="anthropic"), "anthropic") == []
