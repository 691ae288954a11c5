"""Where were we? At most six lines, made by code, for a person who comes back to a session or sees it compacted.

The model has the same in its view: the task, the plan, what fails and which files changed stand in the record.
"""

from __future__ import annotations

from itertools import islice

from nca.agent.window import Window
from nca.context.file_reads import arguments_of
from nca.context.record.calls import told
from nca.context.record.past import Called, Past, asked, changes_file
from nca.context.record.words import said_in
from nca.context.view import without_ranges
from nca.models.costs import money

_FEWEST_WORDS = 4
"""A shorter message ("go on") is no task, unless there is no other."""
_LOOKED_AT = 1_000
"""Messages, the newest ones: to come back to a long session takes no longer than to a short one."""
_CHARS = 160
_NAMED = 4
"""Files and steps that are named."""
_NEAR_CALLS = 60
"""A command that failed longer ago says little of how things are now."""
_COMMAND = ("command", "cmd", "script")


def where_we_were(window: Window) -> tuple[str, ...]:
    """One line each, as far as there is something: task, last step, plan, what fails, files changed, cost."""
    history = window.history
    near = [(max(1, history.head - _LOOKED_AT + 1), history.head)]
    past = Past(history, without_ranges(near, history.view.aside))
    lines = (_task(past), _last_step(past), _plan(window), _failing(past), _changed(past), _spent(window))
    return tuple(line for line in lines if line)


def _task(past: Past) -> str:
    """The newest message of the person that is more than a word or two; where nothing was typed, what was piped in."""
    first = ""
    for entry in past.near():
        said = said_in(entry.message)
        text = said.typed.strip() or " ".join(text for _, text in said.beside) if said is not None else ""
        first = first or text
        if len(text.split()) >= _FEWEST_WORDS:
            return f"Task: {_short(text)}"
    return f"Task: {_short(first)}" if first else ""


def _last_step(past: Past) -> str:
    """The newest call that has ended, or the answer where that is newer."""
    answers = (one for one in past.near() if one.message.role == "assistant" and one.message.text.strip())
    answer = next(answers, None)
    call = next((one for one in past.calls if one.result is not None), None)
    if answer is not None and (call is None or answer.seq > call.seq):
        return f"Last answer: {_short(answer.message.text)}"
    return f"Last step: {_told(call)}" if call is not None else ""


def _plan(window: Window) -> str:
    plan = window.state.last_todo
    done, waiting = (list(map(str, plan.get(part) or ())) for part in ("done", "open"))
    doing = [str(plan["doing"])] if plan.get("doing") else []
    left = [*doing, *waiting]
    if not left:
        return ""
    return f"Plan: {len(done)} of {len(done) + len(left)} done; open: {_named(left)}"


def _failing(past: Past) -> str:
    """The newest command that failed and has not worked since."""
    latest: dict[str, Called] = {}
    for called in islice(past.calls, _NEAR_CALLS):
        if called.result is not None and any(arguments_of(called.call).get(name) for name in _COMMAND):
            latest.setdefault(asked(called.call), called)
    failed = next((one for one in latest.values() if one.has_failed), None)
    return f"Fails: {_told(failed)}" if failed is not None else ""


def _changed(past: Past) -> str:
    files = dict.fromkeys(path for one in past.calls if not one.has_failed and (path := changes_file(one.call)))
    return f"Changed: {_named(list(files))}" if files else ""


def _spent(window: Window) -> str:
    total = window.session.usage.totals()
    if not total.prompt_tokens:
        return ""
    cost = f"{money(total.cost)}, " if total.cost else ""
    return f"So far: {cost}{total.prompt_tokens:,} tokens read, {total.completion_tokens:,} written"


def _told(called: Called) -> str:
    return _short(told(called, chars=_CHARS // 2))


def _named(names: list[str]) -> str:
    rest = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return _short(", ".join(names[:_NAMED])) + rest


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _CHARS else f"{line[: _CHARS - 1]}…"
