"""The steps of a turn in progress that are no longer shown, one line each: the only steps that a record lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nca.context.file_reads import arguments_of, file_use, main_argument
from nca.context.record.outcomes import command_of, outcome_of
from nca.messages import Entry, Message, ToolCall

MAX_ARGUMENT_CHARS = 100
SHOWN_CHARS = 80
"""Of a result, as far as one line of it tells something."""
BEGINNING_CHARS = 80
RECALL = "recall"
"""The tool that shows what was said before: what it showed again is no step of the work."""


def step_lines(gone: Iterable[Entry], newest_user: int) -> list[str]:
    """Lines of a ledger, oldest first, each with the message of its result.

    The same call with the same outcome stands once, where it was last.
    """
    calls: dict[str, ToolCall] = {}
    lines: dict[str, int] = {}
    for entry in gone:
        if entry.seq <= newest_user:
            continue
        calls |= {call.id: call for call in entry.message.tool_calls if not _shows_again(call)}
        if entry.message.role == "tool" and (call := calls.pop(entry.message.tool_call_id, None)) is not None:
            text = f"{call.name} {_object_of(call)} → {_came_to(call, entry.message)}"
            lines.pop(text, None)
            lines[text] = entry.seq
    return [f"{seq}\t{text}" for text, seq in lines.items()]


def _shows_again(call: ToolCall) -> bool:
    return call.name == RECALL and "expand" in arguments_of(call)


def _object_of(call: ToolCall) -> str:
    """What a call is about; of a file that was read in part, which lines."""
    what = " ".join((command_of(call) or main_argument(call)).split())[:MAX_ARGUMENT_CHARS]
    use = file_use(call)
    if use is None or use.is_write or (use.first_line == 1 and use.last_line is None):
        return what
    return f"{what} {use.first_line}-{use.last_line or ''}"


def _came_to(call: ToolCall, result: Message) -> str:
    """How it ended; of what was only looked at, how much there was and how it begins."""
    outcome = outcome_of(call, result)
    if not outcome.was_run or outcome.is_failure or outcome.text != "ok":
        return outcome.text
    # Notes in brackets are nca's own.
    lines = [line for line in result.text.strip().splitlines() if not line.startswith("[")]
    count = f"{len(lines):,} lines" if lines[1:] else "ok"
    telling = [line.strip() for line in lines if line.strip()]
    if not telling or file_use(call) is not None:
        return count
    # The last line of what a program prints says most, of what was found the first.
    one = " ".join(telling[-1 if outcome.is_command else 0].split())
    said = one if len(one) <= SHOWN_CHARS else f"{one[:SHOWN_CHARS].rstrip()} …"
    return f"{count}, {'the last' if outcome.is_command else 'the first'}: {said}" if lines[1:] else said


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
