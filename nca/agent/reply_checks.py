"""What a person should know of an answer that came as a success and is not the whole of one."""

from __future__ import annotations

from nca.context.budget import Measurement
from nca.models.client import Reply

CUT_RATIO, CUT_ANCHORED_RATIO = 0.5, 0.8
"""A report below these shares of what was only counted, and of what the model has counted, is not of the whole."""
FEWEST_CUT_TOKENS = 1_000
"""No server's window is smaller; a smaller report is made up (reliability F27)."""
_WHOLE = frozenset({"stop", "tool_calls", "refusal", "compaction"})
_REASON_CHARS = 60

CUT_OFF = "The last turn was cut off; what was there of it is kept and marked as interrupted."
"""Of a session whose process ended in the middle of a turn."""


def ending(reply: Reply, answer_tokens: int) -> str:
    """Why an answer ended where that was not its own end (F28), else nothing. `answer_tokens`: the room it had."""
    match reply.finish_reason:
        case "length":
            return f"The answer was cut off at its limit of {answer_tokens:,} tokens."
        case "content_filter":
            return "The provider's content filter ended the answer."
        case reason if reason in _WHOLE:
            return ""
        case reason:
            return f"The provider ended the answer for a reason of its own: {reason[:_REASON_CHARS]}."


def is_cut(measured: Measurement, raw_tokens: int, known_tokens: int, reported_tokens: int) -> bool:
    """Whether a provider counted far less than was sent: then it has left out a part without a word (spec 6).

    known_tokens  what of it the model has counted before; the rest may be a large file that was counted too high
    """
    least = CUT_RATIO * raw_tokens
    if not measured.is_estimate:
        least = CUT_ANCHORED_RATIO * known_tokens + CUT_RATIO * max(0, measured.used_tokens - known_tokens)
    return FEWEST_CUT_TOKENS <= reported_tokens < least


def cut_notice(model: str, sent_tokens: int, reported_tokens: int) -> str:
    return (
        f"{model} counted {reported_tokens:,} of about {sent_tokens:,} tokens sent: it seems to have left out the rest."
        " Raise the server's window (num_ctx of Ollama), or set model.context_window to what it is with /config."
    )
