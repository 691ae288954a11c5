"""Notices about the context: that it fills, that a request does not fit, and where the work stands.

The model has the last in its view: the record holds the task, the plan, the failures and the changed files.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from nca.agent.window import Window
from nca.context.budget import Measurement
from nca.context.file_reads import arguments_of
from nca.context.named import names_of
from nca.context.policy import NoticeLevel
from nca.context.record.called import Called, asked
from nca.context.record.calls import call_text
from nca.context.record.past import Past
from nca.context.record.said import Said
from nca.context.record.script import words_in
from nca.context.rules.untouchable import is_in_work
from nca.context.todo import steps_of
from nca.context.view import Stub, is_shown, without_ranges
from nca.errors import ContextDoesNotFit, StoreError
from nca.events import ContextWarning
from nca.humanize import one_line, used_in_words
from nca.messages import Entry
from nca.models.catalog import money
from nca.tools.planning import Compact
from nca.words import Words

if TYPE_CHECKING:
    from nca.file_history.history import FileHistory


_NO_ROOM = "No message fits beside the system prompt and the tools."


def context_warning(
    window: Window, level: NoticeLevel, what_follows: str = "", *, is_now: bool = False
) -> ContextWarning:
    """The event of a notice. `what_follows`: the next action, if compaction is automatic; `is_now`: it is due now."""
    measured, has_room = window.measure(), has_no_room(window) is None
    message = f"Context: {used_in_words(measured.usage_ratio)}"
    if level == "warning":
        numbers = f"{measured.used_tokens:,} / {measured.budget.budget_tokens:,} tokens"
        is_full = not measured.fits and not is_now
        refused = "; the next message will not be sent: /compact makes room." if is_full else "; /compact makes room."
        follows = {
            "on": what_follows,
            "off": f"Auto-compaction is off{refused}",
            "preview": f"Auto-compaction only says what it would do (context.auto = preview){refused}",
        }[window.context.auto]
        message = f"{message} ({numbers}). {follows if has_room else _NO_ROOM}"
    return ContextWarning(
        level=level,
        usage=measured.usage_ratio,
        used_tokens=measured.used_tokens,
        budget_tokens=measured.budget.budget_tokens,
        message=message,
        compacts=window.context.auto == "on" and has_room,
        is_now=is_now and window.context.auto == "on",
    )


def cut_newest_notice(window: Window, seq: int) -> str:
    """What to tell a person whose newest message is cut in the current view; "" if message `seq` is not cut."""
    stub = next((item for item in window.history.view.items if isinstance(item, Stub) and item.seq == seq), None)
    if stub is None:
        return ""
    message, meter = window.history.message(seq), window.meter
    # A pasted line may stand behind a typed word, and in the request behind the tag of the paste.
    theirs = {*message.lines, *(line for span in message.said for line in span.text.splitlines())}
    lines, seen = len(message.lines), sum(bool(line.strip()) and line in theirs for line in stub.text.splitlines())
    shown = f"{seen:,} of its {lines:,} lines" if lines > seen else "a part of it"
    is_larger = meter.scaled(window.history.run_tokens(seq, seq)) > window.budget.window_tokens
    why = "is larger than the window" if is_larger else "does not fit beside the system prompt, the tools and pins"
    return f"Your message {why}: the model sees {shown}; /context show {seq} has all."


def does_not_fit(measured: Measurement, auto: str) -> ContextDoesNotFit:
    """The error for a request that is larger than the budget. `auto` is the setting context.auto."""
    how = "Make room with /compact or /context clear" if auto == "off" else "Shorten the input"
    return ContextDoesNotFit(
        f"The next request needs {measured.used_tokens:,} tokens; the budget is"
        f" {measured.budget.budget_tokens:,}. Nothing was sent.",
        advice=f"{how}, or use a model with a larger window.",
        used_tokens=measured.used_tokens,
        budget_tokens=measured.budget.budget_tokens,
    )


def has_no_room(window: Window) -> ContextDoesNotFit | None:
    """The error for a window in which no message fits beside the system prompt and the tools: a compaction has nothing
    to act on. None if there is room.
    """
    fixed_tokens, budget_tokens = window.meter.total(window.meter.fixed_raw), window.budget.budget_tokens
    if fixed_tokens < budget_tokens:
        return None
    return ContextDoesNotFit(
        f"The system prompt and the tools have {fixed_tokens:,} tokens, and the budget is {budget_tokens:,}: no message"
        " fits. Nothing was sent.",
        advice="Use a model with a larger window, or give it fewer tools (tools.off).",
        used_tokens=fixed_tokens,
        budget_tokens=budget_tokens,
    )


_FEWEST_WORDS = 3
"""A shorter message ("go on") is not a task unless it names something; an answer to a question needs a word more."""
_LOOKED_AT = 1_000
"""Only so many of the newest messages are read, so a long session takes no longer than a short one."""
_CHARS = 160
_NAMED = 4
"""Files and steps that are named."""
_COMMAND = ("command", "cmd", "script")


class Exchange(NamedTuple):
    """The last exchange: the person's message, and the answer to it, which is message `seq`; "" without one."""

    asked: str
    answer: str
    seq: int


