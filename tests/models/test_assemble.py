from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.errors import OnlyReasoned, ProviderError
from nca.messages import Usage
from nca.models.assemble import Assembler
from nca.models.explain import BrokenStream, EmptyAnswer
from nca.models.model import Delta


def _chunk(delta: Any = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def _fed(*chunks: dict[str, Any], begins_inside: bool = False) -> tuple[Assembler, str]:
    assembler = Assembler(begins_inside=begins_inside)
    shown = [delta.text for chunk in chunks for delta in assembler.add(chunk)]
    return assembler, "".join(shown)


def test_text_reasoning_and_usage_come_together() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}
    assembler, shown = _fed(
        _chunk({"reasoning_content": "hm"}),
        _chunk({"content": "Hel"}),
        _chunk({"content": "lo\ud83d"}),
        _chunk({}, "stop"),
        {"choices": [], "usage": usage},
    )
    reply = assembler.finish()
    assert shown == reply.message.text == "Hello\ufffd"
    assert reply.message.reasoning == "hm"
    assert reply.usage == Usage(prompt_tokens=9, completion_tokens=3, cache_read_tokens=4)
    assert reply.finish_reason == "stop"


@pytest.mark.parametrize("odd", [None, "x", {}, {"processed": "x", "total": 9}, {"processed": 1, "total": -1}])
def test_what_a_server_has_read_comes_before_the_answer(odd: Any) -> None:
    reading = {"processed": 512, "total": 3_900, "cache": 0}
    assert Assembler().add(_chunk({"content": None}, prompt_progress=reading)) == [Delta("", "", 512, 3_900)]
    assert Assembler().add(_chunk({"content": None}, prompt_progress=odd)) == []


@pytest.mark.parametrize(
    ("reason", "ours"),
    [("end_turn", "stop"), ("MAX_TOKENS", "length"), ("SAFETY", "content_filter"), ("because", "because")],
)
def test_finish_reasons_in_our_words(reason: str, ours: str) -> None:
    assembler, _ = _fed(_chunk({"content": "Hi"}), _chunk({}, reason))
    assert assembler.finish().finish_reason == ours


def test_calls_end_as_tool_calls_unless_cut() -> None:
    call = {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "read", "arguments": "{}"}}]}
    assert _fed(_chunk(call), _chunk({}, "stop"))[0].finish().finish_reason == "tool_calls"
    assert _fed(_chunk(call), _chunk({}, "length"))[0].finish().finish_reason == "length"


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": -1}, {"prompt_tokens": 0}, {"prompt_tokens": 10**12}, 7])
def test_usage_that_cannot_be_believed_is_none(usage: Any) -> None:
    assembler, _ = _fed(_chunk({"content": "Hi"}, "stop", usage=usage))
    assert assembler.finish().usage is None


def test_content_in_parts_is_read() -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "Hi"}]
    reply = _fed(_chunk({"content": parts}, "stop"))[0].finish()
    assert (reply.message.text, reply.message.reasoning) == ("Hi", "hm")


def test_a_refusal_is_its_text() -> None:
    reply = _fed(_chunk({"refusal": "I cannot."}), _chunk({}, "stop"))[0].finish()
    assert (reply.message.text, reply.finish_reason) == ("I cannot.", "refusal")


@pytest.mark.parametrize(
    ("chunks", "error"),
    [
        ([_chunk({"content": "Hi"})], BrokenStream),
        ([_chunk({"content": ""}, "stop")], EmptyAnswer),
        ([_chunk({"reasoning_content": "hm"}), _chunk({}, "stop")], EmptyAnswer),
        ([_chunk({}, "length"), {"usage": {"prompt_tokens": 8, "completion_tokens": 5}}], ProviderError),
        ([_chunk({}, "length"), {"usage": {"prompt_tokens": 8, "completion_tokens": 0}}], EmptyAnswer),
        ([_chunk({}, "content_filter")], ProviderError),
        ([_chunk({}, "model_context_window_exceeded")], EmptyAnswer),
        ([_chunk({"content": '{"message": "Too many tokens, please wait."}'}, "error_finish")], EmptyAnswer),
        ([_chunk({"content": "ERROR: The prompt size exceeds the context window size."}, "stop")], EmptyAnswer),
    ],
)
def test_what_is_no_answer(chunks: list[dict[str, Any]], error: type[Exception]) -> None:
    assembler, _ = _fed(*chunks)
    with pytest.raises(error):
        assembler.finish()


