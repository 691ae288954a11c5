"""Neuron's strategies: the stages for programs that hold their own list of messages.

    strategy = SlidingWindow(keep_last=20, max_tokens=100_000)
    if strategy.should_compact(messages, strategy.token_estimate(messages)):
        messages = strategy.compact(messages)

Each is built on the engine, so the result is a valid request whatever the log: a tool call and its results stay
or go together, system messages stay, and so do the newest user message and a step that waits for results. It is
smaller than what was handed in, or the same. Nothing handed in is changed.

All take `max_tokens`, the estimate above which `should_compact` says yes, and as keywords `preset`, `provider` and
`chars_per_token`, which say how tokens are counted (see `nca.estimate_messages_tokens`; Neuron's own way is "neuron").
The result follows the rules of `provider`, or of all four providers if it is "". `compact` acts whenever it is
called, as in Neuron.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal

from nca.compat.presets import PresetName
from nca.config.schema import SummarizeSettings
from nca.context.draft import Block, Draft, Part, covered
from nca.context.driver import drive
from nca.context.history import History
from nca.context.importance import importances
from nca.context.meter import Meter
from nca.context.record.compose import SLACK_TOKENS, Composer, Prose
from nca.context.record.text import PREFACE, read_again
from nca.context.request import repair, request_messages
from nca.context.stages.custom import Strategy
from nca.context.summary import Written, clean_prose, is_summary
from nca.context.summary_writer import BY_CODE, write
from nca.context.tokens import text_tokens
from nca.context.view import Marker, Summary, View
from nca.errors import InvalidMessages, UsageError
from nca.humanize import kind_name, one_line
from nca.library.counting import estimate_messages_tokens
from nca.library.engine import Summarizer, asking
from nca.library.inputs import history_of, is_list, read_messages, read_text, read_whole
from nca.messages import Message
from nca.wire import message_to_dict

CLEARED = "[tool result cleared]"
SUMMARY_PREFIX = "[Summary of earlier conversation]"
"""Neuron's texts."""
MAX_ERROR_CHARS = 200
SUMMARY_TOKENS = 1_024
"""The longest summary that Neuron asks for."""
SUMMARY_SHARE = 2
"""A summary takes at most this share (a half) of the messages that it replaces."""
ASSUMED_WINDOW_TOKENS = 128_000
"""The summarizer's window if none is given."""
INPUT_RATIO = 0.6
"""The share of that window which it is shown; the rest is for the instruction, its answer and what estimates miss."""

Messages = Sequence[Mapping[str, Any]]
Rows = list[dict[str, Any]]


class _Limited:
    __slots__ = ()
    max_tokens: int
    """A field of each strategy, after its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counting(_Limited):
    """When to act, and how tokens are counted: the half of the protocol that all strategies share."""

    preset: PresetName | Literal[""] = ""
    provider: str = ""
    chars_per_token: float | None = None

    def should_compact(self, messages: Messages, token_count: int) -> bool:
        """Whether `token_count` is above `max_tokens`."""
        return token_count > self.max_tokens

    def token_estimate(self, messages: Messages) -> int:
        """Tokens of these messages as a request; 0 for none. Raises InvalidMessages."""
        return estimate_messages_tokens(
            messages, provider=self.provider, preset=self.preset, chars_per_token=self.chars_per_token
        )

    def _check(self, *names: str) -> None:
        """Raises UsageError for a number or a name that is none."""
        for name in (*names, "max_tokens"):
            object.__setattr__(self, name, read_whole(getattr(self, name), name))
        self.token_estimate([])

    def _draft(self, messages: Messages) -> Draft:
        """The conversation for stages to work on; an earlier summary in it is nobody's own words."""
        draft = Draft(history_of(read_messages(messages)), Meter(provider=self.provider))
        for block in draft.blocks():
            # The caller of a strategy says how much stays: results without an answer yet are as any other.
            block.is_locked = block.is_locked and not block.is_unseen
            if not block.is_locked and all(is_summary(draft.history.message(seq)) for seq in block.seqs):
                draft.replace([block], _as_summary(draft, block))
        return draft

    def _request(self, draft: Draft) -> Rows:
        """The draft's messages, or the original conversation if they are not smaller; repaired."""
        view, unchanged = draft.view(), View()
        before = draft.meter.raw_with(draft.history, unchanged)
        is_smaller = draft.meter.raw_with(draft.history, view) < before
        return request_messages(draft.history, view=view if is_smaller else unchanged, provider=self.provider)