def last_exchange(window: Window) -> Exchange:
    """A partial answer counts, and so does text that the model wrote between its calls."""
    answer, seq = "", 0
    past = _near(window)
    for entry in past.near():
        message = entry.message
        if message.role == "assistant" and not answer and message.text.strip():
            answer, seq = message.text, entry.seq
        elif message.role == "user" and (said := past.said(message)) is not None:
            return Exchange(_as_asked(said), answer, seq)
    return Exchange("", answer, seq)


def unanswered(window: Window) -> Words:
    """The person's newest message as they wrote it, if it has no answer and sending it again continues it; or ()."""
    exchange, history = last_exchange(window), window.history
    seq = history.newest_user or 0
    is_waiting = bool(exchange.asked) and not exchange.answer.strip() and is_shown(history.view, seq)
    return history.message(seq).said if seq and is_waiting else ()


def where_we_were(
    window: Window,
    files: FileHistory | None,
    *,
    is_answer_shown: bool = False,
    is_exchange_shown: bool = False,
    newest: str = "",
) -> tuple[str, ...]:
    """One line for each that there is: task, last step, plan, failure, changed files, cost.

    is_answer_shown    the last answer is already shown above, so the last step stands in its place
    is_exchange_shown  so is the newest message: without a step since, plan, failure or changed file there are no lines
    newest             what the person has just said, where the log does not have it yet
    """
    past = _near(window)
    work = (_plan(window), _failing(past), _changed(past, window.session.info.directory, files))
    since = () if newest else tuple(takewhile(lambda one: not _is_said(past, one), past.near()))
    answers = (one for one in since if one.message.role == "assistant" and one.message.text.strip())
    # What came before the newest message is neither an answer to it nor a step of it.
    answer, step = next(answers, None), _last_step(past) if since else None
    step = step if step is not None and step.seq >= since[-1].seq else None
    is_answered = answer is not None and (step is None or answer.seq > step.seq)
    if is_exchange_shown and not any(work) and (is_answered or step is None):
        return ()
    last = f"Last step{_ended(step)}: {_told(step)}" if step is not None else ""
    if answer is not None and is_answered and not (is_answer_shown or is_exchange_shown):
        last = f"Last answer: {_short(answer.message.text)}"
    lines = (_task(past, newest), last, *work, _spent(window))
    return tuple(line for line in lines if line)


def _is_said(past: Past, entry: Entry) -> bool:
    return entry.message.role == "user" and past.said(entry.message) is not None


def _near(window: Window) -> Past:
    history = window.history
    near = [(max(1, history.head - _LOOKED_AT + 1), history.head)]
    return Past(history, without_ranges(near, history.view.aside))


def _as_asked(said: Said) -> str:
    """The typed text, else the piped text."""
    return said.typed.strip() or " ".join(text for _, text in said.beside)


def _task(past: Past, newest: str) -> str:
    """The newest message of the person; behind a short one ("go on") the newest that says by itself what to do."""
    earlier = ""
    for number, (text, answer) in enumerate(_messages(past, newest)):
        newest = newest or text
        if _words(text) >= _FEWEST_WORDS + answer.endswith("?") or names_of(_short(text)):
            earlier = f" · earlier: {_short(text)}" if number else ""
            break
    return f"You said: {_short(newest)}{earlier}" if newest else ""


