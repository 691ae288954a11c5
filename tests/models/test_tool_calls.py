"""Tool calls in every shape in which providers send them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.messages import ToolCall
from nca.models.model import CallSoFar
from nca.models.tool_calls import ToolCallAssembler, whole_arguments

A, B = '{"path": "a"}', '{"path": "b"}'


def _piece(arguments: Any = None, *, name: str | None = None, **more: Any) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": arguments}, **more}


def _assembled(*pieces: Any, known: set[str] | None = None) -> list[tuple[str, str, str]]:
    assembler = ToolCallAssembler()
    for piece in pieces:
        assembler.add(piece)
    return [(call.id, call.name, call.arguments) for call in assembler.calls(known or set())]


def test_pieces_of_parallel_calls_go_together() -> None:
    assert _assembled(
        [_piece("", name="read", id="c1", index=0)],
        [_piece('{"path"', index=0), _piece("", name="grep", id="c2", index=1)],
        [_piece(': "a"}', index=0), _piece(B, index=1)],
    ) == [("c1", "read", A), ("c2", "grep", B)]


@pytest.mark.parametrize(
    "pieces",
    [
        [_piece(A, name="read", id="c1"), _piece(B, name="read", id="c2")],
        [_piece(A, name="read", id="c1", index=0), _piece(B, name="read", id="c2", index=0)],
        [_piece(A, name="read", id="c1", index=0), _piece(B, name="read", id="c1", index=1)],
        [_piece(A, name="read", id="c1", index=0), _piece(B, name="read", id="c1", index=0)],
        [_piece(A, name="read", index=0), _piece(B, name="read", index=1)],
        [_piece(A, name="read", id=""), _piece(B, name="read", id=None)],
        [_piece(A + B, name="read", id="c1", index=0)],
    ],
    ids=["no index", "same index", "same id", "same both", "no ids", "nothing", "run together"],
)
def test_two_calls_stay_two(pieces: list[dict[str, Any]]) -> None:
    calls = _assembled(*pieces)
    assert [arguments for _, _, arguments in calls] == [A, B]
    assert len({call_id for call_id, _, _ in calls}) == 2
    assert all(call_id for call_id, _, _ in calls)


def test_a_name_and_id_repeated_with_every_piece_is_one_call() -> None:
    pieces = [_piece(text, name="read", id="c1", index=0) for text in ("", '{"pa', 'th": ', '"a"}')]
    assert _assembled(*pieces) == [("c1", "read", A)]
    pieces = [_piece("", name=name, id="c1", index=0) for name in ("re", "ad", None)]
    assert _assembled(*pieces, _piece(A, index=0)) == [("c1", "read", A)], "a name may come in pieces too"


@pytest.mark.parametrize(
    ("arguments", "whole"),
    [
        (None, "{}"),
        ("", "{}"),
        ("null", "{}"),
        ({"path": "a"}, A),
        ('"{\\"path\\": \\"a\\"}"', A),
        ('{"path": "a', '{"path": "a'),
        ("[1, 2]", "[1, 2]"),
    ],
)
def test_arguments_become_text(arguments: Any, whole: str) -> None:
    assert _assembled(_piece(arguments, name="read", id="c1", index=0)) == [("c1", "read", whole)]


def test_a_repeated_call_is_one() -> None:
    pieces = [_piece(text, name="read", id=f"c{n}", index=n) for n, text in enumerate([A, '{"path":"a"}', A, B])]
    assert _assembled(*pieces) == [("c0", "read", A), ("c3", "read", B)]


def test_ids_that_cannot_be_sent_back_or_are_taken_are_replaced() -> None:
    (first, _, _), (second, _, _) = _assembled(
        _piece(A, name="read", id="x" * 300, index=0), _piece(B, name="read", id="old", index=1), known={"old"}
    )
    assert first.startswith("call_")
    assert second.startswith("call_")


@given(st.lists(st.sampled_from(["a", "\n", "\\", "\\n", '"', "漢"]), max_size=40), st.integers(1, 7))
def test_what_has_come_of_a_call_is_counted_wherever_its_pieces_end(text: list[str], size: int) -> None:
    arguments = json.dumps({"path": "a", "content": "".join(text)})
    assembler = ToolCallAssembler()
    (said,) = assembler.add(_piece("", name="write_file", id="c1"))
    assert said == CallSoFar("write_file", "", "", 0, 0)
    for start in range(0, len(arguments), size):
        (said,) = assembler.add(_piece(arguments[start : start + size]))
    assert (said.chars, said.lines) == (len(arguments), "".join(text).count("\n"))
    assert whole_arguments(said.begin) == json.loads(arguments)


@pytest.mark.parametrize(
    ("begin", "known"),
    [
        ("", {}),
        ("{", {}),
        ('{"path": "a', {}),
        ('{"path": "a"', {}),
        ('{ "path" : "a" , "content": "x', {"path": "a"}),
        ('{"n": 12', {}),
        ('{"n": 12, ', {"n": 12}),
        ('{"n": {"m": [1, 2]}, "o": [', {"n": {"m": [1, 2]}}),
        ('[1, "a"', {}),
        ('{"a": 1}, {"b": 2}', {"a": 1}),
        ("not { json", {}),
        ('{"a": ' + "[" * 2_000, {}),
    ],
)
def test_arguments_that_are_whole_in_the_beginning_of_a_call(begin: str, known: dict[str, Any]) -> None:
    assert whole_arguments(begin) == known


GIVEN = {"google": {"thought_signature": "Zm9v" * 40}}


def test_a_signature_is_kept_for_the_model_that_gave_it_and_makes_no_id_long() -> None:
    def called(*pieces: Any) -> ToolCall:
        assembler = ToolCallAssembler()
        for piece in pieces:
            assembler.add(piece)
        (call,) = assembler.calls(model="gemini/x")
        return call

    begin, more = _piece("", name="read", id="c1", index=0), _piece(A, index=0)
    assert called({**begin, "extra_content": GIVEN, "status": "odd"}, more).extra == {"extra_content": GIVEN}
    assert called(begin, {**more, "extra_content": GIVEN}).extra == {"extra_content": GIVEN}
    inside = {**begin, "function": {"name": "read", "arguments": A, "provider_specific_fields": GIVEN}}
    assert called(inside).extra == {"function": {"provider_specific_fields": GIVEN}}
    behind = called(_piece(A, name="read", id="call_1__thought__Zm9v"))
    assert behind == ToolCall(
        "call_1", "read", A, {"provider_specific_fields": {"thought_signature": "Zm9v"}}, "gemini/x"
    )
    assert called(begin, more) == ToolCall("c1", "read", A)
    for unusable in (object(), "\ud800", None, []):
        json.dumps(called({**begin, "extra_content": unusable}, more).extra).encode("utf-8")


@pytest.mark.parametrize(
    ("name", "clean"),
    [(" read_file ", "read_file"), ("functions.read", "read"), ("my tool", "my_tool"), (None, "unknown_tool")],
)
def test_names_are_made_sendable(name: str | None, clean: str) -> None:
    assert _assembled(_piece(A, name=name, id="c1"))[0][1] == clean


def test_a_legacy_function_call_is_read() -> None:
    assert [call[1:] for call in _assembled({"name": "read", "arguments": A})] == [("read", A)]


_anything = st.none() | st.text(max_size=5) | st.integers(0, 2) | st.just(A)


@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "index": _anything,
                "id": _anything,
                "function": _anything | st.fixed_dictionaries({}, optional={"name": _anything, "arguments": _anything}),
            },
        )
        | _anything,
        max_size=6,
    )
)
def test_whatever_comes_the_calls_can_be_sent(pieces: list[Any]) -> None:
    calls = _assembled(*pieces)
    ids = [call_id for call_id, _, _ in calls]
    assert len(set(ids)) == len(ids)
    assert all(1 <= len(name) <= 64 for _, name, _ in calls)
