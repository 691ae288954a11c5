"""Generated sessions as the engine compacts them: at once, in other rooms, again and again, by chat and by library."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import takewhile
from random import Random
from typing import Any

import msgspec

import nca
from nca.config.schema import ContextSettings
from nca.context.budget import Budget
from nca.context.driver import run
from nca.context.history import History
from nca.context.meter import Meter
from nca.context.plan import compact, no_summarizer
from nca.context.request import request_messages
from nca.context.tokens import CONVERSATION_TOKENS, message_tokens
from nca.context.view import Marker, Stub, Summary, Verbatim, View
from nca.errors import ContextDoesNotFit
from nca.messages import Entry, Message
from nca.wire import message_to_dict
from tests.context.generated_sessions import GeneratedSession, Said

TOKEN = re.compile(r"(?<![a-z0-9])[b-z]{2}[2-9][b-z][2-9][b-z]{2}(?![a-z0-9])")
LEAST_RESULT_TOKENS = 160
"""A result that the model has not seen yet may keep so much, whatever else there is."""
RATIOS = (0.3, 0.6)
"""A smaller and a larger room, as shares of the budget."""
EARLIER, LOOPS = 4, 5
"""Compactions of a chat before the one that is looked at; how often the library compacts in a loop."""
Row = dict[str, Any]


class Outcome(msgspec.Struct, frozen=True, dict=True):
    """A session as far as it went, and what came of a compaction.

    rows        the request
    view        of what nca.compact returns, with nothing behind its items
    has_recall  the model can ask for what is not shown
    """

    messages: tuple[Message, ...]
    said: tuple[Said, ...]
    rows: list[Row]
    view: View
    compacted: bool
    after_tokens: int
    target_tokens: int
    budget_tokens: int
    has_recall: bool

    @cached_property
    def shown(self) -> frozenset[str]:
        """The tokens that can be read in the request."""
        return frozenset(TOKEN.findall("\n".join(map(text_of_row, self.rows))))

    @cached_property
    def records(self) -> list[str]:
        return [item.text for item in self.view.items if isinstance(item, Summary)]

    @cached_property
    def own_texts(self) -> list[str]:
        """What nca wrote: records, placeholders, and what says that something was left out."""
        return [item.text for item in self.view.items if isinstance(item, Summary | Marker | Stub)]

    @cached_property
    def sections(self) -> dict[str, list[str]]:
        """The entries of the record by heading; an entry is a line and the indented ones behind it."""
        found: dict[str, list[str]] = {}
        heading = ""
        for line in "\n".join(self.records).splitlines():
            if line.startswith("### "):
                heading = line[4:].strip()
                found.setdefault(heading, [])
            elif heading and line[:1].isspace() and found[heading]:
                found[heading][-1] += "\n" + line
            elif heading and line.strip():
                found[heading].append(line)
        return found

    @cached_property
    def fixed_tokens(self) -> int:
        return fixed_tokens(self.messages, self.budget_tokens)


def text_of_row(row: Row) -> str:
    content = row.get("content") or ""
    if not isinstance(content, str):
        content = "\n".join(part.get("text", "") for part in content)
    return "\n".join([content, *(given(call["function"]["arguments"]) for call in row.get("tool_calls") or ())])


def given(arguments: str) -> str:
    """What a call's arguments say: JSON has a line break as a backslash and a letter, which would join two words."""
    return "\n".join(map(str, msgspec.json.decode(arguments).values()))


def newest_user(messages: Iterable[Message]) -> int:
    return max((seq for seq, message in enumerate(messages, 1) if message.role == "user"), default=0)


def fixed_tokens(messages: Sequence[Message], budget_tokens: int) -> int:
    """What cannot be compacted: system prompt, the newest message of the person, calls that wait for the model."""
    tokens = CONVERSATION_TOKENS + sum(message_tokens(message) for message in messages if message.role == "system")
    newest = newest_user(messages)
    own = message_tokens(messages[newest - 1]) if newest else 0
    tokens += own if tokens + own <= budget_tokens else max(0, budget_tokens - tokens) // 2
    results = len(list(takewhile(lambda message: message.role == "tool", reversed(messages))))
    for message in messages[-results - 1 :] if results else ():
        size = message_tokens(message)
        tokens += min(size, LEAST_RESULT_TOKENS) if message.role == "tool" else size
    return tokens


