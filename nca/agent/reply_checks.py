"""Detect answers that are incomplete although the provider reports success: cut off, filtered, of cut input, or words
of a small model in place of what it was asked to do."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nca.context.budget import Measurement
from nca.context.file_reads import NOT_RUN
from nca.humanize import one_line
from nca.messages import Message, clean_text
from nca.models.client import Reply
from nca.tools.shell.tool import Shell

CUT_RATIO, CUT_ANCHORED_RATIO = 0.5, 0.8
"""Below these shares of our own estimate, and of the model's earlier count, a report is incomplete."""
AT_LIMIT_RATIO = 0.9
"""Providers count a little differently; an answer below this share of its limit did not reach it."""
FEWEST_CUT_TOKENS = 1_000
"""No server's window is smaller, so a smaller report is made up."""
_WHOLE = frozenset({"stop", "tool_calls", "refusal", "compaction"})
_REASON_CHARS = 60

CUT_OFF = "The last turn was cut off. Its messages so far are kept and marked as interrupted."
"""For a session that ended in the middle of a turn."""
VIEW_DAMAGED = "The last compaction cannot be read, because the store is damaged. The context is as it was before."
"""For a session that continues with an earlier view."""
NOT_CHANGED = "No file was changed. Ask again, or change the file yourself."
"""For a small model, which may show the code instead, or claim a change that it did not make."""
CHANGE_NOW = "No file has changed yet; call a function that changes it. I asked: {asked}"
"""For the model, once in a turn, before the person is told NOT_CHANGED."""
NOTHING_RUN = "No command was run. Ask again, or run it yourself: !COMMAND."
"""For a small model, which may only write the command down, or make up what comes of it."""
RUN_NOW = "Nothing was run yet; call shell with the command. I asked: {asked}"
"""For the model, once in a turn, before the person is told NOTHING_RUN."""
ASKED_AGAIN = "Nothing was changed or run yet; the model is asked once more."
MOST_REPEATED_CHARS = 400
"""A longer question is not repeated."""
_VERBS = r"(?:add|change|correct|delete|edit|fix|insert|make|remove|rename|replace|rewrite|set|update|write)\b"
_CHANGES = re.compile(rf"\b{_VERBS}", re.IGNORECASE)
_ORDERING = r"(?:^|[.,:;!?]\s+|\n[^\S\n]*|\b(?:please|and|then|now|(?:can|could|will|would)\s+you)\s+)"
"""The places of a verb that gives an order, so that a question about a change is not taken for one."""
_ORDERS = re.compile(_ORDERING + _VERBS, re.IGNORECASE)
_RUNS = re.compile(rf"{_ORDERING}(?:execute|launch|re-?run|run|start)\b(?!\s+(?:by|from|over|with)\b)", re.IGNORECASE)
"""An order to run something; not "start with the parser"."""
_FILE = re.compile(r"\w\.[a-z]\w*", re.IGNORECASE)


def wants_change(asked: str) -> bool:
    """Whether the person named a file and asked for a change (in English)."""
    return _CHANGES.search(asked) is not None and _FILE.search(asked) is not None


def orders_change(asked: str) -> bool:
    """Whether the person certainly wants a file changed, so that the model may be told to do it."""
    return wants_change(asked) and _ORDERS.search(asked) is not None


def orders_run(asked: str) -> bool:
    """Whether the person asked for something to be run (in English)."""
    return _RUNS.search(asked) is not None


def undone(asked: str, since: Sequence[Message], *, has_changed: bool) -> str:
    """For the person: what was asked for and not done in the messages since; "" if it was done, or a call refused."""
    if _is_refused(since):
        return ""
    if wants_change(asked) and not has_changed:
        return NOT_CHANGED
    return NOTHING_RUN if orders_run(asked) and not _has_run(since) else ""


def once_more(asked: str, since: Sequence[Message], *, has_changed: bool) -> str:
    """For the model: the same, where it was certainly ordered."""
    if len(asked) > MOST_REPEATED_CHARS or _is_refused(since):
        return ""
    if orders_change(asked) and not has_changed:
        return CHANGE_NOW.format(asked=clean_text(asked))
    return RUN_NOW.format(asked=clean_text(asked)) if orders_run(asked) and not _has_run(since) else ""


def _has_run(messages: Sequence[Message]) -> bool:
    return any(call.name == Shell.name for message in messages for call in message.tool_calls)


def _is_refused(messages: Sequence[Message]) -> bool:
    """Whether a person or a rule has refused a call: then the model has done what it could."""
    return any(message.role == "tool" and message.text.startswith(NOT_RUN) for message in messages)


def ending(reply: Reply, answer_tokens: int) -> str:
    """Why an answer ended early, or "". `answer_tokens`: the room it had."""
    not_run = " Its call did not run." if reply.message.tool_calls else ""
    match reply.finish_reason:
        case "length" if reply.usage is not None and reply.usage.completion_tokens < AT_LIMIT_RATIO * answer_tokens:
            used = reply.usage.completion_tokens
            return f"The provider cut the answer off after {used:,} tokens; it was allowed {answer_tokens:,}.{not_run}"
        case "length":
            return f"The answer was cut off at its limit of {answer_tokens:,} tokens.{not_run}"
        case "content_filter":
            return "The provider's content filter ended the answer."
        case reason if reason in _WHOLE:
            return ""
        case reason:
            return f"The provider ended the answer for a reason of its own: {one_line(reason, _REASON_CHARS)}."


def is_cut(measured: Measurement, raw_tokens: int, known_tokens: int, reported_tokens: int) -> bool:
    """Whether a provider counted far less than was sent: then it silently dropped a part.

    known_tokens  the part that the model has counted before; our estimate of the rest may be too high
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
