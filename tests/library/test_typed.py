"""The library as a typed program uses it; mypy checks this file strictly with the others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypedDict, assert_type

import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam

import nca
from nca.testing.provider import Provider
from nca.testing.scripted import Answer, ScriptedModel, in_order


class Said(TypedDict):
    role: Literal["user", "assistant"]
    content: str


class Noted(Said):
    name: str


LOG: list[Said] = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "Because."}]
NOTED: Noted = {"role": "user", "content": "And now?", "name": "ada"}
MIXED: list[Said | Noted] = [*LOG, NOTED]


CHAT: list[nca.ChatMessage] = [
    {"role": "user", "content": "Look."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "grep", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "a.py: x"},
    {"role": "user", "content": [{"type": "text", "text": "And this?"}]},
]
BLOCKS: list[nca.AnthropicMessage] = [
    {"role": "user", "content": "Look."},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "grep", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "a.py: x"}]},
]
ITEMS: list[nca.ResponsesItem] = [
    {"role": "user", "content": [{"type": "input_text", "text": "Look."}]},
    {"type": "function_call", "call_id": "c1", "name": "grep", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "a.py: x"},
]
WRONG: list[nca.ChatMessage] = [{"role": "nobody", "content": "x"}]  # type: ignore[typeddict-item]


async def asynchronous(messages: list[dict[str, Any]]) -> str:
    return str(len(messages))


def blocking(messages: list[dict[str, Any]]) -> str:
    return str(len(messages))


def test_typed_messages_are_taken_by_every_function() -> None:
    view = nca.ContextView(context_window=6_000)
    assert_type(view.fit(LOG), nca.FittedRequest)
    assert_type(nca.compact(MIXED, context_window=6_000), nca.CompactionResult)
    assert_type(nca.check_context_budget(LOG, context_window=6_000).within_budget, bool)
    assert_type(nca.estimate_messages_tokens(LOG), int)
    assert_type(nca.validate_request(LOG, "openai"), list[str])
    assert_type(nca.repair_tool_pairs(MIXED), nca.RepairResult)
    assert_type(view.recall(query="why"), str)


def test_the_types_of_messages_are_of_the_three_shapes() -> None:
    assert nca.compact(CHAT, context_window=6_000).shape == "openai"
    assert nca.compact(BLOCKS, context_window=6_000).shape == "anthropic"
    assert nca.compact(ITEMS, context_window=6_000).shape == "responses"
    call: nca.ChatToolCall = {"id": "c2", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    log: list[nca.ChatMessage] = [*CHAT, {"role": "assistant", "content": "", "tool_calls": [call]}]
    own = nca.ContextView(context_window=6_000).fit(CHAT).shown(CHAT, _cut, _told)
    assert_type(own, list[nca.ChatMessage])
    assert own == CHAT
    assert not nca.repair_tool_pairs(CHAT).repaired
    assert nca.repair_tool_pairs(log).repaired
    with pytest.raises(nca.InvalidMessages, match=r"^message 1: role 'nobody' is not known"):
        nca.compact(WRONG)
    with pytest.raises(nca.ConfigError, match=r"^fit = 'cutt'"):
        nca.ContextView(fit="cutt")  # type: ignore[arg-type]


async def test_a_view_takes_both_kinds_of_summarizer_and_gives_the_programs_own_messages() -> None:
    kinds: list[Callable[[list[dict[str, Any]]], str] | Callable[[list[dict[str, Any]]], Awaitable[str]]]
    kinds = [asynchronous, blocking]
    for summarizer in kinds:
        fitted = await nca.ContextView(context_window=6_000, summarizer=summarizer).afit(LOG)
        assert_type(fitted, nca.FittedRequest)
        own = fitted.shown(LOG, _shortened, _user)
        assert_type(own, list[Said])
        assert own == LOG


def test_the_official_client_takes_what_a_view_gives() -> None:
    log: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Hello."}]
    view, tools = nca.ContextView(context_window=6_000), [nca.ContextView.recall_tool]
    with (
        Provider(in_order(*[Answer(text="Hi.")] * 3)) as provider,
        OpenAI(base_url=provider.url, api_key="k") as client,
    ):
        for messages in (view.fit(log).messages, nca.compact(log).messages, nca.repair_tool_pairs(log).messages):
            answer = client.chat.completions.create(model="openai/gpt-4.1", messages=messages, tools=tools)
            assert answer.choices[0].message.content == "Hi."


class Rolls(nca.TypedTool):
    name, permission = "roll", "execute"

    async def call(self, sides: int = 6) -> nca.ToolOutcome | str:
        """Roll a die."""
        if sides < 1:
            raise nca.ToolError("a die has sides")
        return nca.ToolOutcome(f"{sides}")


class Agrees(nca.Person):
    async def ask(self, asked: nca.ApprovalAsked) -> nca.Answer:
        return nca.Answer("once" if asked.name == "roll" else "deny")


async def test_every_argument_of_a_conversation_has_a_public_type(tmp_path: Path) -> None:
    loaded: nca.LoadedSettings = nca.load_settings(project=tmp_path, env={"NCA_HOME": str(tmp_path)})
    model: nca.Model = ScriptedModel(["Hi."])
    events: list[nca.Event] = []
    listener: nca.Listener = events.append
    tools: list[nca.Tool] = [Rolls()]
    person: nca.Person = Agrees()
    with nca.Store.open(None) as store:
        opened = nca.Conversation.open(
            loaded,
            store=store,
            model=model,
            directory=str(tmp_path),
            session=None,
            listener=listener,
            toolbox=nca.Toolbox(tools),
            tools=(),
            person=person,
        )
        async with opened as chat:
            assert_type(chat, nca.Conversation)
            finished = await chat.send("Hello")
        assert_type(finished, nca.TurnFinished)
    assert finished.text == "Hi."
    assert events[-1] == finished


def test_type_checkers_are_told_that_nca_is_typed() -> None:
    assert files("nca").joinpath("py.typed").is_file()


def _shortened(said: Said, text: str) -> Said:
    return {**said, "content": text}


def _cut(message: nca.ChatMessage, text: str) -> nca.ChatMessage:
    return {**message, "content": text}


def _told(text: str) -> nca.ChatMessage:
    return {"role": "user", "content": text}


def _user(text: str) -> Said:
    return {"role": "user", "content": text}
