"""Split the measured tokens by kind: system prompt, tools, summaries, conversation, tool results …

Raw counts come from `nca.context.tokens` as everywhere; `split` gives each kind its share of the tokens that the meter
measured, so the parts always add up to `used`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import accumulate

from nca.context.history import History
from nca.context.tokens import (
    call_tokens,
    message_tokens,
    part_tokens,
    text_tokens,
)
from nca.context.view import Item, Marker, Summary, Verbatim, View
from nca.messages import Message, TextPart

FIXED = ("system_prompt", "instructions", "tool_definitions", "mcp_tools")
"""The parts of every request: nca's own words, the project's (AGENTS.md), nca's own tools, those of servers."""
TALK = ("summaries", "record", "conversation", "tool_calls", "tool_results", "attachments")
"""The parts of the view. record: code's part beside a summary's prose. conversation: your words and the model's."""
KINDS = FIXED + TALK
LABELS = {
    "system_prompt": "system prompt",
    "instructions": "instructions",
    "tool_definitions": "tools",
    "mcp_tools": "MCP tools",
    "summaries": "summaries",
    "record": "record",
    "conversation": "conversation",
    "tool_calls": "tool calls",
    "tool_results": "tool results",
    "attachments": "attachments",
}
"""The same words on the screen and in pictures."""


def message_parts(message: Message) -> Counter[str]:
    """Raw tokens of one message by kind; they sum to `message_tokens`."""
    calls = sum(map(call_tokens, message.tool_calls))
    files = 0
    if message.role == "user" and isinstance(message.content, tuple):
        files = sum(part_tokens(part) for part in message.content if not isinstance(part, TextPart))
    said = message_tokens(message) - calls
    files = min(files, said)
    kind = "tool_results" if message.role == "tool" else "conversation"
    return +Counter({kind: said - files, "tool_calls": calls, "attachments": files})


def summary_parts(message: Message, summary: Summary) -> Counter[str]:
    """Raw tokens of a summary as it is sent: its prose with its heading, and the record by code after it."""
    whole = message_tokens(message)
    rest = summary.text.partition(summary.prose or "\n\n")[2]
    record = min(whole, text_tokens(rest.strip()))
    return +Counter({"summaries": whole - record, "record": record})


def item_parts(history: History, item: Item) -> Counter[str]:
    """Raw tokens of one item of a view, as the history counts."""
    if isinstance(item, Verbatim):
        return run_parts(history, item.first, item.last)
    shown = history.shown(item)
    match item:
        case Summary() if shown is not None:
            return summary_parts(shown, item)
        case Marker() if shown is not None:
            # Its line is in the place of a summary.
            return Counter({"summaries": message_tokens(shown)})
        case _ if shown is not None:
            return _as_counted(history, shown)
        case _:
            return Counter()


def run_parts(history: History, first: int, last: int) -> Counter[str]:
    """Raw tokens of the messages first … last as they are."""
    total: Counter[str] = Counter()
    for entry in history.entries[first - 1 : last]:
        total.update(_as_counted(history, entry.message))
    return total


class LogParts:
    """Running counts over a whole log: the size of any view for any end of the log, after one look."""

    def __init__(self, history: History) -> None:
        self._history = history
        counted = [message_parts(entry.message) for entry in history.entries]
        self._sums = {kind: list(accumulate((one[kind] for one in counted), initial=0)) for kind in TALK}
        self._items: dict[int, Counter[str]] = {}

    def shown(self, number: int, view: View, end: int) -> Counter[str]:
        """Raw tokens by kind of the view of this number, when the log ended at `end`."""
        if number not in self._items:
            items: Counter[str] = Counter()
            for item in view.items:
                if isinstance(item, Verbatim):
                    items.update(self._run(item.first, item.last))
                else:
                    items.update(item_parts(self._history, item))
            self._items[number] = items
        return self._items[number] + self._run(view.tail, end)

    def _run(self, first: int, last: int) -> Counter[str]:
        if last < first:
            return Counter()
        return Counter({kind: sums[last] - sums[first - 1] for kind, sums in self._sums.items()})


def view_parts(history: History, view: View | None = None, end: int | None = None) -> Counter[str]:
    """Raw tokens of all that a view shows when the log ends at `end`.

    Without them, of the history's view now: they sum to `History.view_tokens`.
    """
    view, end = view or history.view, history.head if end is None else end
    total: Counter[str] = Counter()
    for item in view.items:
        total.update(item_parts(history, item))
    total.update(run_parts(history, view.tail, end))
    return total


def split(total: int, weights: Mapping[str, int]) -> dict[str, int]:
    """`total` in proportion to the weights, in whole tokens that add up to it; largest remainders are rounded up.

    If nothing weighs anything, the first kind has all.
    """
    names = list(weights)
    whole = sum(weights.values())
    if not whole:
        return {name: total if place == 0 else 0 for place, name in enumerate(names)}
    shares = {name: divmod(total * weights[name], whole) for name in names}
    found = {name: share for name, (share, _) in shares.items()}
    missing = total - sum(found.values())
    for name in sorted(names, key=lambda name: -shares[name][1])[:missing]:
        found[name] += 1
    return found


def parts_of(breakdown: Mapping[str, int], fixed_raw: Mapping[str, int], talk_raw: Mapping[str, int]) -> dict[str, int]:
    """A measurement's breakdown (see `Measurement`) by kind; the parts sum to the same `used`.

    fixed_raw, talk_raw  raw tokens by kind, of every request's own parts and of the view
    """
    system, tools = breakdown["system_prompt"], breakdown["tool_definitions"]
    talk = sum(breakdown.values()) - system - tools
    if system and not any(talk_raw.values()):
        # No messages yet: the tokens of a request beside its texts go along with every one.
        system, talk = system + talk, 0
    found = split(system, {kind: fixed_raw.get(kind, 0) for kind in FIXED[:2]})
    found |= split(tools, {kind: fixed_raw.get(kind, 0) for kind in FIXED[2:]})
    found |= split(talk, {kind: talk_raw.get(kind, 0) for kind in ("conversation", *TALK)})
    return {kind: found[kind] for kind in KINDS}


def _as_counted(history: History, message: Message) -> Counter[str]:
    """With the tokens that each call adds beside its text."""
    parts = message_parts(message)
    if message.tool_calls:
        parts["tool_calls"] += history.call_raw * len(message.tool_calls)
    return parts
