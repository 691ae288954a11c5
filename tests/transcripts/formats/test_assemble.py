"""Records of another agent become a session that the store takes, with its compactions as views."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nca.context.history import History
from nca.context.request import repair, resolve
from nca.context.validate import validate_request
from nca.context.view import Marker, Summary, Verbatim
from nca.errors import InvalidMessages
from nca.messages import Message, ToolCall, Usage
from nca.sessions import Store
from nca.sessions.transfer import SessionCopy
from nca.transcripts.formats.assemble import Assembled, assemble
from nca.transcripts.formats.records import About, Compacted, Live, Record, Said, Unreadable
from nca.wire import message_to_dict


def said(text: str, id: str = "", role: str = "user", **more: Any) -> Said:
    return msgspec.convert({"message": {"role": role, "content": text}, "id": id, **more}, Said)


def read(*records: Record) -> Assembled:
    return assemble(records, "file", directory="/here")


def shown(copy: SessionCopy, view: int | None = None) -> list[str]:
    history = History(copy.entries, copy.view(copy.head_view if view is None else view))
    return [message.text for message in resolve(history)]


def test_a_conversation_without_compactions_is_its_log() -> None:
    found = read(said("one", at=5.0), said("two", role="assistant", at=7.0), About(title="T", directory="/d"))
    assert [entry.message.text for entry in found.copy.entries] == ["one", "two"]
    assert (found.copy.head_view, found.copy.info.name, found.copy.info.directory) == (0, "T", "/d")
    assert (found.copy.info.created_at, found.copy.info.updated_at) == (5.0, 7.0)


def test_later_facts_of_a_session_take_nothing_of_the_earlier_ones_away() -> None:
    beside = said("a subagent's", role="assistant", model="small", is_aside=True)
    one, two = About(title="T", directory="/d"), About(version="2")
    info = read(one, said("one"), said("two", role="assistant", model="large"), beside, two).copy.info
    assert (info.name, info.directory, info.model) == ("T", "/d", "large")


def test_a_message_without_a_time_came_when_the_one_before_it_came() -> None:
    found = read(*(said("x", at=at) for at in (0.0, 5.0, 0.0, 7.0, -1.0)))
    assert [entry.at for entry in found.copy.entries] == [0.0, 5.0, 5.0, 7.0, 7.0]


def test_a_compaction_hides_what_it_replaced_and_keeps_what_was_kept() -> None:
    found = read(
        said("rules", role="system"),
        *(said(text, id=text) for text in "abcd"),
        Compacted(summary="They said a to c.", kept=("d",), trigger="manual", tokens_before=90, tokens_after=9, at=3.0),
        said("e"),
    )
    [view] = found.copy.views[1:]
    assert isinstance(found.copy.summaries[0], Summary)
    assert found.copy.summaries[0].ranges == ((2, 4),)
    assert found.copy.summaries[0].prose == "They said a to c."
    assert view.items[0] == Verbatim(1, 1)
    assert view.items[2] == Verbatim(5, 5)
    texts = shown(found.copy)
    assert texts[0] == "rules"
    assert texts[2:] == ["d", "e"]
    assert "They said a to c." in texts[1]
    assert "recall expand=2-4" in texts[1]
    [record] = found.copy.compactions
    assert (record.trigger, record.tokens_before, record.tokens_after, record.at) == ("manual", 90, 9, 3.0)


def test_a_second_compaction_covers_the_first() -> None:
    found = read(said("a"), Compacted(summary="S1"), said("b"), Compacted(summary="S2"), said("c"))
    assert [summary.ranges for summary in found.copy.summaries] == [((1, 1),), ((1, 2),)]
    texts = shown(found.copy)
    assert len(texts) == 2
    assert "S2" in texts[0]
    assert "S1" not in texts[0]
    assert "S1" in shown(found.copy, 1)[0]


def test_what_is_not_live_is_aside_also_after_an_undo() -> None:
    found = read(
        said("a", "1"),
        said("dead", "2"),
        Compacted(summary="of a dead branch", id="c0"),
        said("side", "3", is_aside=True),
        said("b", "4"),
        Compacted(summary="S", id="c1", kept=("4",)),
        said("dead too", "5"),
        said("c", "6"),
        Live(frozenset({"1", "3", "4", "c1", "6"})),
    )
    texts = shown(found.copy)
    assert "S" in texts[0]
    assert texts[1:] == ["b", "c"]
    assert "dead branch" not in msgspec.json.encode(found.copy.summaries).decode()
    with Store.open(None) as store:
        info = store.add(found.copy)
        with store.open_session(info.id) as session:
            assert session.views.undo() is not None
            history = History(session.log.entries(), session.views.current())
            assert [message.text for message in resolve(history)] == ["a", "b", "c"]
            assert session.views.redo() is not None
            assert session.views.current() == found.copy.view(found.copy.head_view)


def test_messages_that_share_an_id_are_kept_together() -> None:
    found = read(said("a", "1"), said("b", "2"), said("b2", "2"), Compacted(summary="S", kept=("2",)))
    assert shown(found.copy)[1:] == ["b", "b2"]


def test_the_title_is_what_was_said_in_the_conversation_itself() -> None:
    found = read(
        said("Added to .gitignore.", is_aside=True), said("Left.", "1"), said("Fix it.", "2"), Live(frozenset("2"))
    )
    assert found.copy.info.title == "Fix it."


def test_a_subagent_alone_is_a_conversation() -> None:
    assert shown(read(said("a", is_aside=True), said("b", is_aside=True)).copy) == ["a", "b"]


def test_a_summary_of_another_session_is_a_message() -> None:
    found = read(Compacted(summary="Before: x."), said("a"))
    assert len(found.copy.views) == 1
    assert "Before: x." in shown(found.copy)[0]
    assert found.copy.entries[0].message.is_synthetic


def test_an_encrypted_summary_is_named_and_what_it_replaced_can_be_read() -> None:
    found = read(said("a"), said("b"), Compacted(summary="", is_unreadable=True), said("c"))
    assert found.unreadable_summaries == 1
    [item] = found.copy.view(1).items
    assert isinstance(item, Marker)
    assert "encrypted" in item.text
    assert "recall expand=1-2" in item.text


def test_a_cut_is_a_marker() -> None:
    found = read(said("a"), said("b", "2"), Compacted(summary="", kept=("2",)))
    assert "recall expand=1 " in shown(found.copy)[0]
    assert shown(found.copy)[1] == "b"


def test_usage_stands_at_its_request_and_gives_the_counts_of_compactions() -> None:
    def answer(prompt_tokens: int, **more: Any) -> Said:
        return said(
            "x", role="assistant", model="m", usage={"prompt_tokens": prompt_tokens, "completion_tokens": 2}, **more
        )

    found = read(said("a"), answer(100), answer(50, is_aside=True), Compacted(summary="S"), said("b"), answer(20))
    assert [(row.seq, row.view_id, row.usage) for row in found.copy.usage] == [
        (1, 0, Usage(100, 2)),
        (0, 0, Usage(50, 2)),
        (4, 2, Usage(20, 2)),
    ]
    assert [(one.tokens_before, one.tokens_after) for one in found.copy.compactions] == [(0, 0), (102, 20)]
    assert found.copy.info.model == "m"


def test_nothing_readable_is_one_line() -> None:
    with pytest.raises(InvalidMessages, match=r"^file: holds no messages that can be read \(line 3: is not JSON\)\.$"):
        read(Unreadable("line 3", "is not JSON"), Compacted(summary="S"))


def test_half_characters_are_replaced() -> None:
    broken = Said(message=Message("user", "a\ud800", extra={"k\ud800": ["\udfff"]}))
    found = read(broken)
    assert found.copy.entries[0].message.text == "a\ufffd"
    with Store.open(None) as store:
        store.add(found.copy)


IDS = st.sampled_from(["", "1", "2", "3", "4", "5"])
CALLS = st.lists(st.sampled_from(["c1", "c2"]), max_size=2, unique=True)
USAGES = st.none() | st.builds(Usage, st.integers(1, 999), st.integers(0, 99))
MESSAGES = st.one_of(
    st.builds(Message, st.sampled_from(["user", "system"]), st.sampled_from(["", "hello", "## Summary"])),
    st.builds(
        lambda text, calls: Message("assistant", text, tuple(ToolCall(id, "read", '{"a":1}') for id in calls)),
        st.sampled_from([None, "answer"]),
        CALLS,
    ),
    st.builds(lambda id: Message("tool", "result", tool_call_id=id), st.sampled_from(["c1", "c2", "c3"])),
)
RECORDS = st.one_of(
    st.builds(Said, message=MESSAGES, id=IDS, is_aside=st.booleans(), usage=USAGES, at=st.sampled_from([0.0, 9.0])),
    st.builds(
        Compacted,
        summary=st.sampled_from(["", "A summary."]),
        id=IDS,
        kept=st.lists(IDS, max_size=3).map(tuple),
        is_unreadable=st.booleans(),
    ),
    st.builds(Unreadable, st.just("line 1"), st.just("is not JSON")),
)


@given(st.lists(RECORDS, max_size=14), st.none() | st.builds(Live, st.frozensets(IDS)))
@settings(suppress_health_check=list(HealthCheck), max_examples=50, deadline=None)
def test_any_records_are_a_session_that_can_be_stored_undone_and_sent(records: list[Record], live: Live | None) -> None:
    if not any(isinstance(record, Said) for record in records):
        return
    copy = read(*records, *([live] if live else [])).copy
    given_messages = [record.message for record in records if isinstance(record, Said)]
    written = [entry.message for entry in copy.entries if not entry.message.is_synthetic]
    assert written == given_messages
    with Store.open(None) as store:
        info = store.add(copy)
        again = store.copy_of(info.id)
        assert (again.entries, again.views, again.usage) == (copy.entries, copy.views, copy.usage)
        with store.open_session(info.id) as session:
            while session.views.undo() is not None:
                pass
            assert session.views.current().aside == copy.view(copy.head_view).aside
    for view in copy.views:
        messages = repair(resolve(History(copy.entries, copy.shown_by(view))))
        for provider in ("openai", "anthropic", "gemini", "mistral"):
            if messages:
                problems = validate_request([message_to_dict(m) for m in repair(messages, provider)], provider)
                assert not problems
