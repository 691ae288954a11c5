"""Tool calls in every shape that providers give them."""

from __future__ import annotations

from nca.testing.faults.fault import Fault, Row, Run
from nca.testing.http_exchange import Exchange

A, B = '{"path": "a"}', '{"path": "b"}'
TEXT_A, TEXT_B = "the text of a", "the text of b"
"""What must stand in the files `a` and `b` where the tools work."""


def piece(
    arguments: object, *, index: int | None = 0, call_id: str | None = "call_1", name: object = "read_file"
) -> dict[str, object]:
    """One piece of a call as a stream has it; None leaves a part out."""
    made: dict[str, object] = {"type": "function", "function": {"name": name, "arguments": arguments}}
    made |= {} if index is None else {"index": index}
    return made | ({} if call_id is None else {"id": call_id})


def called(*pieces: dict[str, object], finish: str = "tool_calls", text: str = "") -> Run:
    """Calls at the first request, the answer at the next."""

    def run(exchange: Exchange) -> None:
        if exchange.attempt > 1:
            return exchange.reply()
        exchange.begin()
        exchange.text(text)
        for one in pieces:
            exchange.delta({"tool_calls": [one]})
        exchange.finish(finish)
        return exchange.done()

    return run


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
    if exchange.attempt > 1:
        return exchange.reply()
    exchange.begin()
    exchange.delta({"tool_calls": [piece('{"path": "a')]})
    return exchange.cut()


def _fault(about: str, run: Run, *results: str, says: str = "") -> Fault:
    """The calls run, their results (text of each) go back, and the answer comes."""
    tools: list[Row] = ["tool"] * len(results)
    rows: tuple[Row, ...] = ("user", "assistant", *tools, "assistant")
    return Fault(about, run, "answer", says, requests=2, rows=rows, results=results)


_FIFTY = [piece(f'{{"path": "a", "offset": {n + 1}}}', index=n, call_id=f"call_{n}") for n in range(50)]

FAULTS = {
    "broken-arguments": _fault("arguments that are not JSON", called(piece('{"path": "a')), "invalid JSON"),
    "empty-arguments": _fault("arguments that are empty", called(piece("")), "path"),
    "null-arguments": _fault("arguments: null", called(piece(None)), "path"),
    "object-arguments": _fault("arguments as an object", called(piece({"path": "a"})), TEXT_A),
    "list-arguments": _fault("arguments as a list", called(piece('["a"]')), "must be a JSON object"),
    "double-encoded": _fault("arguments as JSON in JSON", called(piece('"{\\"path\\": \\"a\\"}"')), TEXT_A),
    "no-ids": _fault(
        "no id and an empty one", called(piece(A, call_id=None), piece(B, index=1, call_id="")), TEXT_A, TEXT_B
    ),
    "same-ids": _fault("two calls with one id", called(piece(A), piece(B, index=1)), TEXT_A, TEXT_B),
    "same-index": _fault("two calls at one index", called(piece(A), piece(B, call_id="call_2")), TEXT_A, TEXT_B),
    "no-index": _fault(
        "no index", called(piece(A, index=None), piece(B, index=None, call_id="call_2")), TEXT_A, TEXT_B
    ),
    "long-id": _fault("an id of 300 characters", called(piece(A, call_id="x" * 300)), TEXT_A),
    "odd-id": _fault("an id of other characters", called(piece(A, call_id="call:1/ü")), TEXT_A),
    "same-id-again": Fault(
        "an id of an earlier step",
        _same_id_again,
        "answer",
        requests=3,
        results=(TEXT_A, TEXT_B),
        rows=("user", "assistant", "tool", "assistant", "tool", "assistant"),
    ),
    "unknown-tool": _fault("a tool that there is not", called(piece(A, name="fly")), "there is no tool"),
    "null-name": _fault("name: null", called(piece(A, name=None)), "there is no tool"),
    "spaced-name": _fault("a name with spaces", called(piece(A, name="read file!")), "there is no tool"),
    "cut-call": _fault("a call cut by length", called(piece('{"path": "a'), finish="length"), "not run", says="cut"),
    "call-with-text": _fault("text and a call", called(piece(A), text="I look."), TEXT_A),
    "call-and-stop": _fault("a call that ends with stop", called(piece(A), finish="stop"), TEXT_A),
    "old-form": _fault("function_call", _old_form, TEXT_A),
    "ten-times": _fault("one call ten times", called(*(piece(A, index=n, call_id=f"c{n}") for n in range(10))), TEXT_A),
    "fifty-calls": _fault("fifty calls at once", called(*_FIFTY), *("",) * 50),
    "call-broken-off": Fault("the connection is cut in a call", _broken_off, "answer", "broke off", requests=2),
}
