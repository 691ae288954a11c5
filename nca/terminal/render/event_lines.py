"""Events as one-line messages, shared by the screen and the plain output."""

from __future__ import annotations

import math
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from nca import events
from nca.errors import NcaError, sentence
from nca.humanize import counted, duration, used_in_words
from nca.models.catalog import money
from nca.terminal.render.sanitize import one_line

if TYPE_CHECKING:
    from nca.agent.conversation import Conversation

TOOL_CHARS = 160
ERROR_CHARS = 600
LONG_READ_TOKENS = 200
"""The rest of a request that is worth a word: two seconds for the embedded model on two cores."""
_RULE_CHARS, _HOW_CHARS = 200, 800
_SPECIAL = re.compile(r"[\"$`\\!]")
"""What a shell reads in double quotes as more than itself."""
IN_CHAT = {
    "`nca sessions list`": "/sessions",
    "`nca config show`": "/config all",
    "nca models lists": "/model NAME suggests",
    "`nca config set`": "/config",
    "`--max-cost ": "`/config session.max_cost ",
    "with --model": "with /model",
    "/compact in the chat": "/compact",
    '--fit cut, fit="cut", context.fit': "/config context.fit cut",
}
"""The chat's words for the shell's words in an error's advice."""
IN_SHELL = {
    "(/model)": "(--model)",
    "/model switches": "--model switches",
    "/mcp shows more": "nca mcp list --check shows more",
    "/mcp login ": "nca mcp login ",
    '--fit cut, fit="cut", context.fit': "--fit cut",
    "Say “go on” to continue.": 'To continue: nca run -c "go on"',
    "Say “go on”.": 'To continue: nca run -c "go on"',
    "Say what to do differently.": 'Say what to do differently: nca run -c "…"',
}
"""The shell's words for the chat's words that have such."""
GROUPS = {
    "Context and cost": ("context", "compact", "memory", "cost"),
    "Back and forth": ("rewind", "undo", "redo", "changes"),
    "Answers and screen": ("btw", "show", "todo", "copy", "editor", "clear", "help", "exit"),
    "Sessions": ("sessions", "resume", "new", "rename", "export"),
    "Model, tools, settings": ("model", "effort", "permissions", "tools", "jobs", "mcp", "config"),
}
"""The names of the chat's commands, under the headings of /help and in its order."""
NAMES = tuple(name for names in GROUPS.values() for name in names)
_COMMAND = re.compile(rf"(?<![\w./])/(?:{'|'.join(NAMES)})\b(?![/.-]?\w)")
_MESSAGE = re.compile(r"(?<![\w./])/context show \d+")
_SETTING = re.compile(r"(?<![\w./])/config (?=[a-z]+\.[a-z_]+ )")


class Notices:
    """Events that are a line of their own, as text and style.

    Short are retries for a reason that was just said, and warnings of what goes well: once nca has made room by itself,
    the context fills and is compacted again and again. Of another session nothing was said yet.
    """

    def __init__(self) -> None:
        self._reason = self._session = ""
        self._has_compacted = False

    def note(self, event: events.Event) -> None:
        if isinstance(event, events.TurnStarted) and event.session_id != self._session:
            self._session, self._has_compacted = event.session_id, False
        if not isinstance(event, events.ContextCompaction):
            return
        if event.phase == "completed" and event.trigger in ("threshold", "idle"):
            self._has_compacted = True
        elif event.phase in ("failed", "insufficient"):
            self._has_compacted = False

    def line(self, event: events.Event) -> tuple[str, str] | None:
        """None for an event that is no such line."""
        if isinstance(event, events.RetryScheduled):
            is_known, self._reason = event.reason == self._reason, event.reason
            return retry_line(event, is_known=is_known), "quiet"
        if not isinstance(event, events.RequestStarted | events.RequestRead | events.UsageReported):
            self._reason = ""
        if isinstance(event, events.ContextWarning) and event.compacts and self._has_compacted:
            return None if event.is_now else (f"Context: {used_in_words(event.usage)}", "quiet")
        return _line(event)


def _line(event: events.Event) -> tuple[str, str] | None:
    match event:
        case events.ContextWarning(level=level, message=message):
            return message, "notice" if level == "warning" else "quiet"
        case events.Notice(message=message):
            return message, "quiet"
        case events.TurnFinished(reason="interrupted", is_empty=True):
            return "Interrupted before an answer came.", "notice"
        case events.TurnFinished(reason="interrupted"):
            return "Interrupted. The answer so far is kept.", "notice"
        case events.TurnFinished(reason="max_steps"):
            return f"Stopped after {counted(event.steps, 'step')} (agent.max_steps). Say “go on” to continue.", "notice"
        case events.TurnFinished(reason="stuck"):
            text = "Stopped: the same calls returned the same results again and again. Say what to do differently."
            return text, "notice"
        case events.TurnFinished(reason="length"):
            text = "Stopped: two answers in a row reached the length limit (model.max_output_tokens). Say “go on”."
            return text, "notice"
        case _:
            return None