@given(st.data())
@pytest.mark.parametrize(
    ("said", "text", "reasoning"),
    [
        ("<think>\nHm.\n</think>\n\nHello </think> <think>", "Hello </think> <think>", "Hm."),
        ("\n<think>a < b </thin</think>Yes.", "Yes.", "a < b </thin"),
        ("<think>\n\n</think>\n\nYes.", "Yes.", ""),
        ("A <think>tag</think> opens.", "A <think>tag</think> opens.", ""),
        ("<think is a tag.", "<think is a tag.", ""),
        (" <thi", " <thi", ""),
        (
            "<think> opens the tag, and nothing closes it. </thin",
            "<think> opens the tag, and nothing closes it. </thin",
            "",
        ),
    ],
)
def test_reasoning_between_tags_at_the_beginning_is_none_of_the_answer(
    said: str, text: str, reasoning: str, data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(said)), max_size=9)))
    pieces = [said[begin:end] for begin, end in pairwise([0, *cuts, len(said)])]
    assembler, shown = _fed(*(_chunk({"content": piece}) for piece in pieces), _chunk({}, "stop"))
    message = assembler.finish().message
    assert (message.text, message.reasoning) == (text, reasoning)
    assert shown + "".join(delta.text for delta in assembler.release()) == text


@given(st.data())
@pytest.mark.parametrize(
    ("said", "text", "reasoning"),
    [
        ("Hm.\n</think>\n\nHello </think>", "Hello </think>", "Hm."),
        ("Hm.</think>Yes.", "Yes.", "Hm."),
        ("</think>\n\nYes.", "Yes.", ""),
        ("`</think>` ends it.", "`</think>` ends it.", ""),
        ("A <think>tag</think> opens.", "A <think>tag</think> opens.", ""),
        ("It ends with </think>", "It ends with </think>", ""),
        ("No tag at all.", "No tag at all.", ""),
    ],
)
def test_reasoning_that_the_prompt_opens_ends_at_the_tag(
    said: str, text: str, reasoning: str, data: st.DataObject
) -> None:
    """Many templates put the first tag into the prompt. The endpoint's next answer is taken to begin so too."""
    cuts = sorted(data.draw(st.sets(st.integers(0, len(said)), max_size=9)))
    pieces = [_chunk({"content": said[begin:end]}) for begin, end in pairwise([0, *cuts, len(said)])]
    first, shown = _fed(*pieces, _chunk({}, "stop"))
    message = first.finish().message
    assert (message.text, message.reasoning, first.begins_inside) == (text, reasoning, text != said)
    assert shown + "".join(delta.text for delta in first.release()) == said
    if text != said:
        later, shown = _fed(*pieces, _chunk({}, "stop"), begins_inside=True)
        message = later.finish().message
        assert (message.text, message.reasoning, later.begins_inside) == (text, reasoning, True)
        assert shown + "".join(delta.text for delta in later.release()) == text


def test_an_endpoint_that_stops_to_reason_is_taken_as_it_answers() -> None:
    call = {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "read", "arguments": "{}"}}]}
    for more, text in (([], "Plain."), ([_chunk(call)], "Plain.")):
        assembler, shown = _fed(_chunk({"content": "Plain."}), *more, _chunk({}, "stop"), begins_inside=True)
        assert (assembler.finish().message.text, assembler.begins_inside) == (text, False)
        assert shown + "".join(delta.text for delta in assembler.release()) == text
    assembler, _ = _fed(_chunk({"content": "Hm.</think>"}), _chunk(call), _chunk({}, "stop"))
    message = assembler.finish().message
    assert (message.text, message.reasoning, assembler.begins_inside) == ("", "Hm.", True)
    with pytest.raises(OnlyReasoned):
        _fed(_chunk({"content": "Hm."}), _chunk({}, "length"), begins_inside=True)[0].finish()


def test_reasoning_between_tags_that_a_limit_or_a_call_ended_is_no_answer() -> None:
    call = {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "read", "arguments": "{}"}}]}
    message = _fed(_chunk({"content": "<think>Hm."}), _chunk(call), _chunk({}, "stop"))[0].finish().message
    assert (message.text, message.reasoning) == ("", "Hm.")
    with pytest.raises(OnlyReasoned):
        _fed(_chunk({"content": "<think>Hm."}), _chunk({}, "length"))[0].finish()
    with pytest.raises(EmptyAnswer):
        _fed(_chunk({"content": "<think>Hm.</think>"}), _chunk({}, "stop"))[0].finish()


def test_an_answer_that_begins_like_an_error_is_held_until_it_is_known() -> None:
    text = '{"message": "the user asked for JSON"}'
    assembler, shown = _fed(_chunk({"content": text}), _chunk({}, "stop"))
    assert shown == ""
    assert assembler.finish().message.text == text
    assert "".join(delta.text for delta in assembler.release()) == text
    _, shown = _fed(_chunk({"content": "{" + "x" * 400}))
    assert len(shown) == 401


@pytest.mark.parametrize("chunk", [{}, {"choices": None}, {"choices": []}, _chunk(None), {"choices": [None]}])
def test_empty_chunks_are_left_out(chunk: dict[str, Any]) -> None:
    assembler, _ = _fed(chunk, _chunk({"content": "Hi"}, "stop"))
    assert assembler.finish().message.text == "Hi"


def test_a_later_count_of_zero_does_not_replace_a_count() -> None:
    assembler = Assembler()
    assembler.add_usage({"prompt_tokens": 10, "completion_tokens": 3})
    assembler.add_usage({"prompt_tokens": 0, "completion_tokens": 5})
    assert assembler.usage == Usage(10, 5)
