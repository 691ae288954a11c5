"""The real engine with the small model."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import pytest_asyncio

from nca.errors import ModelUnavailable, ProviderError, UsageError
from nca.events import RetryScheduled
from nca.models.embedded import weights
from nca.models.embedded.known import QWEN, SMOLLM, KnownModel
from nca.models.embedded.server import EmbeddedModel, facts_of, open_embedded
from nca.models.model import Delta, Model, ModelRequest

REPOSITORY = Path(__file__).parents[3]
PROGRAM = Path(__file__).with_name("serve_program.py")
WINDOW = 512

pytestmark = pytest.mark.timeout(300)


def asking(text: str, **more: int) -> ModelRequest:
    return ModelRequest(messages=[{"role": "user", "content": text}], max_output_tokens=more.get("most", 16))


def ignore(_: Delta) -> None:
    return


@pytest.fixture
def retries() -> list[RetryScheduled]:
    return []


@pytest.fixture
async def model(smollm_home: Path, retries: list[RetryScheduled]) -> AsyncIterator[EmbeddedModel]:
    opened = await open_embedded(SMOLLM.name, WINDOW, on_retry=retries.append)
    assert isinstance(opened, EmbeddedModel)
    yield opened
    await opened.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(lasting_home: Path) -> AsyncIterator[EmbeddedModel]:
    """One whose child answers the questions of several tests."""
    opened = await open_embedded(SMOLLM.name, WINDOW, env={**os.environ, "NCA_HOME": str(lasting_home)})
    assert isinstance(opened, EmbeddedModel)
    yield opened
    await opened.close()


def kill(model: EmbeddedModel) -> None:
    assert model.server.pid is not None
    os.kill(model.server.pid, signal.SIGKILL)


def test_facts_say_what_each_can() -> None:
    qwen, smollm = facts_of(QWEN, 0, available_ram=0), facts_of(SMOLLM, 0)
    assert not qwen.can_reason
    assert not smollm.can_reason
    assert (qwen.name, qwen.window_tokens, qwen.reuses_prefix) == ("embedded/qwen2.5-coder-1.5b", 8192, True)
    assert (qwen.can_use_tools, qwen.can_summarize) == (True, True)
    assert (smollm.can_use_tools, smollm.can_summarize) == (False, False)
    assert "no tools, no summaries" in smollm.note
    assert smollm.input_cost == 0.0


@pytest.mark.parametrize(("model", "window"), [(QWEN, 16_384), (SMOLLM, 8_192)])
def test_the_window_is_larger_where_memory_allows(model: KnownModel, window: int) -> None:
    roomy = facts_of(model, 0, available_ram=2 * model.ram_bytes)
    assert roomy.window_tokens == window
    assert facts_of(model, 0, available_ram=2 * model.ram_bytes - 1).window_tokens == 8_192
    assert facts_of(model, 2_048, available_ram=2 * model.ram_bytes).window_tokens == 2_048


@pytest.mark.parametrize(("wanted", "window"), [(4_000, 4_000), (1_000_000, 32_768), (10, 512)])
def test_the_window_stays_within_what_the_model_can(wanted: int, window: int) -> None:
    facts = facts_of(QWEN, wanted)
    assert facts.window_tokens == window
    assert facts.max_output_tokens == min(2_048, window // 4)


async def test_without_weights_it_says_how_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="nca models get smollm2-135m"):
        await open_embedded(SMOLLM.name, env={"NCA_HOME": str(tmp_path)})
    with pytest.raises(UsageError, match="There is no embedded model"):
        await open_embedded("embedded/gpt", env={"NCA_HOME": str(tmp_path)})


@pytest.mark.embedded
async def test_it_says_how_much_of_a_long_request_it_has_read(smollm_home: Path) -> None:
    model = await open_embedded(SMOLLM.name, 2_048)
    deltas: list[Delta] = []
    try:
        # Two of the batches that it reads at once.
        lines = [f"Line {number} of the list says {number * 7}." for number in range(45)]
        await model.ask(asking("\n".join([*lines, "Say hello."]), most=4), deltas.append)
    finally:
        await model.close()
    steps = [(delta.read_tokens, delta.of_tokens) for delta in deltas if delta.of_tokens]
    assert len(steps) > 2
    assert steps == sorted(steps)
    assert steps[-1][0] == steps[-1][1] > 512


async def test_it_answers_streams_and_counts(model: EmbeddedModel) -> None:
    assert isinstance(model, Model)
    assert not model.server.is_alive, "the child starts when it is needed"
    deltas: list[str] = []
    reply = await model.ask(asking("What is the capital of France?", most=24), lambda delta: deltas.append(delta.text))
    assert len(deltas) > 1
    assert "".join(deltas) == reply.message.text
    assert reply.usage is not None
    assert reply.usage.prompt_tokens > 10
    assert reply.usage.cost == 0.0


@pytest.mark.embedded
@pytest.mark.asyncio(loop_scope="module")
async def test_an_answer_is_capped_and_says_so(running: EmbeddedModel) -> None:
    reply = await running.ask(asking("Write a long story about a lighthouse.", most=8), ignore)
    assert (reply.usage.completion_tokens if reply.usage else 0, reply.finish_reason) == (8, "length")
    unbounded = await running.ask(ModelRequest(messages=[{"role": "user", "content": "Write a long story."}]), ignore)
    assert unbounded.usage is not None
    assert 0 < unbounded.usage.completion_tokens <= WINDOW // 4


@pytest.mark.embedded
@pytest.mark.asyncio(loop_scope="module")
async def test_an_unchanged_prefix_is_not_read_again(running: EmbeddedModel) -> None:
    start = [{"role": "system", "content": "You are brief. " * 20}]
    await running.warm(ModelRequest(messages=start))
    reply = await running.ask(
        ModelRequest(messages=[*start, {"role": "user", "content": "Hello"}], max_output_tokens=4), ignore
    )
    assert reply.usage is not None
    assert reply.usage.cache_read_tokens > 0.8 * reply.usage.prompt_tokens


@pytest.mark.embedded
async def test_who_waits_for_the_prefix_sees_how_far_it_is_read(smollm_home: Path) -> None:
    model = await open_embedded(SMOLLM.name, 2_048)
    prefix = {"role": "system", "content": "\n".join(f"Line {number} says {number * 7}." for number in range(80))}
    deltas: list[Delta] = []
    assert isinstance(model, EmbeddedModel)
    try:
        await model.warm()
        begun = asyncio.Event()
        model._waiting = lambda _: begun.set()
        warming = asyncio.create_task(model.warm(ModelRequest(messages=[prefix])))
        await begun.wait()  # else the question could overtake the prefix
        question = {"role": "user", "content": "Say hello."}
        await model.ask(ModelRequest(messages=[prefix, question], max_output_tokens=4), deltas.append)
        await warming
    finally:
        await model.close()
    steps = [(delta.read_tokens, delta.of_tokens) for delta in deltas if delta.of_tokens]
    assert steps[0][0] <= steps[0][1] < steps[-1][1], "the prefix alone comes first, and is shorter than the request"
    assert steps[-1][0] == steps[-1][1]


@pytest.mark.embedded
@pytest.mark.asyncio(loop_scope="module")
async def test_what_does_not_fit_is_an_overflow_with_its_numbers(running: EmbeddedModel) -> None:
    with pytest.raises(ProviderError) as caught:
        await running.ask(asking("word " * 2 * WINDOW), ignore)
    failure = caught.value.failure
    assert (failure.action, failure.limit_tokens) == ("compact", WINDOW)
    assert failure.asked_tokens is not None
    assert failure.asked_tokens > WINDOW


@pytest.mark.embedded
@pytest.mark.asyncio(loop_scope="module")
async def test_tools_of_an_earlier_model_do_not_disturb_it(running: EmbeddedModel) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Read it."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "hello"},
        {"role": "user", "content": "Thanks."},
    ]
    tool = {"type": "function", "function": {"name": "read_file", "parameters": {"type": "object", "properties": {}}}}
    reply = await running.ask(ModelRequest(messages=messages, tools=[tool], max_output_tokens=8), ignore)
    assert reply.message.text
    assert reply.message.tool_calls == ()


@pytest.mark.embedded
async def test_a_crash_between_questions_starts_it_anew(model: EmbeddedModel, retries: list[RetryScheduled]) -> None:
    await model.ask(asking("Hello", most=4), ignore)
    first = model.server.pid
    kill(model)
    assert (await model.ask(asking("Hello", most=4), ignore)).message.text
    assert model.server.pid != first


@pytest.mark.embedded
async def test_a_crash_in_an_answer_is_said_and_the_next_works(model: EmbeddedModel) -> None:
    def kill_at_first(_: Delta) -> None:
        kill(model)

    with pytest.raises(ModelUnavailable, match="The embedded model stopped: it was killed") as caught:
        await model.ask(asking("Write a long story.", most=128), kill_at_first)
    assert "Ask again" in caught.value.advice
    assert (await model.ask(asking("Hello", most=4), ignore)).message.text


@pytest.mark.embedded
@pytest.mark.asyncio(loop_scope="module")
async def test_cancelling_ends_the_answer_and_keeps_the_child(running: EmbeddedModel) -> None:
    begun = asyncio.Event()
    task = asyncio.create_task(running.ask(asking("Write a long story.", most=128), lambda _: begun.set()))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    pid = running.server.pid
    assert (await running.ask(asking("Hello", most=4), ignore)).message.text
    assert running.server.pid == pid


@pytest.mark.embedded
@pytest.mark.asyncio(loop_scope="module")
async def test_only_who_has_the_key_is_let_in(running: EmbeddedModel) -> None:
    await running.warm()
    assert running.address
    body = {"model": SMOLLM.name, "messages": [{"role": "user", "content": "Hello"}]}
    async with httpx.AsyncClient(trust_env=False) as client:
        answer = await client.post(f"{running.address.api_base}/chat/completions", json=body)
    assert answer.status_code == 401
    arguments = Path(f"/proc/{running.server.pid}/cmdline")
    if arguments.exists():
        assert running.address.api_key.encode() not in arguments.read_bytes()


@pytest.mark.embedded
async def test_close_ends_the_child_and_may_be_called_twice(model: EmbeddedModel) -> None:
    await asyncio.gather(model.warm(), model.warm())
    pid = model.server.pid
    assert pid is not None
    await model.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    await model.close()


@pytest.mark.embedded
def test_the_child_ends_with_its_parent_however_that_ends(smollm_home: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, PROGRAM],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    address = urlsplit(process.stdout.readline().strip())
    assert _is_listening(address.port)
    process.kill()
    process.communicate()
    end = time.monotonic() + 60
    while _is_listening(address.port) and time.monotonic() < end:
        time.sleep(0.05)
    assert not _is_listening(address.port)


@pytest.mark.embedded
async def test_the_home_that_is_named_is_looked_in(smollm_home: Path) -> None:
    assert weights.installed() == [SMOLLM.name]


def _is_listening(port: int | None) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port or 0)) == 0