@dataclass(frozen=True, slots=True)
class SlidingWindow(_Counting):
    """System messages and the newest `keep_last` other messages; all older ones are dropped.

    A window that would begin between a call and its results begins before the call. Raises UsageError.
    """

    keep_last: int
    max_tokens: int

    def __post_init__(self) -> None:
        self._check("keep_last")

    def compact(self, messages: Messages) -> Rows:
        """The newest messages as a valid request. Raises InvalidMessages."""
        draft = self._draft(messages)
        gone = _older(draft, self.keep_last)
        if gone:
            draft.replace(gone, Marker(_id(gone), covered(gone), ""))
        return self._request(draft)


@dataclass(frozen=True, slots=True)
class ToolResultClearing(_Counting):
    """The content of all tool results but the newest `keep_results` becomes "[tool result cleared]".

    Calls, ids and a failure's first line stay, and so does a result that is shorter than the placeholder. Raises
    UsageError.
    """

    keep_results: int
    max_tokens: int

    def __post_init__(self) -> None:
        self._check("keep_results")

    def compact(self, messages: Messages) -> Rows:
        """The same messages with old results cleared. Raises InvalidMessages."""
        draft = self._draft(messages)
        newest = 0
        for block in reversed(draft.blocks()):
            for seq in reversed(block.seqs):
                message = draft.history.message(seq)
                newest += message.role == "tool"
                if message.role != "tool" or newest <= self.keep_results or block.is_locked:
                    continue
                text = _cleared(message)
                if draft.saving(block, seq, text) > 0:
                    draft.put_stub(block, seq, text, "prune")
        return self._request(draft)


