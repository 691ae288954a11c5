"""Break usage down by item, tool and file, and find files that were read more than once.

Only shown messages count, however long the log is. Counts are in tokens: items add up to the measured request, and so
do kinds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass

from nca.agent.mentions import said_and_attached
from nca.agent.window import Window
from nca.context.draft import Draft
from nca.context.file_reads import file_use, file_uses
from nca.context.importance import importances
from nca.context.parts import TALK, item_parts, parts_of, run_parts, split, view_parts
from nca.context.record.called import asked
from nca.context.stages.deduplicate import superseded
from nca.context.tokenizers import tools_text, tools_tokens
from nca.context.tokens import call_tokens, part_tokens, text_tokens
from nca.context.view import Marker, Stub, Summary, Verbatim
from nca.humanize import counted, one_line
from nca.messages import Message, ToolCall
from nca.tools.mcp.tool import PREFIX
from nca.wire import content_text

HEAVIEST = 20
_LABEL_CHARS = 120
EXCERPT_CHARS = 400
_ASKED_CHARS = 60
"""Of a command: several calls share a line."""


@dataclass(frozen=True, slots=True)
class HeavyItem:
    """A shown message, summary or marker with its tokens.

    id       a message's number or a summary's or marker's id, as /context show, pin, collapse and expand take it
    score    how important it is to keep, 0 … 1; None for a summary or marker
    reasons  why, in a few words each, the strongest first
    """

    label: str
    tokens: int
    id: str = ""
    score: float | None = None
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ContextItem(HeavyItem):
    """The same with what a list of all needs.

    kind            what most of its tokens are (`nca.context.parts.KINDS`)
    excerpt         how its text begins
    is_whole        it is a message as it was written; False for a summary, a marker and a message that was shortened
    is_collapsible  False if it may not be collapsed, or is as short already
    """

    kind: str = "conversation"
    excerpt: str = ""
    is_whole: bool = True
    is_collapsible: bool = False


@dataclass(frozen=True, slots=True)
class RoleShare:
    """The size of the shown messages of one role.

    role  "summary" for summaries and markers
    """

    role: str
    messages: int
    tokens: int
    chars: int


@dataclass(frozen=True, slots=True)
class RepeatedReads:
    """A file that was read again.

    seqs    the earlier reads, as numbers of messages
    tokens  what they take without need
    """

    path: str
    seqs: tuple[int, ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class UsageBreakdown:
    """What the window is full of. Each list has the largest first.

    by_tool   names of tools, each with the tokens of its calls and results
    by_file   paths, each with the tokens of its reads, changes and attachments
    repeated  files that were read more than once
    """

    heaviest: tuple[HeavyItem, ...] = ()
    by_role: tuple[RoleShare, ...] = ()
    by_tool: tuple[tuple[str, int], ...] = ()
    by_file: tuple[tuple[str, int], ...] = ()
    repeated: tuple[RepeatedReads, ...] = ()


def usage_breakdown_of(window: Window) -> UsageBreakdown:
    """The breakdown of `window`. It looks at every shown message."""
    found = _Weighing(window)
    items = sorted(found.items(()), key=lambda item: -item.tokens)
    return UsageBreakdown(
        tuple(HeavyItem(one.label, one.tokens, one.id, one.score, one.reasons) for one in items[:HEAVIEST]),
        tuple(sorted(found.by_role(), key=lambda share: -share.tokens)),
        tuple(found.by_tool.most_common()),
        tuple(found.by_file.most_common()),
        found.repeated(),
    )


def window_parts(window: Window) -> dict[str, int]:
    """The measured tokens by kind (`nca.context.parts.KINDS`)."""
    meter = window.meter
    of_project = min(meter.system_raw, text_tokens(window.prompt.project))
    own = [tool for tool in window.tools if not tool["function"]["name"].startswith(PREFIX)]
    own_raw, tokenizer = meter.tools_raw, meter.calibration.tokenizer
    if len(own) < len(window.tools):
        own_raw = tools_tokens(tools_text(own, tokenizer), tokenizer)
    fixed = {
        "system_prompt": meter.system_raw - of_project,
        "instructions": of_project,
        "tool_definitions": min(own_raw, meter.tools_raw),
        "mcp_tools": max(0, meter.tools_raw - own_raw),
    }
    talk = view_parts(window.history)
    talk["attachments"] += meter.waiting_raw
    return parts_of(window.measure().breakdown, fixed, talk)


def items_of(window: Window, collapsible: Container[int]) -> list[ContextItem]:
    """All that the model is shown of the log, in its order. `collapsible`: the numbers of messages that may become
    shorter."""
    return list(_Weighing(window).items(collapsible))


def sizes_of(window: Window, seqs: Iterable[int]) -> dict[int, int]:
    """What each message takes of the next request, as the list says it; of one that it does not show whole, what it
    would take."""
    return _Weighing(window).sizes(seqs)


@dataclass(slots=True)
class _Shown:
    """A message as shown. `seq`: its number; `item`: the item that replaces it, if any.

    raw  raw tokens by kind
    """

    message: Message
    raw: Counter[str]
    seq: int = 0
    item: Stub | Summary | Marker | None = None


class _Weighing:
    """Collects the breakdown in one pass. All that it counts has one scale: each kind adds up to its part."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._history = window.history
        self._calls: dict[str, ToolCall] = {}
        self.shown = list(_shown(window))
        parts = window_parts(window)
        self._tokens = [0] * len(self.shown)
        """Of each item, so that they add up to what `/context` shows."""
        self._talk, self._raw = 0, 0
        for kind in TALK:
            weights = {str(place): shown.raw[kind] for place, shown in enumerate(self.shown) if shown.raw[kind]}
            for place, tokens in split(parts[kind], weights).items():
                self._tokens[int(place)] += tokens
            if weights:
                self._talk, self._raw = self._talk + parts[kind], self._raw + sum(weights.values())
        self.by_tool: Counter[str] = Counter()
        self.by_file: Counter[str] = Counter()
        for item in self.shown:
            self._take(item)

    def _scaled(self, raw: int) -> int:
        return round(raw * self._talk / self._raw) if self._raw else self._window.meter.scaled(raw)

    def sizes(self, seqs: Iterable[int]) -> dict[int, int]:
        whole = {one.seq: tokens for one, tokens in zip(self.shown, self._tokens, strict=True) if one.item is None}
        history = self._history
        return {seq: whole[seq] if seq in whole else self._scaled(history.run_tokens(seq, seq)) for seq in seqs}

    def items(self, collapsible: Container[int]) -> Iterator[ContextItem]:
        scores = importances(self._history.visible(), self._history.pins)
        for shown, tokens in zip(self.shown, self._tokens, strict=True):
            item, message = shown.item, shown.message
            calls = " ".join(f"→ {call.name} {call.arguments[:EXCERPT_CHARS]}" for call in message.tool_calls)
            excerpt = (message.text or calls)[:EXCERPT_CHARS]
            if isinstance(item, Summary | Marker):
                hidden = sum(last - first + 1 for first, last in item.ranges)
                summary = "summary and record" if shown.raw["record"] else "summary"
                label = summary if isinstance(item, Summary) else f"{counted(hidden, 'message')} left out"
                yield ContextItem(label, tokens, item.id, kind="summaries", excerpt=excerpt, is_whole=False)
                continue
            label = _label(shown, self._calls.get(message.tool_call_id))
            known = scores.get(shown.seq)
            score, reasons = (known.score, known.reasons) if known is not None else (None, ())
            kind = next((kind for kind, _ in shown.raw.most_common(1)), "conversation")
            can = shown.seq in collapsible
            yield ContextItem(label, tokens, str(shown.seq), score, reasons, kind, excerpt, item is None, can)

    def repeated(self) -> tuple[RepeatedReads, ...]:
        """The reads that the deduplicate stage would replace by pointers, by file."""
        if not any(file_uses(self._history.visible())):
            return ()
        files: dict[str, tuple[list[int], int]] = {}
        for one in superseded(Draft(self._history, self._window.meter)):
            seqs, raw = files.get(one.path, ([], 0))
            files[one.path] = ([*seqs, one.seq], raw + one.saved_raw)
        found = [RepeatedReads(path, tuple(seqs), self._scaled(raw)) for path, (seqs, raw) in files.items()]
        return tuple(sorted(found, key=lambda one: -one.tokens))

    def by_role(self) -> Iterator[RoleShare]:
        roles: dict[str, list[_Shown]] = {}
        tokens: Counter[str] = Counter()
        for shown, share in zip(self.shown, self._tokens, strict=True):
            role: str = "summary" if isinstance(shown.item, Summary | Marker) else shown.message.role
            roles.setdefault(role, []).append(shown)
            tokens[role] += share
        for name, group in roles.items():
            chars = sum(len(content_text(shown.message.content)) for shown in group)
            chars += sum(len(call.arguments) for shown in group for call in shown.message.tool_calls)
            yield RoleShare(name, len(group), tokens[name], chars)

    def _take(self, item: _Shown) -> None:
        scaled, message = self._scaled, item.message
        for call in message.tool_calls:
            self._calls[call.id] = call
            tokens = scaled(call_tokens(call) + self._history.call_raw)
            self.by_tool[call.name] += tokens
            if path := _path(call):
                self.by_file[path] += tokens
        if message.role == "tool":
            raw = item.raw.total()
            call_made = self._calls.get(message.tool_call_id)
            self.by_tool[message.name or (call_made.name if call_made else "tool")] += scaled(raw)
            if call_made is not None and (path := _path(call_made)):
                self.by_file[path] += scaled(raw)
        for part in message.attachments:
            self.by_file[part.path] += scaled(part_tokens(part))


