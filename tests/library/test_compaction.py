"""What `nca.compact` returns: within its target, full, and readable by somebody who has no `recall`."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nca
from nca.context.view import View
from nca.library.compaction import items_of
from nca.library.inputs import history_of
from nca.messages import Message
from nca.wire import message_to_dict
from tests.context.samples import step

WINDOW = 16_000
WORDS = "the report of the quarter needs a table of all the sales by region and month beside its chart " * 2
STAGES = (None, ("prune", "truncate"), ("deduplicate", "truncate"), ("truncate",))


def _talk(turns: int) -> list[dict[str, Any]]:
    """A person who says much, with a rule in every third message."""
    rows: list[dict[str, Any]] = [{"role": "system", "content": "You are a test."}]
    for number in range(turns):
        rule = f" Never change the sheet {number} without a backup." if number % 3 == 0 else ""
        rows.append({"role": "user", "content": f"Request {number}: {WORDS}{rule}"})
        rows.append({"role": "assistant", "content": f"Done: {number}."})
    return rows


def _work(turns: int) -> list[dict[str, Any]]:
    """Turns that read one file again and again, then a message that no window holds."""
    rows: list[dict[str, Any]] = []
    for number in range(turns):
        rows.append({"role": "user", "content": f"Request {number}: {WORDS}"})
        rows += map(message_to_dict, step(f"c{number}", f"{WORDS * 8}\n" * 4, path=f"src/{number % 2}.py"))
        rows.append({"role": "assistant", "content": f"Done: {number}."})
    return rows


@given(st.integers(160, 300), st.sampled_from([None, 0.3, 0.4, 0.5, 0.7]))
def test_a_target_is_a_limit_to_the_persons_words_too_and_is_used(turns: int, target: float | None) -> None:
    result = nca.compact(_talk(turns), context_window=WINDOW, target=target)
    least = int((target or 0.80) * result.budget_tokens)
    # What cannot shrink, and half of the rest, is more in a talk whose newest message is large. A target that is
    # not set rises for the person's words.
    assert least <= result.target_tokens <= (1.05 if target else 1.07) * least
    assert 0.95 * result.target_tokens <= result.tokens_after <= result.target_tokens


@pytest.mark.parametrize(("turns", "window"), [(700, 24_000), (1_500, 100_000), (1_500, 48_000), (3_000, 64_000)])
def test_a_log_of_many_times_the_window_fits_afterwards(turns: int, window: int) -> None:
    """However many messages of the person it has: what no target has room for goes."""
    log = [{"role": role, "content": f"{place}: {WORDS}"} for place in range(turns) for role in ("user", "assistant")]
    result = nca.compact(log, context_window=window)
    assert result.tokens_before > 1.5 * result.budget_tokens
    assert result.compacted
    assert 0.95 * result.target_tokens <= result.tokens_after <= result.target_tokens < result.budget_tokens
    fitted = nca.ContextView(context_window=window).fit(log)
    assert fitted.used_tokens <= fitted.budget_tokens


@pytest.mark.parametrize("stages", STAGES)
def test_it_names_no_numbers_and_no_recall_which_its_reader_has_not(stages: tuple[str, ...] | None) -> None:
    rows = [*_work(30), {"role": "user", "content": f"What do you make of this? {WORDS * 300}"}]
    result = nca.compact(rows, context_window=WINDOW, stages=stages, fit="cut")
    shown = "\n".join(str(row["content"]) for row in result.messages)
    assert result.compacted
    assert "recall" not in shown
    assert not re.search(r"(?m)^\s*- \(\d+\)|\(\d+\):|up to \(\d+\)", shown)


@pytest.mark.parametrize("results", [50, 300, 1_000])
def test_the_target_is_filled_where_repairs_cost_more_than_what_they_repair(results: int) -> None:
    """A result without its call costs several times its tokens, since the call is made up."""
    orphans = [{"role": "tool", "tool_call_id": f"c{n}", "content": f"said {n} and more"} for n in range(results)]
    log = [{"role": "user", "content": "Use tabs."}, *orphans, {"role": "user", "content": "Go on."}]
    result = nca.compact(log, context_window=3_000)
    assert result.compacted == (results > 50)
    assert "Use tabs." in str(result.messages)
    assert result.tokens_after >= (0.95 if result.compacted else 0.5) * result.target_tokens


@pytest.mark.parametrize("pictures", [1, 3])
@pytest.mark.parametrize("sentences", [60, 400])
def test_a_newest_message_with_pictures_is_counted_as_it_is_sent_once_it_is_cut(sentences: int, pictures: int) -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    text = " ".join(f"Look at number {number}, please." for number in range(sentences))
    newest = {"role": "user", "content": [{"type": "text", "text": text}, *[picture] * pictures]}
    for window in (2_000, 8_000):
        result = nca.compact([*_talk(1), newest], context_window=window, fit="cut")
        assert result.tokens_after == nca.compact(result.messages, context_window=200_000).tokens_before
        assert result.tokens_after <= result.budget_tokens


def test_a_newest_message_that_is_larger_than_the_window_is_cut_only_where_the_caller_says_so() -> None:
    rows = [*_talk(3), {"role": "user", "content": f"The first word. {WORDS * 500} The last word."}]
    refused: list[dict[str, Any]] = [
        {},
        {"fit": "auto"},
        {"fit": "refuse"},
        {"fit": "refuse", "settings": {"context.fit": "cut"}},
    ]
    allowed: list[dict[str, Any]] = [{"fit": "cut"}, {"settings": {"context.fit": "cut"}}]
    for more in refused:
        with pytest.raises(
            nca.ContextDoesNotFit, match=r"The message has [\d,]+ tokens, and the budget is 10,400"
        ) as no:
            nca.compact(rows, context_window=WINDOW, **more)
        assert no.value.exit_code == 4
        assert no.value.used_tokens > no.value.budget_tokens == 10_400
    for more in allowed:
        result = nca.compact(rows, context_window=WINDOW, **more)
        newest = str(result.messages[-1]["content"])
        assert result.tokens_after <= result.budget_tokens
        assert newest.startswith("The first word.")
        assert "The last word." in newest
    with pytest.raises(nca.ConfigError, match="cut, refuse"):
        nca.compact(rows, context_window=WINDOW, fit="shorten")  # type: ignore[arg-type]


def test_a_window_that_is_assumed_is_said() -> None:
    unknown, messages = "openai/does-not-exist", [{"role": "user", "content": "hello"}]
    (said,) = nca.compact(messages, model=unknown).notices
    assert said.startswith(f"The window of '{unknown}' is not known: 128,000 tokens are assumed")
    assert nca.compact(messages, model=unknown, context_window=9_000).notices == ()
    assert nca.compact(messages, model="openai/gpt-4.1").notices == ()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"target": 5}, "target = 5 is not valid"),
        ({"stages": ["x"]}, "stages = ['x'] is not valid"),
        ({"context_window": -1}, "context_window = -1 is not valid"),
        ({"fit": "x"}, "fit = 'x' is not valid"),
        ({"settings": {"context.target_ratio": 5}}, "context.target_ratio = 5 is not valid"),
        ({"settings": {"nope": 5}}, "There is no setting nope."),
    ],
)
def test_a_wrong_argument_is_called_by_its_own_name(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(nca.ConfigError) as refused:
        nca.compact([{"role": "user", "content": "hello"}], **arguments)
    assert str(refused.value).startswith(says)
    with pytest.raises(nca.ConfigError, match=r"^threshold = -1 is not valid"):
        nca.check_context_budget([{"role": "user", "content": "hello"}], threshold=-1)


def test_a_program_is_advised_in_its_own_words() -> None:
    large = [{"role": "user", "content": "a word " * 9_000}]
    calls: tuple[Callable[[], object], ...] = (
        lambda: nca.compact(large, context_window=4_000),
        lambda: nca.ContextView(context_window=4_000).fit(large),
    )
    for call in calls:
        with pytest.raises(nca.ContextDoesNotFit) as refused:
            call()
        assert refused.value.advice.endswith('or let it be cut: fit="cut".')


@pytest.mark.parametrize("window", [300, 1_000, 4_000])
@pytest.mark.parametrize("beside", [0, 0.3, 0.55, 0.6, 0.63, 0.65, 0.7, 1.5])
@pytest.mark.parametrize("lines", [1, 2_000])
def test_it_is_advised_to_cut_a_message_where_and_only_where_that_helps(window: int, beside: float, lines: int) -> None:
    request = [
        {"role": "system", "content": "word " * int(beside * window)},
        {"role": "user", "content": "a line of it\n" * lines},
    ]
    advice = ""
    try:
        nca.compact(request, context_window=window)
    except nca.ContextDoesNotFit as refused:
        advice = refused.advice
    if not advice:
        return
    if 'fit="cut"' in advice:
        assert nca.compact(request, context_window=window, fit="cut").compacted
    else:
        with pytest.raises(nca.ContextDoesNotFit):
            nca.compact(request, context_window=window, fit="cut")


def test_an_answer_that_gets_less_room_than_was_asked_for_is_said() -> None:
    messages = [{"role": "user", "content": "hello"}]
    (said,) = nca.compact(messages, context_window=8_000, max_output_tokens=9_000).notices
    assert said.startswith("max_output_tokens is lowered from 9,000 to 4,000")
    assert nca.compact(messages, context_window=8_000, max_output_tokens=4_000).notices == ()


def test_a_stage_that_nobody_named_is_said() -> None:
    said = [
        {"role": role, "content": f"{number} " + "word " * 200}
        for number in range(30)
        for role in ("user", "assistant")
    ]
    stages: list[str]
    for stages, says in ([], "No stage is named, so the last resort"), (["prune"], "After prune it was still over"):
        result = nca.compact(said, context_window=8_000, stages=stages)
        assert result.stages_used == ("truncate",)
        assert result.notices[0].startswith(says)


TALK: list[dict[str, Any]] = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
CUSTOM = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}}],
}


@pytest.mark.parametrize(
    "rows",
    [
        [*TALK[:1], {"role": "assistant", "content": None, "refusal": "I cannot help with that."}, *TALK[:1]],
        [*TALK[:1], {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}, *TALK[:1]],
        [*TALK[:1], {"role": "assistant", "content": "", "refusal": "No."}, *TALK[:1]],
        [*TALK[:1], {"role": "assistant", "content": None, "audio": {"id": "audio_abc"}}, *TALK[:1]],
        [*TALK[:1], {"role": "assistant", "content": "", "audio": {"id": "a", "transcript": "Yes."}}, *TALK[:1]],
        [*TALK[:1], CUSTOM, {"role": "tool", "tool_call_id": "c", "content": "ok"}],
        [*TALK, {"role": "developer", "content": "The user has opened /billing."}, *TALK[:1]],
        [{"role": "assistant", "content": "Welcome!"}, *TALK, TALK[1], {"role": "user", "content": ""}],
    ],
    ids=["refusal", "part", "beside", "audio", "transcript", "custom", "late", "greeting"],
)
def test_what_the_provider_takes_comes_back_as_it_was(rows: list[dict[str, Any]]) -> None:
    assert nca.validate_request(rows, "openai") == []
    view = nca.ContextView(model="gpt-5")
    first = view.fit(rows)
    assert first.messages == nca.compact(rows, model="gpt-5").messages == rows
    assert first.used_tokens == nca.estimate_messages_tokens(rows, provider="openai")
    longer = [*rows, {"role": "system", "content": "Late."}, *TALK]
    assert view.fit(longer).messages == longer
    for_all = nca.compact(rows).messages
    assert [nca.validate_request(for_all, provider) for provider in ("anthropic", "gemini", "mistral")] == [[], [], []]


@pytest.mark.parametrize("content", [None, "", []])
@pytest.mark.parametrize(
    "said", [{"refusal": "That I cannot do."}, {"audio": {"id": "a", "transcript": "That I cannot do."}}]
)
def test_a_refusal_or_a_spoken_answer_is_the_models_text(content: Any, said: dict[str, Any]) -> None:
    answer = {"role": "assistant", "content": content, **said}
    for model in ("", "claude-sonnet-4-5", "gemini/gemini-2.5-pro"):
        kept = nca.compact([*TALK[:1], answer, *TALK[:1]], model=model).messages
        assert kept[1] == {"role": "assistant", "content": "That I cannot do."}
    rows = _talk(60)
    rows[2] = answer
    view = nca.ContextView(model="gpt-5", context_window=4_000)
    assert view.fit(rows).compacted
    assert "That I cannot do." in view.recall(expand="3")
    assert "cannot do" in view.recall(query="that I cannot do")


def test_speech_that_came_along_is_counted_as_speech() -> None:
    data = base64.b64encode(bytes(400_000)).decode()
    spoken = {"role": "assistant", "content": None, "audio": {"id": "a", "transcript": "Yes.", "data": data}}
    assert nca.estimate_messages_tokens([*TALK[:1], spoken], provider="openai") > 3_000


@pytest.mark.parametrize(
    "row",
    [
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "42"},
    ],
)
def test_the_older_form_of_calls_is_refused_by_name(row: dict[str, Any]) -> None:
    with pytest.raises(nca.InvalidMessages, match=r"message 2: .* older form; valid: tool_calls"):
        nca.compact([*TALK[:1], row, *TALK[:1]])


PLAN = {"type": "image_url", "image_url": {"url": "https://x.example/plan.png?size=1"}}
CONTRACT = {"type": "file", "file": {"filename": "contract.pdf", "file_data": "data:application/pdf;base64,AAAA"}}


def test_pictures_that_a_compaction_leaves_out_are_said() -> None:
    call = {"id": "s", "type": "function", "function": {"name": "screenshot", "arguments": "{}"}}
    rows: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": "The floor plan."}, PLAN]},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]},
        {
            "role": "user",
            "content": [CONTRACT, {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}],
        },
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "s", "content": [{"type": "text", "text": "shot"}, PLAN]},
        {"role": "assistant", "content": None, "audio": {"id": "audio_abc"}},
        *_talk(40)[1:],
    ]
    view = nca.ContextView(model="gpt-5", context_window=8_000)
    record = view.fit(rows).messages[0]["content"]
    marks = {"1": "[image: plan.png]", "2": "[image]", "3": "[document: contract.pdf]", "5": "[image: plan.png]"}
    for number, mark in {**marks, "6": "[audio]"}.items():
        assert mark in view.recall(expand=number)
    for number, mark in marks.items():
        line = record.partition(f"- ({int(number) - (number == '5')}) ")[2].partition("- (")[0]
        assert mark in line
    said = nca.compact(rows, model="gpt-5", context_window=8_000).kept["words"]
    assert said == (43, 43)


def test_a_window_that_nobody_named_is_said() -> None:
    assert "128,000 tokens is assumed; context_window sets it" in nca.compact(TALK).notices[0]
    assert nca.compact(TALK, context_window=WINDOW).notices == ()


TOOLS = [{"name": f"tool_{number}", "description": "words " * 200, "input_schema": {}} for number in range(20)]


@pytest.mark.parametrize("key", ["max_tokens", "max_completion_tokens", "max_output_tokens"])
def test_what_a_request_says_of_its_model_answer_and_tools_counts(key: str) -> None:
    request = {"model": "gpt-4", key: 1_000, "tools": TOOLS, "messages": _talk(60)}
    named = nca.compact(_talk(60), model="gpt-4", max_output_tokens=1_000, tools=TOOLS)
    found = nca.compact(request)
    assert (found.messages, found.tokens_before, found.notices) == (named.messages, named.tokens_before, named.notices)
    checked = nca.check_context_budget(request)
    assert checked == nca.check_context_budget(_talk(60), model="gpt-4", max_output_tokens=1_000, tools=TOOLS)
    assert checked.available_input_tokens == 7_192
    fitted = nca.ContextView().fit(request)
    alike = nca.ContextView(model="gpt-4", max_output_tokens=1_000, tools=TOOLS).fit(_talk(60))
    assert fitted.compacted
    assert (fitted.used_tokens, fitted.budget_tokens) == (alike.used_tokens, 7_192)
    assert fitted.notices == alike.notices


@pytest.mark.parametrize(("tail", "items"), [(1, [(1, 3)]), (3, [(3, 3)]), (4, [])])
def test_the_newest_messages_are_an_item_too(tail: int, items: list[tuple[int, int]]) -> None:
    found = items_of(history_of([Message("user", "x")] * 3), View((), tail))
    assert [(item["first"], item["last"]) for item in found] == items


def test_an_argument_wins_over_what_a_request_says() -> None:
    request = {"model": "gpt-4", "max_tokens": 1_000, "tools": TOOLS, "messages": TALK}
    for found in (
        nca.compact(request, model="gpt-4.1", max_output_tokens=2_000, tools=[]).budget_tokens,
        nca.ContextView(model="gpt-4.1", max_output_tokens=2_000, tools=[]).fit(request).budget_tokens,
        nca.check_context_budget(request, model="gpt-4.1", max_output_tokens=2_000, tools=[]).available_input_tokens,
    ):
        assert found == 1_047_576 - 2_000
    assert (
        nca.compact({**request, "max_tokens": -1, "tools": None}).budget_tokens
        == nca.compact(TALK, model="gpt-4").budget_tokens
    )


def test_a_view_says_which_window_it_assumes_as_compact_does() -> None:
    for model in ("", "x/unheard-of"):
        assert nca.ContextView(model=model).fit(TALK).notices == nca.compact(TALK, model=model).notices != ()