@dataclass(frozen=True, slots=True)
class Summarization(_Counting):
    """The older messages become one summary, "[Summary of earlier conversation]"; the newest `keep_last` stay.

    summarizer      takes a list of messages (what to ask a model) and returns its text. It is asked once, or once for
                    each part of what its window cannot hold at a time. Where it raises, refuses or gives nothing
                    usable, it is asked once more, then code continues with an extract; if it is None, code does all
    focus           what the summary should keep above all
    window_tokens   the summarizer's window, which bounds what it is shown; 0: 128,000
    """

    summarizer: Summarizer | None
    keep_last: int
    max_tokens: int
    focus: str = field(default="", kw_only=True)
    window_tokens: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        self._check("keep_last", "window_tokens")
        read_text(self.focus, "focus")
        asking(self.summarizer)

    def compact(self, messages: Messages) -> Rows:
        """A summary and the newest messages as a valid request. Raises InvalidMessages."""
        draft = self._draft(messages)
        gone = _older(draft, self.keep_last)
        if not gone:
            return self._request(draft)
        # An earlier summary is merged, and nothing in it is taken for talk.
        earlier = [part for part in draft.parts if isinstance(part, Summary)]
        written = self._write(draft, gone, earlier)
        if written.prose:
            text = f"{SUMMARY_PREFIX}\n{written.prose}"
            leaving: list[Part] = [*earlier, *gone]
            summary = Summary(_id(gone, text), covered(leaving), text, written.prose, made_by=written.made_by)
            draft.replace(leaving, summary)
        return self._request(draft)

    def _write(self, draft: Draft, gone: Sequence[Block], earlier: Sequence[Summary]) -> Written:
        """Ask in full, then for a short list; without a usable answer, code writes an extract."""
        entries = [draft.history.entries[seq - 1] for block in gone for seq in block.seqs]
        room = min(SUMMARY_TOKENS, sum(block.raw for block in gone) // SUMMARY_SHARE)
        window = self.window_tokens or ASSUMED_WINDOW_TOKENS
        writing = write(
            [entry.message for entry in entries],
            existing=[one.prose for one in earlier if one.prose],
            live=(),
            focus=self.focus,
            max_tokens=room if self.summarizer is not None else 0,
            input_tokens=int(window * INPUT_RATIO / draft.meter.calibration.ratio),
            scores=lambda: [one.score for one in importances(entries).values()],
        )
        written = drive(writing, asking(self.summarizer))
        if written.prose:
            return written
        return Written(_record(draft.history, [*earlier, *gone], room), BY_CODE, written.failures)


@dataclass(frozen=True, slots=True)
class Composite(_Counting):
    """Several strategies in order, cheapest first, each only while the estimate is still above `max_tokens`.

    Only the composite's own `max_tokens` counts. What a strategy returns is repaired, and taken where it is smaller.
    Raises UsageError.
    """

    strategies: Sequence[Strategy]
    max_tokens: int

    def __post_init__(self) -> None:
        if not is_list(self.strategies):
            raise UsageError(f"strategies: expected a list of strategies, found {kind_name(self.strategies)}.")
        if not self.strategies:
            raise UsageError("strategies: the list is empty; expected at least one strategy.")
        for index, strategy in enumerate(self.strategies, 1):
            if isinstance(strategy, type) or not isinstance(strategy, Strategy):
                raise UsageError(
                    f"strategies, entry {index}: {kind_name(strategy)} is no strategy; valid: an object with"
                    " should_compact, compact and token_estimate."
                )
        object.__setattr__(self, "strategies", tuple(self.strategies))
        self._check()

    def compact(self, messages: Messages) -> Rows:
        """The messages after as many strategies as were needed.

        Raises InvalidMessages, also where a strategy's answer is not a list of messages.
        """
        current = repair(read_messages(messages), self.provider)
        for strategy in self.strategies:
            tokens = self.token_estimate(_rows(current))
            if tokens <= self.max_tokens:
                break
            try:
                answer = repair(read_messages(strategy.compact(_rows(current))), self.provider)
            except InvalidMessages as error:
                raise InvalidMessages(f"{type(strategy).__name__}.compact gave {error.message}") from error
            if self.token_estimate(_rows(answer)) < tokens:
                current = answer
        return _rows(current)


def _older(draft: Draft, keep_last: int) -> list[Block]:
    """The blocks before the newest `keep_last` messages that are not the system's, less what may not be touched."""
    gone: list[Block] = []
    kept = 0
    for block in reversed(draft.blocks()):
        if kept >= keep_last and not block.is_locked:
            gone.insert(0, block)
        else:
            kept += sum(draft.history.message(seq).role != "system" for seq in block.seqs)
    return gone


def _as_summary(draft: Draft, block: Block) -> Summary:
    """A message that is a summary, as an item of a view."""
    message = draft.history.message(block.first)
    role: Literal["user", "system"] = "system" if message.role == "system" else "user"
    return Summary(_id([block], message.text), covered([block]), message.text, clean_prose(message.text), role=role)


def _record(history: History, gone: Sequence[Part], room: int) -> str:
    """Code's text for these parts: a model's text unchanged where there is one, and lines for all others.

    The lines of earlier records are merged with those of the messages, so that records do not add up.

    room   raw tokens for what is new
    """
    earlier = [part.text for part in gone if isinstance(part, Summary)]
    prose = sum(text_tokens(read_again(text)[0]) for text in earlier)
    lines = sum(map(text_tokens, earlier)) - prose
    frame = prose + text_tokens(PREFACE) + SLACK_TOKENS
    composer = Composer(history, SummarizeSettings(header=""), numbered=False)
    record = composer.record(covered(gone), frame + min(SUMMARY_TOKENS, room + lines), Prose())
    return record.strip().removeprefix(PREFACE).strip()


def _cleared(message: Message) -> str:
    first = next((line.strip() for line in message.text.splitlines() if line.strip()), "")
    if message.is_error and first and not first.startswith(CLEARED):
        return f"{CLEARED} {one_line(first, MAX_ERROR_CHARS)}"
    return CLEARED


def _id(gone: Sequence[Block], text: str = "") -> str:
    return blake2b(f"{covered(gone)}{text}".encode("utf-8", "replace"), digest_size=4).hexdigest()


def _rows(messages: Sequence[Message]) -> Rows:
    return [message_to_dict(message) for message in messages]


__all__ = ["Composite", "SlidingWindow", "Strategy", "Summarization", "ToolResultClearing"]
