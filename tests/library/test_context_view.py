"""`nca.ContextView` over a conversation that another program keeps."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nca
from tests.context.samples import PROSE
from tests.shapes.conversions import to_anthropic, to_responses

WINDOW = 6_000
Rows = list[dict[str, Any]]


def turn(number: int, words: int, lines: int) -> Rows:
    """A question, a call with its result, an answer."""
    function = {"name": "grep", "arguments": json.dumps({"pattern": f"p{number}"})}
    return [
        {"role": "user", "content": f"Question {number}. " + "why " * words},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": f"c{number}", "content": f"zebra{number}: " + "a line of output\n" * lines},
        {"role": "assistant", "content": f"Answer {number}. " + "because " * words},
    ]


def talk(turns: int) -> Rows:
    return [row for number in range(turns) for row in turn(number, 20, 60)]


SIZES = st.lists(st.tuples(st.integers(0, 120), st.integers(0, 90)), min_size=1, max_size=25)


@settings(max_examples=25)
@given(SIZES)
def test_every_request_fits_and_its_beginning_stays_until_the_next_compaction(sizes: list[tuple[int, int]]) -> None:
    view, log, before = nca.ContextView(context_window=WINDOW), Rows(), Rows()
    again = nca.ContextView(context_window=WINDOW)
    for number, (words, lines) in enumerate(sizes):
        log += turn(number, words, lines)
        fitted = view.fit(log)
        assert fitted.used_tokens <= fitted.budget_tokens
        assert [nca.validate_request(fitted.messages, name) for name in ("openai", "anthropic")] == [[], []]
        if not fitted.compacted:
            assert fitted.messages[: len(before)] == before
        before = fitted.messages
        again = nca.ContextView(context_window=WINDOW, state=json.loads(json.dumps(again.state)))
        assert again.fit(log) == fitted, "another process goes on alike"
        own = fitted.shown(
            log, lambda row, text: {**row, "content": text}, lambda text: {"role": "user", "content": text}
        )
        assert [row["content"] for row in own] == [row["content"] for row in fitted.messages]
        assert log[-3:] == turn(number, words, lines)[-3:], "what is handed in is not changed"


def test_what_was_compacted_is_recalled() -> None:
    view, log = nca.ContextView(context_window=WINDOW), Rows()
    for number in range(30):
        log += turn(number, 20, 60)
        view.fit(log)
        assert f"zebra{number}: a line" in view.recall(expand=str(4 * number + 3))
    assert "[3]" in view.recall(query="zebra0")
    assert "the arguments are" in view.recall(wrong=1)
    assert "nothing has the id" in view.recall(expand="4000")
    assert "nothing has the id" in view.recall(expand="0")
    assert view.recall_tool["function"]["name"] == "recall"


def in_another_form(row: dict[str, Any]) -> dict[str, Any]:
    """The same message, as a client writes it that gives every field, or text as parts."""
    if row.get("tool_calls"):
        [call] = row["tool_calls"]
        arguments = json.dumps(dict(reversed(json.loads(call["function"]["arguments"]).items())), indent=1)
        return {
            **row,
            "refusal": None,
            "tool_calls": [{**call, "function": {**call["function"], "arguments": arguments}}],
        }
    content = [{"type": "text", "text": row["content"]}] if row["role"] == "user" else row["content"]
    return {**row, "content": content, **({"annotations": []} if row["role"] == "assistant" else {})}


def test_a_view_goes_on_whatever_form_the_same_messages_have() -> None:
    log = talk(60)
    for row in log[1::4]:
        row["tool_calls"][0]["function"]["arguments"] = '{"pattern": "p", "path": "a.py"}'
    before = nca.ContextView(context_window=WINDOW)
    first = before.fit(log)
    assert first.compacted
    again = nca.ContextView(context_window=WINDOW, state=before.state).fit([in_another_form(row) for row in log])
    assert (again.compacted, again.items) == (False, first.items)


@pytest.mark.parametrize("as_shape", [lambda rows: rows, to_anthropic, to_responses])
def test_recall_never_finds_its_own_calls_and_results(as_shape: Callable[[Rows], Any]) -> None:
    """A chat message of a result need not name the tool: its call does."""
    asked = {"query": "zebra3 walrus"}
    with nca.Store.open(None) as store:

        def view() -> nca.ContextView:
            return nca.ContextView(context_window=WINDOW, store=store, key="own", keeps_messages=True)

        log = talk(30)
        for number in range(4):
            log += turn(100 + number, 20, 0)
            log[-3]["tool_calls"][0]["function"] = {"name": "recall", "arguments": json.dumps(asked)}
            going_on = view()
            going_on.fit(as_shape(log[:-2]))
            log[-2]["content"] = going_on.recall(**asked)
            assert "zebra3: a line" in log[-2]["content"]
            fitted = going_on.fit(as_shape(log))
            assert not any("name" in row for row in fitted.messages if row.get("role") == "tool")
            for told in (going_on.recall(**asked), view().recall(**asked)):
                assert told.count("zebra3") == 1


def test_a_search_of_all_finds_what_one_of_the_session_finds_whichever_comes_first() -> None:
    view, log = nca.ContextView(context_window=WINDOW), Rows()
    for number in range(0, 30, 3):
        log += [row for count in range(3) for row in turn(number + count, 20, 60)]
        view.fit(log)
        for query in (f"zebra{number}", "nowhere zebra1"):
            of_all, of_session = view.recall(query=query, scope="all"), view.recall(query=query)
            assert of_all.partition("Other words")[0] == of_session.partition("Other words")[0]
    assert "[3]" in view.recall(query="zebra0", scope="all")


def test_another_conversation_is_refused_and_changes_nothing() -> None:
    view, log = nca.ContextView(context_window=WINDOW), talk(20)
    before = view.fit(log)
    state, other = view.state, [{"role": "user", "content": "My word is walrus."}, *talk(20)]
    for messages in (other, other[:1], log[:-1], log[1:], [*log[:-1], other[0]]):
        with pytest.raises(nca.ViewInUse, match=r"^Message \d+ (has changed|is missing) since .* Use one ContextView"):
            view.fit(messages)
        assert view.state == state
        assert "walrus" not in view.recall(expand="1") + view.recall(query="walrus")
    assert view.fit(log).messages == before.messages


def test_calls_tell_conversations_apart_and_their_form_does_not() -> None:
    def said(arguments: str, content: str | None) -> Rows:
        function = {"name": "mail", "arguments": arguments}
        calls = [{"id": "c1", "type": "function", "function": function}]
        return [
            {"role": "user", "content": "Send it."},
            {"role": "assistant", "content": content, "tool_calls": calls},
            {"role": "tool", "tool_call_id": "c1", "content": "Sent."},
        ]

    view = nca.ContextView(context_window=WINDOW)
    view.fit(said('{"to":"ada","text":"Hi"}', None))
    view.fit(said('{"text": "Hi", "to": "ada"}', ""))
    with pytest.raises(nca.ViewInUse, match=r"^Message 2 has changed"):
        view.fit(said('{"to":"bob","text":"Hi"}', None))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from(["Part", "call", "think", "user"]), min_size=1, max_size=9), st.data())
def test_a_list_of_items_may_end_anywhere_between_two_requests(kinds: list[str], data: st.DataObject) -> None:
    """The items of one answer are one message, which grows with the list; what was added can be recalled."""
    items: list[dict[str, Any]] = [{"role": "user", "content": "Write a story."}]
    for number, kind in enumerate(kinds):
        call = {"call_id": f"c{number}", "type": "function_call"}
        added: dict[str, list[dict[str, Any]]] = {
            "Part": [
                {"role": "assistant", "content": [{"type": "output_text", "text": f"Part {number}: word{number}."}]}
            ],
            "call": [
                call | {"name": "f", "arguments": "{}"},
                call | {"type": "function_call_output", "output": "Done."},
            ],
            "think": [{"type": "reasoning", "id": f"rs{number}", "summary": []}],
            "user": [{"role": "user", "content": f"Go on, word{number}."}],
        }
        items += added[kind]
    view = nca.ContextView(context_window=WINDOW)
    ends = sorted(data.draw(st.sets(st.integers(1, len(items)), min_size=1)) | {len(items)})
    for end in ends:
        fitted = view.fit(items[:end])
        view.recall(query="word0", scope="all")
    assert nca.ContextView(context_window=WINDOW).fit(items).messages == fitted.messages
    assert view.recall(expand=f"1-{len(fitted.positions)}").count("word") == str(items).count("word")
    with pytest.raises(nca.ViewInUse, match=r"has changed"):
        view.fit([{"role": "user", "content": "Write a story, please."}, *items[1:]])


def test_a_new_view_goes_on_after_older_messages_were_changed() -> None:
    view, log = nca.ContextView(context_window=WINDOW), talk(20)
    assert view.fit(log).compacted
    kept = nca.ContextView(context_window=WINDOW, state=view.state)
    assert not kept.fit([*log[:-1], {"role": "user", "content": "Taken back."}]).compacted
    log[0] = {"role": "user", "content": "Another question."}
    anew = nca.ContextView(context_window=WINDOW, state=view.state)
    assert anew.fit(log).compacted, "the view of the old messages says nothing about these"
    assert "Another question." in anew.recall(expand="1")


def test_a_request_that_did_not_fit_may_be_shortened() -> None:
    view, log = nca.ContextView(context_window=WINDOW, settings={"context.auto": "off"}), talk(1)
    view.fit(log)
    with pytest.raises(nca.ContextDoesNotFit):
        view.fit([*log, {"role": "user", "content": "why " * 50_000}])
    assert view.fit([*log, {"role": "user", "content": "Why?"}]).messages[-1]["content"] == "Why?"


def test_a_second_thread_is_refused_while_the_first_is_fitting_and_may_recall() -> None:
    fitting, go_on = threading.Event(), threading.Event()

    def summarize(_: object) -> str:
        fitting.set()
        assert go_on.wait(timeout=60)
        return "They asked questions."

    view, log = nca.ContextView(context_window=WINDOW, summarizer=summarize), talk(40)
    view.fit(log[:4])
    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(view.fit, log)
        assert fitting.wait(timeout=60)
        with pytest.raises(nca.ViewInUse, match=r"^This view is fitting another request\. Use one"):
            view.fit(log)
        found = [pool.submit(view.recall, expand=str(number % 4 + 1)) for number in range(8)]
        assert all("0" in one.result(timeout=60) for one in found)
        go_on.set()
        assert first.result(timeout=60).compacted
    assert not view.fit(log).compacted


TALKS = st.lists(st.lists(st.sampled_from(["Hi", "Hello", "zebra"]), max_size=5), min_size=2, max_size=2)


@settings(max_examples=50)
@given(TALKS, st.lists(st.integers(0, 1), max_size=12))
def test_whatever_is_fitted_in_which_order_a_view_has_one_conversation(
    talks: list[list[str]], order: list[int]
) -> None:
    view, at, own = nca.ContextView(context_window=WINDOW), [0, 0], list[str]()
    for who in order:
        at[who] = min(at[who] + 1, len(talks[who]))
        handed = talks[who][: at[who]]
        if not handed:
            continue
        try:
            view.fit([{"role": "user", "content": text} for text in handed])
        except nca.ViewInUse:
            assert handed[: len(own)] != own
        else:
            assert handed[: len(own)] == own
            own = handed
        recalled = view.recall(expand=f"1-{max(1, len(own))}")
        assert all(text in recalled for text in own)


def test_the_shape_of_the_responses_api_and_of_anthropic_come_back() -> None:
    items = [{"type": "message", "role": "user", "content": f"Question {n} " + "why " * 200} for n in range(40)]
    fitted = nca.ContextView(context_window=WINDOW).fit({"input": items})
    assert fitted.compacted
    assert fitted.request == {"input": fitted.messages}
    messages = [
        {"role": ("user", "assistant")[n % 2], "content": [{"type": "text", "text": "why " * 300}]} for n in range(41)
    ]
    fitted = nca.ContextView(context_window=WINDOW).fit({"system": "A test.", "messages": messages})
    assert fitted.request is not None
    assert fitted.request["system"] == "A test."
    assert nca.validate_request(fitted.messages, "anthropic") == []


@pytest.mark.parametrize("model", ["", "openai/gpt-4.1", "mistral/mistral-large-latest"])
def test_a_request_of_anthropic_shape_is_measured_by_anthropics_rules(model: str) -> None:
    unanswered = {"type": "tool_use", "id": "t1", "name": "x", "input": {}}
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": [{"type": "text", "text": "b"}, unanswered]},
        {"role": "user", "content": "next " * 50},
    ]
    request = {"messages": messages, "system": "s"}
    fitted = nca.ContextView(model=model, context_window=WINDOW).fit(request)
    assert fitted.used_tokens == nca.compact(request, model=model, context_window=WINDOW).tokens_before


def test_what_cannot_fit_is_refused_with_its_size() -> None:
    with pytest.raises(nca.ContextDoesNotFit) as refused:
        nca.ContextView(context_window=WINDOW, settings={"context.auto": "off"}).fit(talk(40))
    assert refused.value.used_tokens > refused.value.budget_tokens > 0


@pytest.mark.parametrize(
    "state", [[], {"x": 1}, {"view": 3}, {"policy": {"unhelpful": "many"}}, {"view": {"items": [{"type": "?"}]}}]
)
def test_a_state_of_something_else_is_refused(state: Any) -> None:
    with pytest.raises(nca.UsageError, match=r"^state: "):
        nca.ContextView(state=state)


ITEMS = st.fixed_dictionaries({"type": st.just("verbatim"), "first": st.integers(-2, 9), "last": st.integers(-2, 9)})
ITEMS |= st.fixed_dictionaries(
    {"type": st.just("stub"), "seq": st.integers(-2, 9), "text": st.just("[cleared]"), "stage": st.just("prune")}
)
SPANS = st.lists(st.tuples(st.integers(-2, 9), st.integers(-2, 9)), max_size=2)
ITEMS |= st.fixed_dictionaries(
    {"type": st.sampled_from(["summary", "marker"]), "id": st.just("a"), "ranges": SPANS, "text": st.just("[gone]")}
)
VIEWS = st.fixed_dictionaries({"items": st.lists(ITEMS, max_size=3), "tail": st.integers(-2, 9), "aside": SPANS})


@settings(max_examples=300)
@given(VIEWS)
def test_a_state_that_was_changed_is_refused_or_begins_anew(view: dict[str, Any]) -> None:
    log = talk(1)
    with suppress(nca.UsageError):
        assert nca.ContextView(context_window=WINDOW, state={"view": view}).fit(log).messages == log


def test_half_a_surrogate_pair_reaches_no_model() -> None:
    asked: list[str] = []

    def summarize(messages: Rows) -> str:
        asked.append(json.dumps(messages, ensure_ascii=False))
        return PROSE

    nca.compact(talk(60), context_window=16_000, summarizer=summarize, focus="\ud83e half of a crab")
    assert all("\ufffd half of a crab" in text for text in asked)
    assert asked
    assert asked[0].encode()


def test_system_prompt_and_tools_count() -> None:
    bare = nca.ContextView(context_window=WINDOW).fit(talk(1))
    with_prompt = nca.ContextView(context_window=WINDOW, system_prompt="Be brief. " * 50).fit(talk(1))
    with_tools = nca.ContextView(context_window=WINDOW, tools=[nca.ContextView.recall_tool]).fit(talk(1))
    assert bare.used_tokens < with_prompt.used_tokens
    assert bare.used_tokens < with_tools.used_tokens


def test_before_the_first_request_a_view_says_that_nothing_can_be_recalled() -> None:
    with nca.Store.open(None) as store:
        for view in (
            nca.ContextView(context_window=4_000),
            nca.ContextView(context_window=4_000, store=store, key="k"),
        ):
            assert "this view has fitted no request" in view.recall(query="anything")
