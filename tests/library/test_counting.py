"""Estimates, the budget check, and texts cut to a budget."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import nca
from nca.messages import Message
from nca.wire import message_to_dict
from tests.context.logs import logs

TALK: list[dict[str, Any]] = [
    {"role": "system", "content": "You are a test."},
    {"role": "user", "content": "How are you?"},
    {"role": "assistant", "content": "Fine. " * 20},
]
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]


def test_one_number_everywhere() -> None:
    check = nca.check_context_budget(TALK, context_window=1_000, tools=TOOLS)
    assert check.estimated_input_tokens == nca.estimate_messages_tokens(TALK, tools=TOOLS)
    assert check.estimated_input_tokens == sum(check.breakdown.values())
    compacted = nca.compact(TALK, context_window=1_000, tools=TOOLS)
    assert compacted.tokens_before == check.estimated_input_tokens
    assert compacted.budget_tokens == check.available_input_tokens == 650


@given(logs(), st.sampled_from(["", "anthropic", "mistral"]))
def test_one_number_for_any_log(messages: list[Message], provider: str) -> None:
    rows = [message_to_dict(message) for message in messages]
    model = f"{provider}/some-model" if provider else ""
    check = nca.check_context_budget(rows, model=model, context_window=2_000_000)
    assert check.estimated_input_tokens == nca.estimate_messages_tokens(rows, provider=provider)
    assert sum(check.breakdown.values()) == check.estimated_input_tokens
    # As nca exports them, messages have their attached files, and a request may have more beside them.
    rows = [message_to_dict(message, annotate=True) for message in messages]
    check = nca.check_context_budget(rows, context_window=2_000_000, files=[{"content": "line\n" * 100}])
    assert sum(check.breakdown.values()) == check.estimated_input_tokens


def test_the_threshold_is_a_share_of_the_budget() -> None:
    used = nca.estimate_messages_tokens(TALK)
    window = used * 2
    budget = nca.available_input_tokens(context_window=window)
    exactly = used / budget
    assert nca.check_context_budget(TALK, context_window=window, threshold=exactly).should_compact
    assert not nca.check_context_budget(TALK, context_window=window, threshold=min(1, exactly * 1.05)).should_compact
    assert nca.check_context_budget(TALK, context_window=40).within_budget is False


def test_everything_of_a_request_is_measured() -> None:
    check = nca.check_context_budget(
        TALK,
        context_window=8_000,
        system_prompt="Be brief. " * 40,
        current_prompt="And now? " * 30,
        tools=TOOLS,
        files=[{"path": "a.txt", "content": "line\n" * 100}],
    )
    assert all(check.breakdown[part] > 0 for part in check.breakdown), check.breakdown
    assert sum(check.breakdown.values()) == check.estimated_input_tokens


def test_the_tools_and_the_longest_answer_of_a_request_count() -> None:
    request = {"model": "gpt-4", "max_tokens": 1_000, "tools": TOOLS, "messages": TALK}
    given = nca.check_context_budget(TALK, model="gpt-4", max_output_tokens=1_000, tools=TOOLS)
    assert nca.check_context_budget(request) == given
    assert (
        given.breakdown["tool_definitions"] > nca.check_context_budget(request, tools=[]).breakdown["tool_definitions"]
    )


def test_a_first_request_has_no_messages_yet() -> None:
    assert nca.check_context_budget([], system_prompt="Be brief.").estimated_input_tokens > 0
    assert nca.check_context_budget((), current_prompt="Hello").breakdown["current_input"] > 0
    with pytest.raises(nca.InvalidMessages, match="the list is empty"):
        nca.check_context_budget([])


def test_estimates_of_a_text() -> None:
    assert nca.estimate_tokens("") == 0
    assert nca.estimate_messages_tokens([]) == 0
    assert nca.estimate_tokens("word " * 100) == 101, "as o200k counts"
    assert nca.estimate_tokens("word " * 100, provider="anthropic") == round(101 * 1.06 * 1.11)
    assert nca.estimate_tokens("word " * 100, provider="mistral") == round(101 * 1.2)
    assert nca.estimate_tokens("word " * 100, is_code=True) == 101
    assert nca.estimate_tokens("word " * 100, chars_per_token=5) == round(101 * 4 / 5)
    assert nca.estimate_tokens("word " * 100, preset="neurolink", is_code=True) == -(-167 * 115 // 100)
    assert nca.estimate_tokens("日本語" * 100) == 200
    assert nca.estimate_tokens("word", preset="") == nca.estimate_tokens("word")


def test_tool_arguments_and_images_count() -> None:
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": "write", "arguments": '{"text": "' + "x-" * 1_500 + '"}'},
    }
    rows: list[dict[str, Any]] = [TALK[1], {"role": "assistant", "content": None, "tool_calls": [call]}]
    assert nca.estimate_messages_tokens(rows) > 1_000
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 900_000}}
    assert 1_024 < nca.estimate_messages_tokens([{"role": "user", "content": [image]}]) < 3_000


SENTENCES = "First sentence here. Second one follows! Is there a third? Yes, and it is the last of them."


@pytest.mark.parametrize("provider", ["", "anthropic"])
@pytest.mark.parametrize("most", range(0, 40))
def test_a_text_is_cut_to_its_budget(most: int, provider: str) -> None:
    cut = nca.truncate_to_token_budget(SENTENCES, most, provider)
    assert nca.estimate_tokens(cut.text, provider=provider) <= most
    assert cut.truncated == (cut.text != SENTENCES)
    if cut.truncated and cut.text:
        assert cut.text.endswith("...")
        assert SENTENCES.startswith(cut.text[:-3])


def test_it_is_cut_behind_a_sentence_or_a_word() -> None:
    assert nca.truncate_to_token_budget(SENTENCES, 13).text == "First sentence here. Second one follows!..."
    assert nca.truncate_to_token_budget("alpha beta gamma delta epsilon", 4).text == "alpha beta gamma..."
    assert nca.truncate_to_token_budget("x" * 100, 6).text == "x" * 37 + "..."
    assert nca.truncate_to_token_budget("line one\nline two\nline three", 7).text == "line one\nline two..."
    assert nca.truncate_to_token_budget("", 0) == nca.TruncatedText("", False)
    assert nca.truncate_to_token_budget("word", 0) == nca.TruncatedText("", True)


@given(st.text(max_size=300), st.integers(0, 120), st.sampled_from(["", "mistral"]))
@example("🦀" * 60, 40, "")
@example("日本語。" * 30, 30, "")
def test_any_text_is_cut_to_its_budget(text: str, most: int, provider: str) -> None:
    cut = nca.truncate_to_token_budget(text, most, provider)
    assert nca.estimate_tokens(cut.text, provider=provider) <= most
    assert cut.truncated == (nca.estimate_tokens(text, provider=provider) > most)
    assert text.startswith(cut.text.removesuffix("...") if cut.truncated else cut.text)


NOT_MESSAGES: list[Any] = [None, "Hi", b"Hi", 5, {}, {"role": "user", "content": "Hi"}, (row for row in TALK), {1, 2}]


@pytest.mark.parametrize("messages", NOT_MESSAGES, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize(
    "function",
    [
        nca.compact,
        nca.check_context_budget,
        nca.estimate_messages_tokens,
        nca.repair_tool_pairs,
        lambda messages: nca.validate_request(messages, "openai"),
        nca.SlidingWindow(2, 100).compact,
    ],
)
def test_what_is_no_list_of_messages_is_refused(function: Any, messages: Any) -> None:
    with pytest.raises(nca.InvalidMessages, match=r"messages: expected a list of messages, found \w+"):
        function(messages)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"context_window": -1}, "context_window = -1 is not valid; valid: a whole number from 0"),
        ({"context_window": float("nan")}, "context_window = nan is not valid"),
        ({"context_window": "many"}, "context_window = 'many' is not valid"),
        ({"context_window": True}, "context_window = true is not valid"),
        ({"max_output_tokens": -5}, "max_output_tokens = -5 is not valid"),
        ({"threshold": 0}, "threshold = 0 is not valid; valid: auto, or a share above 0 up to 1"),
        ({"threshold": 1.5}, "threshold = 1.5 is not valid"),
        ({"threshold": "lots"}, "threshold = 'lots' is not valid"),
        ({"threshold": float("nan")}, "threshold = nan is not valid"),
        ({"model": None}, "model: expected text, found nothing"),
        ({"system_prompt": ["x"]}, "system_prompt: expected text, found a list"),
        ({"current_prompt": 3}, "current_prompt: expected text, found a number"),
        ({"tools": "weather"}, "tools: expected a list of objects, found text"),
        ({"tools": ["weather"]}, "tools, entry 1: expected an object, found text"),
        ({"tools": [{"f": object()}]}, "tools, entry 1: holds a value that JSON cannot"),
        ({"files": [{"path": "a"}]}, "files, entry 1: content: expected text, found nothing"),
        ({"files": {"content": "x"}}, "files: expected a list of objects, found an object"),
        ({"settings": ["x"]}, "settings: expected names with their values, found a list"),
        ({"settings": {3: 4}}, "settings: 3 is not a name of a setting"),
        ({"settings": {"context.compact_treshold": 0.5}}, "Did you mean context.compact_threshold?"),
    ],
)
def test_bad_arguments_of_a_check_are_named(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(nca.UsageError) as refused:
        nca.check_context_budget(TALK, **arguments)
    assert said in str(refused.value)
    assert refused.value.exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"target": 0}, "target = 0 is not valid"),
        ({"target": float("inf")}, "target = inf is not valid"),
        ({"stages": ["shrink"]}, "stages = "),
        ({"stages": "shrink"}, "stages = "),
        ({"stages": 5}, "stages = 5 is not valid"),
        ({"summarizer": "gpt"}, "summarizer: expected something to call with messages, found text"),
        ({"focus": 1}, "focus: expected text, found a number"),
        ({"tools": (tool for tool in TOOLS)}, "tools: expected a list of objects, found a generator"),
    ],
)
def test_bad_arguments_of_a_compaction_are_named(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(nca.UsageError) as refused:
        nca.compact(TALK, **arguments)
    assert said in str(refused.value)


def test_stages_may_be_written_as_one_text() -> None:
    rows = [{"role": "user", "content": f"Question {n} " + "why " * 100} for n in range(40)]
    assert nca.compact(rows, context_window=2_000, stages="truncate").stages_used == ("truncate",)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: nca.estimate_tokens(None), "text: expected text, found nothing"),  # type: ignore[arg-type]
        (lambda: nca.estimate_tokens("x", provider=None), "provider: expected text"),  # type: ignore[arg-type]
        (lambda: nca.estimate_tokens("x", preset="gpt"), "preset = 'gpt' is not valid; valid: nca,"),  # type: ignore[arg-type]
        (lambda: nca.estimate_tokens("x", preset=None), "preset = None is not valid"),  # type: ignore[arg-type]
        (lambda: nca.estimate_tokens("x", chars_per_token=0), "chars_per_token = 0 is not valid; valid: a number from"),
        (lambda: nca.estimate_tokens("x", chars_per_token=float("nan")), "chars_per_token = nan is not valid"),
        (lambda: nca.estimate_tokens("x", preset="cowagent", chars_per_token=4), "the preset cowagent has none to set"),
        (lambda: nca.truncate_to_token_budget("x", -1), "max_tokens = -1 is not valid"),
        (lambda: nca.truncate_to_token_budget("x", float("nan")), "max_tokens = nan"),  # type: ignore[arg-type]
        (lambda: nca.truncate_to_token_budget(7, 1), "text: expected text, found a number"),  # type: ignore[arg-type]
    ],
)
def test_bad_arguments_of_estimates_are_named(call: Any, said: str) -> None:
    with pytest.raises(nca.UsageError) as refused:
        call()
    assert said in str(refused.value)
