"""Write an extract by code, for when no model gives a summary. It never fails."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from nca.context.file_reads import main_argument
from nca.context.ledger import says_decision
from nca.context.tokens import text_tokens
from nca.messages import Message, ToolCall

MAX_ANSWER_CHARS = 280
MAX_CALL_CHARS = 140
LEFT_OUT_TOKENS = 12
"""The line that says how much was left out."""
NEWEST_SHARE = 0.5
"""The share of the room for the newest lines, whatever they are: they say where the work stands."""
ANSWERED, USER = "- Answered: ", "- User: "
EQUAL = PLACE = 0.5
"""PLACE: a person's words stand in full beside the extract; here they only say where."""
DECIDED, TOLD, FAILED, CALLED = 0.8, 0.7, 0.6, 0.3
"""What the lines of an earlier summary are worth: a decision, prose, a call that failed, one that did not."""
_LEFT_OUT = re.compile(r"- \((\d+) earlier lines left out\)")


class _Line(NamedTuple):
    text: str
    score: float
    cost: int
    """Raw tokens, with its end."""


def _line(text: str, score: float) -> _Line:
    return _Line(text, score, text_tokens(text) + 1)


def extract_text(
    messages: Sequence[Message], existing: Sequence[str], max_tokens: int, scores: Sequence[float] = ()
) -> str:
    """What was done and answered, a line each, in the order of the log; at most `max_tokens` raw.

    Where room is short, half of it is for the newest lines and half for those that matter most of the others.

    scores  of the messages, by `nca.context.importance`; none: all matter alike
    """
    lines = [*_existing_lines(existing), *_lines(messages, scores or [EQUAL] * len(messages))]
    marks = [match for line in lines if (match := _LEFT_OUT.fullmatch(line.text))]
    lines = [line for line in lines if not _LEFT_OUT.fullmatch(line.text)]
    gone = sum(int(match[1]) for match in marks)
    if not gone and sum(line.cost for line in lines) <= max_tokens:
        return "\n".join(line.text for line in lines)
    kept = _chosen(lines, max_tokens - LEFT_OUT_TOKENS)
    gone += len(lines) - len(kept)
    if gone and max_tokens >= LEFT_OUT_TOKENS:
        kept.insert(0, f"- ({gone} earlier lines left out)")
    return "\n".join(kept)


def _chosen(lines: Sequence[_Line], room: int) -> list[str]:
    """The lines that stay within `room` tokens, in their order."""
    kept: set[int] = set()
    newest = len(lines)
    left = room
    while newest and lines[newest - 1].cost <= left - room * (1 - NEWEST_SHARE):
        newest -= 1
        kept.add(newest)
        left -= lines[newest].cost
    for place in sorted(range(newest), key=lambda place: (-lines[place].score, -place)):
        if lines[place].cost <= left:
            kept.add(place)
            left -= lines[place].cost
    return [lines[place].text for place in sorted(kept)]


def call_line(call: ToolCall, result: Message | None) -> str:
    """A tool call as one line: name, main argument, outcome."""
    main = " ".join(main_argument(call).split())[:MAX_CALL_CHARS]
    if result is None:
        outcome = "no result"
    elif result.is_error:
        outcome = "failed: " + " ".join(result.text.split())[:80]
    else:
        outcome = "ok"
    return f"- {call.name} {main} → {outcome}".replace("  ", " ")


def _lines(messages: Sequence[Message], scores: Sequence[float]) -> list[_Line]:
    results = {message.tool_call_id: place for place, message in enumerate(messages) if message.role == "tool"}
    lines: list[_Line] = []
    for message, score in zip(messages, scores, strict=True):
        if message.role == "assistant":
            text = " ".join(message.text.split())
            if text:
                lines.append(_line(f"{ANSWERED}{_clip(text)}", score))
            for call in message.tool_calls:
                place = results.get(call.id)
                # What a call came to decides what its line is worth.
                worth = score if place is None else scores[place]
                lines.append(_line(call_line(call, None if place is None else messages[place]), worth))
        elif message.role == "user" and not message.is_synthetic:
            text = _clip(" ".join(message.text.split()), MAX_ANSWER_CHARS // 4)
            lines.append(_line(f"{USER}{text}", PLACE))
            lines.extend(_line(f"- Attached {part.path}", score) for part in message.attachments)
    return lines


def _existing_lines(existing: Sequence[str]) -> list[_Line]:
    """The lines of earlier extracts by their shape; those of a model's summary are what it found worth saying."""
    return [_line(line, _shape_score(line)) for text in existing for line in text.splitlines() if line.strip()]


def _shape_score(line: str) -> float:
    if line.startswith((ANSWERED, USER)):
        return DECIDED if line.startswith(ANSWERED) and says_decision(line) else PLACE
    if not line.startswith("- ") or " → " not in line:
        return TOLD
    return FAILED if " → failed: " in line else CALLED


def _clip(text: str, limit: int = MAX_ANSWER_CHARS) -> str:
    if len(text) <= limit:
        return text
    end = text.rfind(". ", limit // 2, limit)
    return text[: end + 1] if end > 0 else text[:limit] + "…"
