"""The steps of a turn in progress that are no longer shown, one line each: the only steps that a record lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nca.context.file_reads import main_argument
from nca.context.record.outcomes import command_of, outcome_of
from nca.messages import Entry, ToolCall

MAX_ARGUMENT_CHARS = 100
BEGINNING_CHARS = 80


def step_lines(gone: Iterable[Entry], newest_user: int) -> list[str]:
    """Lines of a ledger, oldest first; the same call with the same outcome stands once, where it was last."""
    calls: dict[str, tuple[int, ToolCall]] = {}
    lines: dict[str, int] = {}
    for entry in gone:
        if entry.seq <= newest_user:
            continue
        for call in entry.message.tool_calls:
            calls[call.id] = (entry.seq, call)
        if entry.message.role == "tool" and entry.message.tool_call_id in calls:
            seq, call = calls.pop(entry.message.tool_call_id)
            what = " ".join((command_of(call) or main_argument(call)).split())[:MAX_ARGUMENT_CHARS]
            text = f"{call.name} {what} → {outcome_of(call, entry.message).text}"
            lines.pop(text, None)
            lines[text] = seq
    return [f"{seq}\t{text}" for text, seq in lines.items()]


def one_line_each(staying: Sequence[Entry]) -> list[str]:
    """What stays behind a record, for who writes it: each message or call in a few words."""
    lines: list[str] = []
    for entry in staying:
        message = entry.message
        if message.role == "user" and not message.is_synthetic:
            lines.append(f"user: {_begin(message.text)}")
        elif message.role == "assistant":
            lines += [f"{call.name} {_begin(command_of(call) or main_argument(call))}" for call in message.tool_calls]
            if not message.tool_calls and message.text.strip():
                lines.append(f"assistant: {_begin(message.text)}")
    return lines


def _begin(text: str) -> str:
    return " ".join(text.split())[:BEGINNING_CHARS]
