"""The last rung of a summary: an extract made by code, for when no model gives one. It never fails."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nca.context.file_reads import arguments_of, path_of
from nca.context.tokens import text_tokens
from nca.messages import Message, ToolCall

MAX_ANSWER_CHARS = 280
MAX_CALL_CHARS = 140
LEFT_OUT_TOKENS = 12
"""The line that says how much was left out."""
_LEFT_OUT = re.compile(r"- \((\d+) earlier lines left out\)")


def extract_text(messages: Sequence[Message], existing: Sequence[str], max_tokens: int) -> str:
    """What was done and answered, a line each, newest kept first where room is short; at most `max_tokens` raw."""
    lines = [*_existing_lines(existing), *_lines(messages)]
    marks = [match for line in lines if (match := _LEFT_OUT.fullmatch(line))]
    lines = [line for line in lines if not _LEFT_OUT.fullmatch(line)]
    gone = sum(int(match[1]) for match in marks)
    kept: list[str] = []
    is_whole = not gone and sum(text_tokens(line) + 1 for line in lines) <= max_tokens
    left = max_tokens - (0 if is_whole else LEFT_OUT_TOKENS)
    for line in reversed(lines):
        cost = text_tokens(line) + 1
        if cost > left:
            break
        left -= cost
        kept.append(line)
    gone += len(lines) - len(kept)
    if gone and left >= 0:
        kept.append(f"- ({gone} earlier lines left out)")
    return "\n".join(reversed(kept))


def call_line(call: ToolCall, result: Message | None) -> str:
    """A tool call as one line: name, main argument, outcome."""
    arguments = arguments_of(call)
    main = path_of(arguments) or next((value for value in arguments.values() if isinstance(value, str)), "")
    main = " ".join(main.split())[:MAX_CALL_CHARS]
    if result is None:
        outcome = "no result"
    elif result.is_error:
        outcome = "failed: " + " ".join(result.text.split())[:80]
    else:
        outcome = "ok"
    return f"- {call.name} {main} → {outcome}".replace("  ", " ")


def _lines(messages: Sequence[Message]) -> list[str]:
    results = {message.tool_call_id: message for message in messages if message.role == "tool"}
    lines: list[str] = []
    for message in messages:
        if message.role == "assistant":
            text = " ".join(message.text.split())
            if text:
                lines.append("- Answered: " + _clip(text))
            lines.extend(call_line(call, results.get(call.id)) for call in message.tool_calls)
        elif message.role == "user" and not message.is_synthetic:
            # In full among the user's own words; here only where it stands.
            lines.append("- User: " + _clip(" ".join(message.text.split()), MAX_ANSWER_CHARS // 4))
            lines.extend(f"- Attached {part.path}" for part in message.attachments)
    return lines


def _existing_lines(existing: Sequence[str]) -> list[str]:
    return [line for text in existing for line in text.splitlines() if line.strip()]


def _clip(text: str, limit: int = MAX_ANSWER_CHARS) -> str:
    if len(text) <= limit:
        return text
    end = text.rfind(". ", limit // 2, limit)
    return text[: end + 1] if end > 0 else text[:limit] + "…"
