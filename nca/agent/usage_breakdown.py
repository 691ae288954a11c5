"""Break usage down by item, tool and file, and find files that were read more than once.

Only shown messages count, however long the log is. Counts are in tokens, scaled as the meter scales them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from nca.agent.window import Window
from nca.context.draft import Draft
from nca.context.file_reads import file_use, file_uses
from nca.context.importance import importances
from nca.context.stages.deduplicate import superseded
from nca.context.tokens import RESULT_CHARS_PER_TOKEN, call_tokens, frame_tokens, text_tokens
from nca.context.view import Stub, Summary, Verbatim
from nca.messages import AttachmentPart, Message, ToolCall

HEAVIEST = 20
_LABEL_CHARS = 60


@dataclass(frozen=True, slots=True)
class HeavyItem:
    """A shown message or summary with its tokens.

    id       a message's number or a summary's id, as /context show, pin, collapse and expand take it
    score    how important it is to keep, 0 … 1; None for a summary
    reasons  why, in a few words each, the strongest first
    """

    label: str
    tokens: int
    id: str = ""
    score: float | None = None
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RepeatedReads:
    """A file that was read again. seqs: the earlier reads; tokens: what they take without need."""

    path: str
    seqs: tuple[int, ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class UsageBreakdown:
    """Each list has the largest first. by_tool: calls and results. by_file: reads, changes and attachments."""

    heaviest: tuple[HeavyItem, ...] = ()
    by_tool: tuple[tuple[str, int], ...] = ()
    by_file: tuple[tuple[str, int], ...] = ()
    repeated: tuple[RepeatedReads, ...] = ()


def usage_breakdown_of(window: Window) -> UsageBreakdown:
    """The breakdown of `window`. It looks at every shown message."""
    found = _Weighing(window)
    return UsageBreakdown(
        tuple(found.heaviest()),
        tuple(found.by_tool.most_common()),
        tuple(found.by_file.most_common()),
        _repeated(window),
    )


@dataclass(slots=True)
class _Shown:
    """A message as it is shown. `seq`: its number; `summary`: the id, if it is a summary."""

    message: Message
    raw: int
    seq: int = 0
    summary: str = ""
    is_stub: bool = False


class _Weighing:
    """Collects the breakdown in one pass."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._history = window.history
        self._calls: dict[str, ToolCall] = {}
        self.items: list[_Shown] = []
        self.by_tool: Counter[str] = Counter()
        self.by_file: Counter[str] = Counter()
        for item in _shown(window):
            self._take(item)

    def heaviest(self) -> Iterator[HeavyItem]:
        scores = importances(self._history.visible(), self._history.facts, self._history.pins)
        for item in sorted(self.items, key=lambda item: (-item.raw, item.seq))[:HEAVIEST]:
            tokens = self._window.meter.scaled(item.raw)
            if item.summary:
                yield HeavyItem("summary", tokens, item.summary)
                continue
            label = _label(item, self._calls.get(item.message.tool_call_id))
            known = scores.get(item.seq)
            score, reasons = (known.score, known.reasons) if known is not None else (None, ())
            yield HeavyItem(label, tokens, str(item.seq), score, reasons)

    def _take(self, item: _Shown) -> None:
        self.items.append(item)
        scaled, message = self._window.meter.scaled, item.message
        for call in message.tool_calls:
            self._calls[call.id] = call
            tokens = scaled(call_tokens(call) + self._history.call_raw)
            self.by_tool[call.name] += tokens
            if path := _path(call):
                self.by_file[path] += tokens
        if message.role == "tool":
            call_made = self._calls.get(message.tool_call_id)
            self.by_tool[message.name or (call_made.name if call_made else "tool")] += scaled(item.raw)
            if call_made is not None and (path := _path(call_made)):
                self.by_file[path] += scaled(item.raw)
        for part in message.attachments:
            self.by_file[part.path] += scaled(_attached(part))


def _shown(window: Window) -> Iterator[_Shown]:
    history = window.history
    for item in (*history.view.items, Verbatim(history.view.tail, history.head)):
        if isinstance(item, Verbatim):
            for entry in history.entries[item.first - 1 : item.last]:
                yield _Shown(entry.message, history.message_tokens(entry.message), entry.seq)
        elif (message := history.shown(item)) is not None:
            raw = history.item_tokens(item)
            match item:
                case Stub(seq):
                    yield _Shown(message, raw, seq, is_stub=True)
                case Summary():
                    yield _Shown(message, raw, summary=item.id)


def _repeated(window: Window) -> tuple[RepeatedReads, ...]:
    """The reads that the deduplicate stage would replace by pointers, by file."""
    if not any(file_uses(window.history.visible())):
        return ()
    files: dict[str, tuple[list[int], int]] = {}
    for one in superseded(Draft(window.history, window.meter)):
        seqs, raw = files.get(one.path, ([], 0))
        files[one.path] = ([*seqs, one.seq], raw + one.saved_raw)
    found = [RepeatedReads(path, tuple(seqs), window.meter.scaled(raw)) for path, (seqs, raw) in files.items()]
    return tuple(sorted(found, key=lambda one: -one.tokens))


def _path(call: ToolCall) -> str:
    use = file_use(call)
    return use.path if use is not None else ""


def _attached(part: AttachmentPart) -> int:
    return text_tokens(part.text, RESULT_CHARS_PER_TOKEN) + frame_tokens(part.path)


def _label(item: _Shown, call: ToolCall | None) -> str:
    message = item.message
    short = " (shortened)" if item.is_stub else ""
    if message.role == "tool":
        about = f" {path}" if call is not None and (path := _path(call)) else ""
        return f"result of {message.name or (call.name if call else 'a tool')}{about}{short}"
    if message.attachments:
        return f"you: @{' @'.join(part.path for part in message.attachments)}{short}"
    who = "you" if message.role == "user" else message.role
    if not message.text.strip() and message.tool_calls:
        return f"{who}: → {', '.join(call.name for call in message.tool_calls)}{short}"
    return f"{who}: {_one_line(message.text)}{short}" if message.text.strip() else f"{who}{short}"


def _one_line(text: str) -> str:
    line = " ".join(text[: 4 * _LABEL_CHARS].split())
    return line if len(line) <= _LABEL_CHARS else line[: _LABEL_CHARS - 1] + "…"
