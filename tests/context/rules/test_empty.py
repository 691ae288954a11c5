"""No message is empty."""

from __future__ import annotations

from hypothesis import given

from nca.context.rules.empty import NO_OUTPUT, NoEmptyMessages
from nca.messages import MediaPart, Message, TextPart
from tests.context.logs import logs
from tests.context.samples import assistant, call, calling, result, some, user

RULE = NoEmptyMessages()
IMAGE = MediaPart("image", {"type": "image_url"})


def test_empty_talk_goes_and_an_empty_result_says_so() -> None:
    log = [user(), assistant("  "), user(""), calling(call("a"), text=" \n"), result("a", ""), assistant()]
    assert RULE.repair(log) == [user(), calling(call("a")), result("a", NO_OUTPUT), assistant()]


def test_empty_parts_go_and_media_stay() -> None:
    log = [Message("user", (TextPart(" "), IMAGE)), Message("user", (TextPart(""),)), Message("user", ())]
    assert RULE.repair(log) == [Message("user", (IMAGE,))]


def test_what_says_something_stays() -> None:
    fine = [user(), calling(call("a")), result("a"), Message("user", (TextPart("x"), IMAGE))]
    assert RULE.repair(fine) is fine
    assert list(RULE.spans(fine)) == []


@some
@given(logs())
def test_nothing_empty_is_left_and_no_call_or_result_is_lost(messages: list[Message]) -> None:
    repaired = RULE.repair(messages)
    assert all(message.text.strip() or message.tool_calls or message.attachments for message in repaired)
    for kept in (repaired, messages):
        assert sum(len(message.tool_calls) for message in kept) == sum(len(m.tool_calls) for m in messages)
    assert sum(m.role == "tool" for m in repaired) == sum(m.role == "tool" for m in messages)
    assert RULE.repair(repaired) == repaired
