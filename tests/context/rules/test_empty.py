"""No message is empty."""

from __future__ import annotations

import msgspec
from hypothesis import given

from nca.context.rules.messages import NO_OUTPUT, without_empty, without_nothing
from nca.messages import MediaPart, Message, TextPart
from tests.context.logs import logs
from tests.context.samples import assistant, call, calling, result, some, user

IMAGE = MediaPart("image", {"type": "image_url"})


def test_empty_talk_goes_and_an_empty_result_says_so() -> None:
    log = [user(), assistant("  "), user(""), calling(call("a"), text=" \n"), result("a", ""), assistant()]
    assert without_empty(log) == [user(), calling(call("a")), result("a", NO_OUTPUT), assistant()]


def test_empty_parts_go_and_media_stay() -> None:
    log = [Message("user", (TextPart(" "), IMAGE)), Message("user", (TextPart(""),)), Message("user", ())]
    assert without_empty(log) == [Message("user", (IMAGE,))]


def test_no_list_of_parts_is_empty() -> None:
    log = [user(""), Message("user", ()), calling(call("a")), msgspec.structs.replace(result("a"), content=())]
    log.append(msgspec.structs.replace(calling(call("b")), content=()))
    assert without_nothing(log) == [user(""), calling(call("a")), result("a", NO_OUTPUT), calling(call("b"))]
    assert without_nothing([user(), Message("assistant", None)]) == [user()]


def test_what_says_something_stays() -> None:
    fine = [user(), calling(call("a")), result("a"), Message("user", (TextPart("x"), IMAGE))]
    assert without_empty(fine) is fine


@some
@given(logs())
def test_nothing_empty_is_left_and_no_call_or_result_is_lost(messages: list[Message]) -> None:
    repaired = without_empty(messages)
    assert all(message.text.strip() or message.tool_calls or message.attachments for message in repaired)
    for kept in (repaired, messages):
        assert sum(len(message.tool_calls) for message in kept) == sum(len(m.tool_calls) for m in messages)
    assert sum(m.role == "tool" for m in repaired) == sum(m.role == "tool" for m in messages)
    assert without_empty(repaired) == repaired