def model_status(event: events.RequestRead | events.CallWritten) -> str:
    """What the model does before anything of it can be shown."""
    if isinstance(event, events.CallWritten):
        much = f", {counted(event.lines, 'line') if event.lines else counted(event.chars, 'character')}"
        about = one_line(event.summary, TOOL_CHARS)
        return f"Writing a call{much if event.chars else ''}{f': {about}' if about else ''}"
    read, total = event.read_tokens, event.of_tokens
    return f"Reading {read:,} of {total:,} tokens" if total - read >= LONG_READ_TOKENS else "Thinking"


def tool_started_line(event: events.ToolStarted) -> str:
    return one_line(event.summary or event.name, TOOL_CHARS)


def not_made(event: events.ApprovalGiven) -> events.ToolFinished:
    """The line for a call that ended because the person stopped the turn at its question: no other event says it."""
    return events.ToolFinished(event.call_id, event.name, is_error=True, summary="not made", seconds=0.0)


def tool_finished_line(started: str, event: events.ToolFinished, *, in_words: bool = False) -> str:
    """The finished call: what ran, its outcome, how long it took. `in_words` avoids symbols, for screen readers."""
    outcome = one_line(event.summary, TOOL_CHARS)
    took = duration(event.seconds) if event.seconds >= 1 else ""
    what = started or one_line(event.name, TOOL_CHARS)
    if event.is_error:
        # The path is already before the arrow.
        outcome = outcome.removesuffix(f": {what.rpartition(' ')[2]}")
    if in_words:
        return ", ".join(part for part in (what, outcome, took) if part)
    return f"{what}{f' → {outcome}' if outcome else ''}{f' · {took}' if took else ''}"


def reasoning_line(seconds: float, chars: int) -> str:
    return f"Thought for {duration(seconds)} ({counted(chars, 'character')})"


def unanswered_line(asked: events.ApprovalAsked, *, is_chat: bool) -> str:
    """The notice for a call that needed approval where nca does not ask: in `nca run`, or without a terminal."""
    why = "nca cannot ask without a terminal" if is_chat else "nca run never asks (nca loop does)"
    takes_edits = asked.needs == "write" and not asked.warning
    modes = "--permission accept-edits or auto" if takes_edits else "--permission auto"
    name = one_line(asked.name)
    rule = _rule_to_pass(asked)
    if asked.allowed_by == "person" or (asked.allowed_by == "text" and not rule):
        how = f"{asked.warning} Only a person can allow it, in a chat at a terminal.".lstrip()
    elif asked.allowed_by == "text":
        how = f"{asked.warning} To allow it, pass {rule}."
    elif rule:
        how = f"To allow it, pass {rule}; for all such calls, {modes}."
    elif asked.allowed_by in ("subject", "tool"):
        how = f"To allow it, pass --allow {shlex.quote(name)}, which allows every call of {name}."
    else:
        how = f"To allow it, pass {modes}."
    return f"{name} was not run: it needs an approval, and {why}. {one_line(how, _HOW_CHARS)}"


def _rule_to_pass(asked: events.ApprovalAsked) -> str:
    """The narrowest rules that allow the call, as options; "" if there are none, or they could not be copied."""
    rules = [_rule_in_shell(asked, subject) for subject in asked.subjects or (asked.subject,)]
    return " ".join(f"--allow {rule}" for rule in rules) if all(rules) else ""


def _rule_in_shell(asked: events.ApprovalAsked, subject: str) -> str:
    """A rule quoted for a shell; "" if there is none, or it could not be copied."""
    from nca.tools.mcp.tool import rule_in_words

    folder, about = f"{Path.cwd()}/", subject
    if rule_in_words(asked.name, subject) != subject:
        about = ""
    rule = f"{asked.name} {about.removeprefix(folder) if asked.path else about}".strip()
    if not subject or one_line(rule, _RULE_CHARS) != rule:
        return ""
    return f'"{rule}"' if "'" in rule and not _SPECIAL.search(rule) else shlex.quote(rule)


def reserve_line(conversation: Conversation) -> str:
    """Why the answer gets less room than model.max_output_tokens asks for; "" if it gets all of it."""
    wanted_tokens = conversation.loaded.settings.model.max_output_tokens
    reserve_tokens = conversation.context.reserve_tokens
    if wanted_tokens <= reserve_tokens:
        return ""
    return (
        f"model.max_output_tokens is lowered from {wanted_tokens:,} to {reserve_tokens:,}:"
        " the answer may take half of the window, the other half is for the conversation."
    )


