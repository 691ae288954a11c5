import asyncio

import pytest

from nca.errors import ProviderError
from nca.messages import Message, ToolCall
from nca.models.model import Delta, Model, ModelRequest, Reply
from nca.testing.scripted import ScriptedModel

REQUEST = ModelRequest([{"role": "user", "content": "Hello"}])


async def test_the_script_is_followed() -> None:
    call = ToolCall("c1", "read", "{}")
    model = ScriptedModel(
        [
            "A text.",
            Message(role="assistant", tool_calls=(call,)),
            Reply(Message(role="assistant", content="cut"), finish_reason="length"),
            lambda request: f"{len(request.messages)} message",
            ProviderError("down"),
        ]
    )
    assert isinstance(model, Model)
    seen: list[Delta] = []
    first = await model.ask(REQUEST, seen.append)
    assert "".join(delta.text for delta in seen) == first.message.text == "A text."
    assert first.usage is not None
    assert first.usage.prompt_tokens > 0
    second = await model.ask(REQUEST, seen.append)
    assert (second.finish_reason, second.message.tool_calls) == ("tool_calls", (call,))
    assert (await model.ask(REQUEST, seen.append)).finish_reason == "length"
    assert (await model.ask(REQUEST, seen.append)).message.text == "1 message"
    with pytest.raises(ProviderError, match="down"):
        await model.ask(REQUEST, seen.append)
    with pytest.raises(IndexError, match="request 6"):
        await model.ask(REQUEST, seen.append)
    assert model.requests == [REQUEST] * 6


async def test_it_can_be_cancelled_between_pieces() -> None:
    seen: list[Delta] = []
    model = ScriptedModel(["word " * 100])
    task = asyncio.create_task(model.ask(REQUEST, seen.append))
    while not seen:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert 0 < len(seen) < 100


async def test_usage_can_be_left_out() -> None:
    assert (await ScriptedModel(["Hi"], reports_usage=False).ask(REQUEST, lambda delta: None)).usage is None