def _shown(window: Window) -> Iterator[_Shown]:
    history = window.history
    for item in (*history.view.items, Verbatim(history.view.tail, history.head)):
        if isinstance(item, Verbatim):
            for entry in history.entries[item.first - 1 : item.last]:
                yield _Shown(entry.message, run_parts(history, entry.seq, entry.seq), entry.seq)
        else:
            message = history.shown(item) or Message("user", "", source="nca")
            yield _Shown(message, item_parts(history, item), item.seq if isinstance(item, Stub) else 0, item)


def _path(call: ToolCall) -> str:
    use = file_use(call)
    return use.path if use is not None else ""


def _about(call: ToolCall) -> str:
    """The file of a call; of another call what it asked for, such as its command."""
    return _path(call) or one_line(asked(call, _ASKED_CHARS).removeprefix(call.name).strip(), _ASKED_CHARS)


def _label(item: _Shown, call: ToolCall | None) -> str:
    message = item.message
    short = " (shortened)" if item.item is not None else ""
    if message.role == "tool":
        about = f" {what}" if call is not None and (what := _about(call)) else ""
        return f"result of {message.name or (call.name if call else 'a tool')}{about}{short}"
    who = message.role if message.role != "user" else "nca" if message.is_synthetic else "you"
    if not message.text.strip() and message.tool_calls:
        return f"{who}: → {', '.join(f'{call.name} {_about(call)}'.rstrip() for call in message.tool_calls)}{short}"
    said = one_line(said_and_attached(message)[: 4 * _LABEL_CHARS], _LABEL_CHARS)
    return f"{who}: {said}{short}" if said else f"{who}{short}"
