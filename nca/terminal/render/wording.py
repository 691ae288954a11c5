"""How events read on one line; the same words on a screen and on plain lines."""

from __future__ import annotations

from nca.errors import NcaError
from nca.events import ContextCompaction, RetryScheduled, ToolFinished, ToolStarted
from nca.models.costs import money
from nca.terminal.render.sanitize import one_line

STUCK = "Stopped: the same call gave the same result again and again. Say what should be different."
TOOL_CHARS = 160
ERROR_CHARS = 600


def short_tokens(count: int) -> str:
    """86k, 1.2M, 950: a count where there is little room."""
    if count < 1_000:
        return str(count)
    if count < 9_950:
        return f"{count / 1_000:.1f}k"
    if count < 999_500:
        return f"{count / 1_000:.0f}k"
    return f"{count / 1_000_000:.1f}M"


def counted(number: int, one: str, many: str = "") -> str:
    """1 message, 1,234 messages; `many` where it is not `one` with an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def messages(count: int) -> str:
    """1 message, 1,234 messages."""
    return counted(count, "message")


def duration(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"


def percent(ratio: float) -> str:
    """A usage as the notices word it: 43%, and never 0% for something."""
    return "<1%" if 0 < ratio < 0.005 else f"{ratio:.0%}"


def tool_started_line(event: ToolStarted) -> str:
    return one_line(event.summary or event.name, TOOL_CHARS)


def tool_finished_line(started: str, event: ToolFinished, *, in_words: bool = False) -> str:
    """in_words: without signs that a screen reader would spell."""
    outcome = one_line(event.summary, TOOL_CHARS)
    took = duration(event.seconds) if event.seconds >= 1 else ""
    what = started or one_line(event.name, TOOL_CHARS)
    if in_words:
        return ", ".join(part for part in (what, outcome, took) if part)
    return f"{what}{f' → {outcome}' if outcome else ''}{f' · {took}' if took else ''}"


def thought_line(seconds: float, chars: int) -> str:
    return f"Thought for {duration(seconds)} ({counted(chars, 'character')})"


def unanswered_line(name: str, needs: str) -> str:
    """What a person is told of a call that nobody could approve."""
    modes = "--permission accept-edits or auto" if needs == "write" else "--permission auto"
    return (
        f"{one_line(name)} did not run: nobody is here to approve it. {modes} allows it, and so does a rule of yours."
    )


def is_silent(event: ContextCompaction) -> bool:
    """What goes on in the background is told by its result only."""
    return event.trigger == "idle" and event.phase in ("starting", "skipped")


def compaction_line(event: ContextCompaction) -> str:
    """One calm line for each phase of a compaction; the conversation words it, this adds what it took."""
    said = one_line(event.message, ERROR_CHARS)
    match event.phase:
        case "starting":
            return "Compacting the context"
        case "completed":
            return " · ".join([said or f"Compacted {_change(event)}", *_effort(event)])
        case "preview":
            return said or f"Would compact {_change(event)}"
        case "failed" if said == "interrupted":
            return "Compaction stopped, nothing changed."
        case "failed":
            return f"Compaction failed, nothing changed: {said}".rstrip(": ")
        case "skipped":
            return said or "Nothing to compact."
        case "insufficient":
            return said or "Compacting does not help any more."


def retry_line(event: RetryScheduled) -> str:
    again = f"Trying again in {duration(event.wait_seconds)} (try {event.attempt})."
    return f"{one_line(event.reason, ERROR_CHARS)} {again}".lstrip()


def error_line(error: NcaError) -> tuple[str, str]:
    """Message and advice of an error, each on one line."""
    return one_line(error.message, ERROR_CHARS), one_line(error.advice, ERROR_CHARS)


def _change(event: ContextCompaction) -> str:
    return f"{event.tokens_before:,} → {event.tokens_after:,} tokens"


def _effort(event: ContextCompaction) -> list[str]:
    effort = [duration(event.seconds)] if event.seconds >= 0.05 else []
    effort += [f"cost {money(event.cost)}"] if event.cost else []
    if event.saves:
        cached = f" ({money(event.saves_cached)} where cached)" if event.saves_cached else ""
        effort.append(f"saves {money(event.saves)} a request{cached}")
    return effort
