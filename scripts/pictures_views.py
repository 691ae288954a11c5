"""Draw the log and the view with the engine: a small log, the result of each stage, and undo."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pictures_svg import EDGE, INK, QUIET, card
from pictures_talk import INVOICE, TESTS

from nca.config.extensions import STAGES
from nca.config.schema import ContextSettings
from nca.context.budget import Budget
from nca.context.driver import run
from nca.context.history import History
from nca.context.meter import Meter
from nca.context.plan import compact, no_summarizer
from nca.context.view import Item, Marker, Stub, Summary, View, ranges_of
from nca.messages import Entry, Message, ToolCall

WINDOW_TOKENS = 5_000
LEFT, TOP, STEP, BOX, HIGH, ROW = 128, 66, 36, 33, 24, 46
"""Pixels: where the boxes begin, one place, one box, and the rows."""
SHADES = {"user": "#2d6b74", "answer": "#3c4657", "call": "#4b4170", "result": "#2f5594"}
WORDS = {"user": "you", "answer": "answer", "call": "call", "result": "result"}
KEPT, GIST, GONE = "#e8eaee", "#e0b24a", "#8a919c"


@dataclass(frozen=True, slots=True)
class Row:
    """A view over the log as it was then."""

    label: str
    remark: str
    history: History

    @property
    def tokens(self) -> int:
        return Meter().used(self.history)


def log() -> list[Message]:
    """Nineteen messages of a chat; invoice.py is read twice, and changed."""
    said: list[Message] = []

    def step(name: str, result: str, **arguments: str) -> None:
        call = ToolCall(f"call_{len(said) + 1}", name, json.dumps(arguments))
        said.extend((Message("assistant", None, (call,)), Message("tool", result, tool_call_id=call.id, name=name)))

    def answer(text: str) -> None:
        said.append(Message("assistant", text))

    def user(text: str) -> None:
        said.append(Message("user", text))

    user("What does invoice.py do? Is anything wrong with it? Never change parse_line.")
    step("read_file", INVOICE, path="invoice.py")
    answer("It adds up net, tax and total; mean_price ends in ZeroDivisionError for an invoice without lines.")
    user("Look at the tests: which case is missing?")
    step("read_file", TESTS, path="test_invoice.py")
    answer("Nothing calls mean_price.")
    user("Fix it so that report.py works.")
    step("read_file", INVOICE, path="invoice.py")
    step("edit_file", "1 place changed", path="invoice.py", old_text="return sum", new_text="return 0.0")
    answer("mean_price returns 0.0 for an invoice without lines.")
    user("Run the tests.")
    step("shell", "5 passed in 0.03s", command="pytest -q")
    answer("All five pass.")
    user("Then write the missing test.")
    return said


def history(messages: Sequence[Message], view: View | None = None) -> History:
    return History([Entry(seq, message) for seq, message in enumerate(messages, 1)], view)


def by_stage(stage: str) -> View:
    """What one stage alone makes of the log, down to half of its tokens."""
    whole = history(log())
    settings = replace(ContextSettings(), stages=(stage,))
    aim = Meter().used(whole) // 2
    planned = compact(whole, Meter(), Budget.of(WINDOW_TOKENS), settings, target_tokens=aim, has_summarizer=False)
    return run(planned, no_summarizer).view


def rows() -> list[Row]:
    messages = log()
    later = [*messages, Message("assistant", "Here it is: …"), Message("user", "Run it.")]
    remarks = {
        "prune": "results give way to a placeholder",
        "deduplicate": "an earlier read points to the later one",
        "summarize": "the older part becomes a summary",
        "truncate": "the oldest turns leave a marker",
    }
    return [
        Row("the log", "never changed; the view before shows all of it", history(messages)),
        *(Row(stage, remarks[stage], history(messages, by_stage(stage))) for stage in STAGES),
        Row("summarize, later", "the log grows, and the tail", history(later, by_stage("summarize"))),
        Row("/context undo", "the view before, and the tail", history(later)),
    ]


def views() -> str:
    """The picture: one row a view, one place a message."""
    shown = rows()
    places = max(row.history.head for row in shown)
    width, height = LEFT + places * STEP + 84, TOP + len(shown) * ROW + 34
    body = [
        '<g font-family="system-ui,sans-serif" font-size="11">',
        *_text(16, 26, "One log, and what the model sees of it after each stage alone", INK, size=14),
        *_text(width - 16, 26, "tokens", QUIET, anchor="end"),
        *(part for number, row in enumerate(shown) for part in _row(row, number, width)),
        *_legend(TOP + len(shown) * ROW + 12),
        "</g>",
    ]
    return card(body, title="Log and view", width=width, height=height)


def _row(row: Row, number: int, width: float) -> Iterator[str]:
    top = TOP + number * ROW - 14 + (4 if number else 0)
    name = "monospace" if row.label.startswith("/") else ""
    yield from _text(16, top + 15, row.label, INK, size=12, font=name)
    yield from _text(LEFT, top + HIGH + 12, row.remark, QUIET, size=10)
    yield from _text(width - 16, top + 16, f"{row.tokens:,}", INK, anchor="end")
    if number == 1:
        yield f'<line x1="16" x2="{width - 16:g}" y1="{top - 6}" y2="{top - 6}" stroke="{EDGE}"/>'
    for item in row.history.view.items:
        yield from _item(item, row.history, top)
    for seq in range(row.history.view.tail, row.history.head + 1):
        yield from _message(seq, row.history, top, is_log=number == 0)


def _item(item: Item, history: History, top: float) -> Iterator[str]:
    (first, last), *_ = spans = ranges_of(item)
    match item:
        case Stub():
            dashes = f'fill="none" stroke="{_shade(history, item.seq)}" stroke-width="1.5" stroke-dasharray="3 2"'
            yield f'<rect x="{_x(first)}" y="{top + 7}" width="{BOX}" height="{HIGH - 14}" rx="2" {dashes}/>'
        case Summary() | Marker():
            is_summary = isinstance(item, Summary)
            ink = GIST if is_summary else GONE
            for first, last in spans:
                look = f'fill="{ink}" fill-opacity="{0.22 if is_summary else 0.08}" stroke="{ink}"'
                dashes = "" if is_summary else ' stroke-dasharray="3 2"'
                wide = (last - first) * STEP + BOX
                yield f'<rect x="{_x(first)}" y="{top}" width="{wide}" height="{HIGH}" rx="4" {look}{dashes}/>'
                said = f"{'summary of' if is_summary else 'left out:'} {first}–{last}"
                yield from _text(_x(first) + wide / 2, top + 16, said, INK, anchor="middle")
        case _:
            for seq in range(first, last + 1):
                yield from _message(seq, history, top)


def _message(seq: int, history: History, top: float, *, is_log: bool = False) -> Iterator[str]:
    shade = _shade(history, seq)
    yield f'<rect x="{_x(seq)}" y="{top}" width="{BOX}" height="{HIGH}" rx="3" fill="{shade}"/>'
    yield from _text(_x(seq) + BOX / 2, top + 16, str(seq), KEPT, anchor="middle")
    if is_log:
        yield from _text(_x(seq) + BOX / 2, top - 5, WORDS[_kind(history, seq)], QUIET, anchor="middle", size=9)


def _legend(y: float) -> Iterator[str]:
    text = (
        "A full box is a message as it is, a thin dashed one a message with a placeholder. Every message is in exactly"
        " one place of each row."
    )
    yield from _text(16, y, text, QUIET)


def _kind(history: History, seq: int) -> str:
    message = history.message(seq)
    if message.role == "tool":
        return "result"
    return "user" if message.role == "user" else "call" if message.tool_calls else "answer"


def _shade(history: History, seq: int) -> str:
    return SHADES[_kind(history, seq)]


def _x(seq: int) -> int:
    return LEFT + (seq - 1) * STEP


def _text(x: float, y: float, text: str, ink: str, *, anchor: str = "", size: int = 0, font: str = "") -> Iterator[str]:
    marks = f' text-anchor="{anchor}"' if anchor else ""
    marks += f' font-size="{size}"' if size else ""
    marks += f' font-family="{font}"' if font else ""
    yield f'<text x="{x:g}" y="{y:g}" fill="{ink}"{marks}>{text}</text>'
