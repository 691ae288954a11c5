"""Tool calls in every shape in which providers send them."""

from __future__ import annotations

from nca.testing.faults import FAULTS, Fault, once, tool_calls
from nca.testing.faults import call_piece as piece
from nca.testing.http_exchange import Exchange
from tests.testing.cases.case import Case, Row

A, B = '{"path": "a"}', '{"path": "b"}'
TEXT_A, TEXT_B = "the text of a", "the text of b"
"""What must stand in the files `a` and `b` where the tools work."""


def _old_form(exchange: Exchange) -> None:
    """OpenAI's first form of a call."""
    if exchange.attempt > 1:
        return exchange.reply()
    exchange.begin()
    exchange.delta({"function_call": {"name": "read_file", "arguments": A}})
    exchange.finish("function_call")
    return exchange.done()


def _same_id_again(exchange: Exchange) -> None:
    """A second step whose call has the id of the first."""
    if exchange.attempt > 2:
        return exchange.reply()
    exchange.begin()
    exchange.delta({"tool_calls": [piece((A, B)[exchange.attempt - 1])]})
    exchange.finish("tool_calls")
    return exchange.done()


def _broken_off(exchange: Exchange) -> None:
    """The connection ends in the middle of a call's arguments."""
    exchange.begin()
    exchange.delta({"tool_calls": [piece('{"path": "a')]})
    exchange.cut()


def _case(about: str, run: Fault, *results: str, says: str = "") -> Case:
    """The calls run, their results (text of each) go back, and the answer comes."""
    tools: list[Row] = ["tool"] * len(results)
    rows: tuple[Row, ...] = ("user", "assistant", *tools, "assistant")
    return Case(about, run, "answer", says, requests=2, rows=rows, results=results)


_FIFTY = [piece(f'{{"path": "a", "offset": {n + 1}}}', index=n, call_id=f"call_{n}") for n in range(50)]

CASES = {
    "broken-arguments": _case("arguments that are not JSON", FAULTS["broken-arguments"], "invalid JSON"),
    "empty-arguments": _case("arguments that are empty", tool_calls(piece("")), "path"),
    "null-arguments": _case("arguments: null", tool_calls(piece(None)), "path"),
    "object-arguments": _case("arguments as an object", tool_calls(piece({"path": "a"})), TEXT_A),
    "list-arguments": _case("arguments as a list", tool_calls(piece('["a"]')), "must be a JSON object"),
    "double-encoded": _case("arguments as JSON in JSON", tool_calls(piece('"{\\"path\\": \\"a\\"}"')), TEXT_A),
    "no-ids": _case("no id and an empty one", FAULTS["no-ids"], TEXT_A, TEXT_B),
    "same-ids": _case("two calls with one id", tool_calls(piece(A), piece(B, index=1)), TEXT_A, TEXT_B),
    "same-index": _case("two calls at one index", tool_calls(piece(A), piece(B, call_id="call_2")), TEXT_A, TEXT_B),
    "no-index": _case(
        "no index", tool_calls(piece(A, index=None), piece(B, index=None, call_id="call_2")), TEXT_A, TEXT_B
    ),
    "long-id": _case("an id of 300 characters", tool_calls(piece(A, call_id="x" * 300)), TEXT_A),
    "odd-id": _case("an id of other characters", tool_calls(piece(A, call_id="call:1/ü")), TEXT_A),
    "same-id-again": Case(
        "an id of an earlier step",
        _same_id_again,
        "answer",
        requests=3,
        results=(TEXT_A, TEXT_B),
        rows=("user", "assistant", "tool", "assistant", "tool", "assistant"),
    ),
    "unknown-tool": _case("a tool that there is not", tool_calls(piece(A, name="fly")), "there is no tool"),
    "null-name": _case("name: null", tool_calls(piece(A, name=None)), "there is no tool"),
    "spaced-name": _case("a name with spaces", tool_calls(piece(A, name="read file!")), "there is no tool"),
    "cut-call": _case("a call cut by length", FAULTS["cut-call"], "not run", says="cut"),
    "call-with-text": _case("text and a call", tool_calls(piece(A), text="I look."), TEXT_A),
    "call-and-stop": _case("a call that ends with stop", tool_calls(piece(A), reason="stop"), TEXT_A),
    "old-form": _case("function_call", _old_form, TEXT_A),
    "ten-times": _case(
        "one call ten times", tool_calls(*(piece(A, index=n, call_id=f"c{n}") for n in range(10))), TEXT_A
    ),
    "fifty-calls": _case("fifty calls at once", tool_calls(*_FIFTY), *("",) * 50),
    "call-broken-off": Case("the connection is cut in a call", once(_broken_off), "answer", "was lost", requests=2),
}