def _words(text: str) -> int:
    """Words between blanks; more in a script that puts none between them."""
    return sum(1 if part.isascii() else max(1, sum(1 for _ in words_in(part))) for part in text.split())


def _messages(past: Past, newest: str) -> Iterator[tuple[str, str]]:
    """The person's messages, newest first, each with the answer before it. `newest` comes before all of the log."""
    text = newest
    for entry in past.near():
        message = entry.message
        if message.role == "assistant" and text and (answer := message.text.strip()):
            yield text, answer
            text = ""
        elif message.role == "user" and (said := past.said(message)) is not None:
            if text:
                yield text, ""
            text = _as_asked(said)
    if text:
        yield text, ""


def _last_step(past: Past) -> Called | None:
    """The newest ended call. The wish for a compaction is not a step."""
    return next((one for one in past.calls if one.result is not None and one.call.name != Compact.name), None)


def _ended(called: Called) -> str:
    """That a call did not do what it says. Its result does too, but a narrow window cuts the line before that."""
    if not called.has_run:
        return ", not run"
    return ", interrupted" if called.is_cut_off else ", failed" if called.has_failed else ""


def _plan(window: Window) -> str:
    """Of a list that two requests have passed over, nobody knows what is still open: `/todo` shows it."""
    seq, plan = window.history.newest_list or (0, {})
    done, left = steps_of(plan)
    if not left or not is_in_work(window.history, seq):
        return ""
    return f"Plan: {len(done)} of {len(done) + len(left)} done; open: {_named(left)}"


def _failing(past: Past) -> str:
    """The newest command that failed and has not worked since, in the newest turn with calls: a person who has moved on
    has read of an older one. A command that was interrupted or never run has not failed."""
    latest: dict[str, Called] = {}
    newest = next((one.seq for one in past.calls), 0)
    asked_for = (entry.seq for entry in past.near() if entry.seq < newest and past.said(entry.message) is not None)
    begun = next(asked_for, 0)
    for called in takewhile(lambda one: one.seq > begun, past.calls):
        if called.has_run and not called.is_cut_off and any(arguments_of(called.call).get(name) for name in _COMMAND):
            latest.setdefault(asked(called.call), called)
    failed = next((one for one in latest.values() if one.has_failed), None)
    return f"Failed: {_told(failed)}" if failed is not None else ""


def _changed(past: Past, directory: str, files: FileHistory | None) -> str:
    """The files that are not as they were, the newest change first: as recorded; elsewhere the calls say it."""
    calls = [one for one in past.calls if one.has_worked]
    written = [(one.seq, one.changed_file.removeprefix(f"{directory}/")) for one in calls]
    recorded: set[str] = set()
    changed: list[tuple[int, str]] = []
    with suppress(StoreError):
        if files is not None:
            recorded = files.recorded_paths()
            made = {path: seq for seq, path, _ in files.last_changes()}
            for one in files.changed_since(0):
                gone = " (deleted)" if one.after.kind == "absent" else ""
                changed.append((made.get(one.path, 0), f"{one.name}{gone}"))
    changed += [(seq, path) for seq, path in written if path and path not in recorded]
    names = dict.fromkeys(name for _, name in sorted(changed, key=lambda one: -one[0]))
    return f"Changed: {_named(list(names))}" if names else ""


def _spent(window: Window) -> str:
    total = window.session.usage.totals()
    if not total.prompt_tokens:
        return ""
    cost = f"{money(total.cost)}; " if total.cost else ""
    return f"So far: {cost}the model read {total.prompt_tokens:,} tokens and wrote {total.completion_tokens:,}"


def _told(called: Called) -> str:
    return _short(call_text(called, chars=_CHARS // 2, is_headed=True))


def _named(names: list[str]) -> str:
    rest = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return _short(", ".join(names[:_NAMED])) + rest


def _short(text: str) -> str:
    return one_line(text, _CHARS)
