"""Token counts of other programs, to the token."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nca
from nca.compat.presets import PRESETS, PresetName
from nca.context.calibration import Calibration
from nca.context.history import History
from nca.context.meter import Meter
from nca.context.request import of_a_program
from nca.messages import AttachmentPart, Entry, Message, TextPart
from nca.wire import message_to_dict, messages_from_list
from tests.context.logs import logs

FOX = "The quick brown fox jumps over the lazy dog."
WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tells the weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 9_000}}
FILE = {"type": "file", "file": {"file_data": "data:application/pdf;base64," + "A" * 9_000}}
CALLING: dict[str, Any] = {
    "role": "assistant",
    "content": "Let me see.",
    "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Köln", "days": 3}'}}
    ],
}
RESULT: dict[str, Any] = {"role": "tool", "tool_call_id": "c1", "content": "Rain."}


@pytest.mark.parametrize(
    ("text", "provider", "is_code", "tokens"),
    [
        ("", "openai", False, 0),
        ("a", "openai", False, 2),  # 1 × 1.0 × 1.15
        (FOX, "openai", False, 13),  # 11 × 1.15 = 12.65
        (FOX, "anthropic", False, 16),  # 11 × 1.23 × 1.15 = 15.56
        (FOX, "bedrock", False, 16),
        (FOX, "google-ai", False, 15),  # 11 × 1.18 × 1.15 = 14.93
        (FOX, "vertex", False, 15),
        (FOX, "mistral", False, 16),  # 11 × 1.26 × 1.15 = 15.94
        (FOX, "ollama", False, 13),
        (FOX, "nobody", False, 13),
        (FOX, "openai", True, 18),  # ceil(44 / 3) = 15 × 1.15 = 17.25
        ("x" * 400, "openai", False, 115),  # 100 × 1.15, which is a hair below 115
        ("x" * 4_000, "anthropic", False, 1_415),  # 1000 × 1.23 × 1.15 = 1414.5
        ("🦀" * 10, "openai", False, 6),  # 20 units of UTF-16: 5 × 1.15
        ("日本語", "openai", False, 2),
    ],
)
def test_neurolink_counts_a_text(text: str, provider: str, is_code: bool, tokens: int) -> None:
    assert nca.estimate_tokens(text, preset="neurolink", provider=provider, is_code=is_code) == tokens


def test_neurolink_counts_messages_by_their_content_alone() -> None:
    rows: list[dict[str, Any]] = [{"role": "user", "content": FOX}, CALLING, RESULT]
    # 24 + (4 + 13) + (4 + ceil(3 × 1.15)) + (4 + ceil(2 × 1.15)); the call counts nothing.
    assert nca.estimate_messages_tokens(rows, preset="neurolink") == 24 + 17 + 8 + 7
    assert nca.estimate_messages_tokens(rows, preset="neurolink", provider="anthropic") == 24 + 20 + 9 + 7
    with_image = [{"role": "user", "content": [{"type": "text", "text": FOX}, IMAGE]}]
    assert nca.estimate_messages_tokens(with_image, preset="neurolink") == 24 + 4 + 13 + 1_024


def test_neurolink_counts_tool_definitions_by_their_json() -> None:
    rows = [{"role": "user", "content": FOX}]
    size = len(json.dumps(WEATHER, separators=(",", ":")))
    assert size == 155
    assert nca.estimate_messages_tokens(rows, preset="neurolink", tools=[WEATHER, WEATHER]) == 24 + 17 + 2 * 39


@pytest.mark.parametrize(
    ("text", "ratio", "tokens"),
    [
        ("", None, 0),
        ("Hello, world!", None, 4),  # ceil(13 / 4.0)
        (FOX, None, 11),
        (FOX, 3.5, 13),  # ceil(44 / 3.5 = 12.57)
        ("x" * 33, 3.3, 10),  # in single precision the quotient is 10 exactly
        ("日本語", None, 3),  # 9 bytes of UTF-8
        ("🦀" * 10, None, 10),
        ("x" * 16_777_217, None, 4_194_304),  # a length of single precision
    ],
)
def test_neuron_counts_a_text(text: str, ratio: float | None, tokens: int) -> None:
    assert nca.estimate_tokens(text, preset="neuron", chars_per_token=ratio) == tokens


def test_neuron_counts_each_kind_of_content() -> None:
    def one(row: dict[str, Any]) -> int:
        return nca.estimate_messages_tokens([row], preset="neuron")

    assert one({"role": "user", "content": FOX}) == 4 + 11
    assert one({"role": "user", "content": [{"type": "text", "text": FOX}, IMAGE]}) == 4 + 11 + 300
    assert one({"role": "user", "content": [FILE]}) == 4 + 500
    # "Let me see." 3, "weather" 2, {"city":"Köln","days":3} without spaces: 25 bytes, 7
    assert one(CALLING) == 4 + 3 + 2 + 7
    assert one(RESULT) == 4 + 2
    assert one({"role": "assistant", "content": FOX, "reasoning_content": FOX}) == 4 + 11 + 11


def test_neuron_counts_tool_definitions_in_three_parts() -> None:
    schema = len(json.dumps(WEATHER["function"]["parameters"], separators=(",", ":")))
    assert schema == 57
    rows = [{"role": "user", "content": FOX}]
    assert nca.estimate_messages_tokens(rows, preset="neuron", tools=[WEATHER]) == 15 + 2 + 5 + 15
    flat = {"name": "weather", "description": "Tells the weather.", "input_schema": {}}
    assert nca.estimate_messages_tokens(rows, preset="neuron", tools=[flat]) == 15 + 2 + 5 + 1


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("a", 1), ("abcd", 2), (FOX, 12), ("日本語", 5), ("日本語abcd", 6), ("🦀" * 10, 16), ("é", 2)],
)
def test_cowagent_counts_a_text(text: str, tokens: int) -> None:
    assert nca.estimate_tokens(text, preset="cowagent") == tokens


def test_cowagent_counts_each_kind_of_content() -> None:
    def one(row: dict[str, Any]) -> int:
        return nca.estimate_messages_tokens([row], preset="cowagent")

    assert one({"role": "user", "content": FOX}) == 12
    assert one({"role": "user", "content": ""}) == 1
    assert one({"role": "user", "content": [{"type": "text", "text": FOX}, IMAGE]}) == 12 + 1_200
    assert one({"role": "user", "content": [{"type": "text", "text": FOX}, FILE]}) == 12 + 10
    # "Let me see." 3; {"city": "Köln", "days": 3} is 26 ASCII characters and one other: int(8) + 1
    assert one(CALLING) == 3 + 50 + 9
    assert one(RESULT) == 30 + 2
    assert one({**RESULT, "content": [{"type": "text", "text": FOX}]}) == 30
    broken = {**CALLING, "content": None}
    broken["tool_calls"] = [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "not json"}}]
    assert one(broken) == 50


def test_cowagent_counts_no_tool_definitions() -> None:
    rows = [{"role": "user", "content": FOX}]
    assert nca.estimate_messages_tokens(rows, preset="cowagent", tools=[WEATHER]) == 12


def test_attachments_count_as_the_text_they_are_sent_as() -> None:
    sent = '<file path="a.txt">\n' + FOX + "\n</file>"
    message = Message("user", (TextPart(FOX), AttachmentPart("a.txt", FOX, 44)))
    for name in ("neurolink", "neuron", "cowagent"):
        apart = PRESETS[name].text(FOX, "", 4.0) + PRESETS[name].text(sent, "", 4.0)
        empty = PRESETS[name].request([Message("user", ())], (), "", 4.0)
        assert apart <= PRESETS[name].request([message], (), "", 4.0) <= apart + empty


@given(logs(), st.sampled_from(["", "openai", "anthropic", "mistral"]))
def test_without_a_preset_the_number_is_the_engine_s_own(messages: list[Message], provider: str) -> None:
    rows = [message_to_dict(message) for message in messages]
    history = History(Entry(seq, message) for seq, message in enumerate(messages_from_list(rows), 1))
    meter = Meter(provider=of_a_program(provider), calibration=Calibration.unlearned(provider))
    meter.look(history)
    assert nca.estimate_messages_tokens(rows, provider=provider) == meter.used(history)


@given(st.text(max_size=200), st.text(max_size=40))
@pytest.mark.parametrize("preset", ["", *PRESETS])
def test_more_text_never_counts_less(preset: PresetName, text: str, more: str) -> None:
    assert nca.estimate_tokens(text, preset=preset) <= nca.estimate_tokens(text + more, preset=preset)


@given(logs())
def test_a_request_counts_what_its_messages_count(messages: list[Message]) -> None:
    for preset, base in (("neurolink", 24), ("neuron", 0), ("cowagent", 0)):
        alone = [PRESETS[preset].request([message], (), "", 4.0) - base for message in messages]
        assert PRESETS[preset].request(messages, (), "", 4.0) == base + sum(alone), preset


def test_the_first_design_s_numbers() -> None:
    def tokens(*rows: dict[str, Any]) -> int:
        return nca.estimate_messages_tokens(rows, preset="nca")

    hello = {"role": "user", "content": "Hello, world!"}
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    assert tokens(hello) == 13
    assert tokens(hello, {"role": "assistant", "content": None, "tool_calls": [call]}) == 13 + 60
    assert tokens(hello, {"role": "tool", "tool_call_id": "c", "content": "x" * 3_500}) == 13 + 1_010
    assert tokens({"role": "system", "content": "x" * 400}) == 110
    assert nca.estimate_tokens("Hello, world!", preset="nca") == 3


def test_the_density_of_a_request_can_be_set() -> None:
    rows = [{"role": "user", "content": "x" * 600}]
    counted = [
        [nca.estimate_messages_tokens(rows, preset=name, chars_per_token=ratio) for ratio in (4.0, 3.0)]
        for name in ("nca", "neuron")
    ]
    assert counted == [[160, 210], [154, 204]]
    own = nca.estimate_messages_tokens(rows)
    assert nca.estimate_messages_tokens(rows, chars_per_token=2) == pytest.approx(2 * own, abs=1)
    with pytest.raises(nca.UsageError, match="the preset cowagent has none to set"):
        nca.estimate_messages_tokens(rows, preset="cowagent", chars_per_token=3)