class Chat:
    """A conversation that grows and is compacted now and then, as the chat does it."""

    def __init__(self, made: GeneratedSession) -> None:
        self.made, self.meter, self.budget = made, Meter(), Budget.of(made.window_tokens)
        self.history = History()

    def grow(self, head: int) -> None:
        """Go on to this message."""
        for seq in range(self.history.head + 1, head + 1):
            self.history.append(Entry(seq, self.made.messages[seq - 1]))

    def compact(self, ratio: float = 0.0, *, grows: bool = False) -> Outcome | None:
        """None where the request is refused; `ratio` is the target's share of the budget, 0 the default."""
        settings = ContextSettings(target_ratio=ratio) if ratio else ContextSettings()
        planning = compact(self.history, self.meter, self.budget, settings, has_summarizer=False, grows=grows)
        try:
            proposal = run(planning, no_summarizer)
        except ContextDoesNotFit:
            return None
        self.history.view, head = proposal.view, self.history.head
        return Outcome(
            self.made.messages[:head],
            tuple(said for said in self.made.said if said.message <= head),
            request_messages(self.history),
            proposal.view,
            proposal.compacted,
            proposal.tokens_after,
            proposal.target_tokens,
            proposal.budget_tokens,
            has_recall=True,
        )


def in_library(made: GeneratedSession, rows: list[Row]) -> Outcome | None:
    """The same by `nca.compact`, of rows that stand for the whole session."""
    try:
        result = nca.compact(rows, context_window=made.window_tokens)
    except ContextDoesNotFit:
        return None
    view = View(msgspec.convert(result.items, tuple[Summary | Marker | Stub | Verbatim, ...]))
    sizes = result.tokens_after, result.target_tokens, result.budget_tokens
    return Outcome(made.messages, made.said, result.messages, view, result.compacted, *sizes, has_recall=False)


class Trial:
    """A session with the compactions that the laws ask for; each is made once."""

    def __init__(self, made: GeneratedSession) -> None:
        self.made, self.budget = made, Budget.of(made.window_tokens)
        starts = [place for place, message in enumerate(made.messages) if place and message.role == "assistant"]
        self.requests = [*starts, len(made.messages)]
        """After how many messages the model was asked."""

    def rows(self, *, annotate: bool = False) -> list[Row]:
        return [message_to_dict(message, annotate=annotate) for message in self.made.messages]

    def _chat(self, ratio: float = 0.0) -> Outcome | None:
        chat = Chat(self.made)
        chat.grow(len(self.made.messages))
        return chat.compact(ratio)

    @cached_property
    def chat(self) -> Outcome | None:
        return self._chat()

    @cached_property
    def library(self) -> Outcome | None:
        """Every second session comes with nca's marks of errors and sources, the others as any program's."""
        return in_library(self.made, self.rows(annotate=True)) if self.made.seed % 2 else self.plain

    @cached_property
    def plain(self) -> Outcome | None:
        """By the library, of rows without marks."""
        return in_library(self.made, self.rows())

    @cached_property
    def looped(self) -> Outcome | None:
        """By the library again and again: what it returned, with what came since."""
        heads = sorted({self.requests[len(self.requests) * part // LOOPS - 1] for part in range(1, LOOPS + 1)})
        all_rows, rows, done = self.rows(), list[Row](), 0
        outcome: Outcome | None = None
        for head in heads:
            outcome = in_library(self.made, [*rows, *all_rows[done:head]])
            if outcome is None:
                return None
            rows, done = outcome.rows, head
        return outcome

    @cached_property
    def rooms(self) -> tuple[Outcome | None, Outcome | None]:
        """In a smaller and a larger room."""
        small, large = map(self._chat, RATIOS)
        return small, large

    @cached_property
    def continued(self) -> tuple[Chat, int, Outcome | None]:
        """A chat that was compacted before, to other targets; its tokens before the last compaction, which is here."""
        chat, earlier = Chat(self.made), self.requests[:-1]
        rng = Random(self.made.seed)
        for place, head in enumerate(sorted(rng.sample(earlier, min(len(earlier), EARLIER)))):
            chat.grow(head)
            chat.compact((*RATIOS, 0.0)[place % 3])
        chat.grow(len(self.made.messages))
        return chat, chat.meter.used(chat.history), chat.compact()

    @cached_property
    def grown(self) -> Outcome | None:
        """What a chat shows again that was compacted to a smaller target."""
        chat = Chat(self.made)
        chat.grow(len(self.made.messages))
        small = chat.compact(RATIOS[0])
        return chat.compact(grows=True) if small is not None and small.compacted else None

    def outcomes(self) -> list[Outcome]:
        """What was compacted by chat and library."""
        return [outcome for outcome in (self.chat, self.library) if outcome is not None and outcome.compacted]