def is_silent(event: events.ContextCompaction) -> bool:
    """Whether the event is not shown: of a background compaction, only the result is."""
    return event.trigger == "idle" and event.phase in ("starting", "skipped")


def compaction_line(event: events.ContextCompaction) -> str:
    """One line for each phase of a compaction: the conversation's message, plus time and cost."""
    message = one_line(event.message, ERROR_CHARS)
    match event.phase:
        case "starting":
            return "Compacting the context"
        case "completed":
            return " · ".join([message or f"Compacted {_change(event)}", *_effort(event)])
        case "preview":
            return message or f"Would compact {_change(event)}"
        case "failed" if message == "interrupted":
            return "Compaction stopped; nothing changed."
        case "failed" if event.trigger == "idle":
            return f"Compaction failed; nothing changed: {message}".rstrip(": ")
        case "failed":
            # The error is said by what ends with it: the turn or the command.
            return "Compaction failed; nothing changed."
        case "skipped":
            return message or "Nothing to compact."
        case "insufficient":
            return message or "Compaction no longer frees enough space."


def retry_line(event: events.RetryScheduled, *, is_known: bool = False) -> str:
    """`is_known`: the line above says the reason. Requests count their retries each for itself."""
    which = f"{event.attempt} of {event.retries}" if event.retries else f"{event.attempt}"
    again = f"etrying in {duration(event.wait_seconds)} ({which})."
    if is_known:
        return f"Another request: r{again}" if event.attempt == 1 else f"R{again}"
    return f"{sentence(one_line(event.reason, ERROR_CHARS))} R{again}".lstrip()


def retry_status(event: events.RetryScheduled, waited_seconds: float) -> str:
    """The same for a line that is redrawn while the time runs; the remaining time is in a part that is never cut."""
    left = math.ceil(event.wait_seconds - waited_seconds)
    again = f"Retrying in {left} s" if left > 0 else "Retrying"
    which = f"{event.attempt} of {event.retries}" if event.retries else f"{event.attempt}"
    return f"{again} ({which}): {one_line(event.reason, ERROR_CHARS).rstrip('.')}"


def error_line(error: NcaError | events.Failure) -> tuple[str, str]:
    """An error's message and advice, each on one line: whole sentences, and the chat's own commands."""
    message, advice = error.message, error.advice
    message = sentence(message)
    for shell, chat in IN_CHAT.items():
        advice = advice.replace(shell, chat)
    return one_line(message, ERROR_CHARS), one_line(advice, ERROR_CHARS)


def shell_words(text: str) -> str:
    for chat, shell in IN_SHELL.items():
        text = text.replace(chat, shell)
    return text


def in_shell(text: str, session: str = "") -> str:
    """A line of a notice or error as a shell can follow it: what only the chat has is said to be the chat's.

    session  the id of the one that it is about, if that is kept
    """
    text = _SETTING.sub("nca config set ", shell_words(text))
    text = _MESSAGE.sub(f"nca sessions show {session}", text) if session else text
    found = _COMMAND.search(text)
    if found is None or "in the chat" in text:
        return text
    opens = f"--resume {session}" if session else "--continue"
    return f"{text} ({found[0]} is a command of the chat: nca loop {opens})"


def event_in_shell(event: events.Event, session: str) -> events.Event:
    """The event with its message and advice, and those of its error, as a shell can follow them."""

    def changed(one: Any) -> Any:
        texts = {name: in_shell(getattr(one, name), session) for name in ("message", "advice") if hasattr(one, name)}
        failed = {"error": changed(one.error)} if getattr(one, "error", None) is not None else {}
        return msgspec.structs.replace(one, **texts, **failed)

    has_words = isinstance(event, events.Notice | events.ContextWarning | events.ErrorRaised | events.TurnFinished)
    return changed(event) if has_words else event


def _change(event: events.ContextCompaction) -> str:
    return f"{event.tokens_before:,} → {event.tokens_after:,} tokens"


def _effort(event: events.ContextCompaction) -> list[str]:
    effort = [duration(event.seconds)] if event.seconds >= 0.05 else []
    effort += [f"cost {money(event.cost)}"] if event.cost else []
    if event.saves:
        cached = f" ({money(abs(event.saves_cached))} if cached)" if event.saves_cached else ""
        # In a larger window a request shows more of the log again.
        does, more = ("saves", "") if event.saves > 0 else ("costs", " more")
        effort.append(f"{does} {money(abs(event.saves))}{more} per request{cached}")
    return effort
