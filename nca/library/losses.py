"""The losses of a session's compactions: the facts readable before and after each, and with nca.

The session may be another agent's. Facts are found by code, by the same rules for both sides. A fact counts as kept if
it can be read word for word in the request after the compaction; as reworded if one sentence there has most of its
words; else it is lost. Text that an agent adds later (files read again, instructions from files) does not count.

The losses as a page are one HTML file that loads nothing and runs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import ceil
from pathlib import PurePath

from nca.config.loaded import LoadedSettings
from nca.context.history import History
from nca.context.record.called import asked
from nca.context.record.past import Past
from nca.context.request import resolve
from nca.context.tokens import text_tokens
from nca.context.view import Marker, Summary, View, is_in
from nca.errors import ContextDoesNotFit
from nca.library.engine import Engine
from nca.messages import Entry, Message, Usage
from nca.models.catalog import cost_of, money
from nca.sessions.transfer import SessionCopy
from nca.sessions.view_rows import CompactionRecord
from nca.transcripts.descriptions import compaction_positions, new_summaries, session_facts, session_title, utc_time
from nca.transcripts.formats.assemble import ENCRYPTED
from nca.transcripts.html_page import html_escaped, page_head, prose
from nca.transcripts.timeline import timeline

KINDS = {"words": "messages", "files": "changed files", "errors": "open errors"}
"""By kind: how it is named for a person, in the order in which it is shown."""
REWORDED_RATIO = 0.75
"""A sentence with so many of a fact's words rewords it. Lower shares find sentences about something else."""
ERROR_CHARS = 80
"""So much of an error must be readable, as in the benchmarks."""
_SENTENCE = re.compile(r"(?<=[.!?。])\s+|\n+")
_WORD = re.compile(r"[^\W_]{3,}|\d+")


@dataclass(frozen=True, slots=True)
class LostFact:
    """A fact readable before a compaction but not word for word after it, in the words of message `seq`."""

    kind: str
    seq: int
    text: str
    is_reworded: bool
    with_nca: bool


@dataclass(frozen=True, slots=True)
class KindCount:
    """Facts of a kind: stated so far, and readable before, after, after in other words, and with nca."""

    stated: int = 0
    before: int = 0
    after: int = 0
    reworded: int = 0
    with_nca: int = 0


@dataclass(frozen=True, slots=True)
class CompactionLoss:
    """One compaction, after message `after_message`. Sizes in tokens, costs in US dollars (None: unknown).

    view                          the number of the view that it made
    tokens_before, tokens_after   as the agent recorded them; 0 if it did not
    room_tokens                   the size of the conversation after it, by nca's count; nca was given the same
    nca_tokens                    nca's part of it; 0 if it could not compact into it
    is_unreadable                 the summary is encrypted or missing, so what it kept cannot be known
    is_undone                     it was in force for a while, and was undone
    cost                          of writing the summary: as the agent recorded it, else by sizes and prices
    """

    number: int
    view: int
    after_message: int
    trigger: str
    at: float
    tokens_before: int
    tokens_after: int
    room_tokens: int
    nca_tokens: int
    is_unreadable: bool
    cost: float | None
    is_undone: bool = False
    kinds: Mapping[str, KindCount] = field(default_factory=dict)
    lost: tuple[LostFact, ...] = ()


def losses(copy: SessionCopy, loaded: LoadedSettings, *, model: str = "") -> list[CompactionLoss]:
    """The losses of each compaction of the session, oldest first. No model is asked. Raises UsageError, ConfigError."""
    positions = compaction_positions(copy)
    if not positions:
        return []
    engine = Engine(loaded, model or copy.info.model, is_chat=True)
    beside = _Beside(copy, engine)
    return [beside.at(number, seq, record) for number, (seq, record) in enumerate(positions, 1)]


def size_and_cost(one: CompactionLoss) -> str:
    """The effect and cost of the agent's compaction, for a person."""
    before, after = (f"{tokens:,}" if tokens else "unknown" for tokens in (one.tokens_before, one.tokens_after))
    size = f"{before} → {after} tokens" if one.tokens_before or one.tokens_after else "sizes unknown"
    cost = f"about {money(one.cost)} for the summary" if one.cost else "cost of the summary unknown"
    return f"{size}, {cost}{'; undone later' if one.is_undone else ''}"


def nca_size(one: CompactionLoss) -> str:
    """The room that nca used of the room that the compaction left, for a person."""
    if not one.nca_tokens:
        return f"nca cannot compact into the same room of {one.room_tokens:,} tokens."
    if one.nca_tokens > one.room_tokens:
        return f"nca needs more room, so compare with care: {one.nca_tokens:,} tokens, not {one.room_tokens:,}."
    counted = f"counted anew, has {one.room_tokens:,} tokens after it"
    return f"In the same room: the conversation alone, {counted}, and {one.nca_tokens:,} after nca's."


def is_compared(agent: str) -> bool:
    """Whether nca's own compaction stands beside those of the session: not where these are nca's as well."""
    return agent != "nca"


def would_have_kept(lost: Sequence[LostFact]) -> str:
    """How many of these nca would have kept."""
    return f"nca would have kept {sum(fact.with_nca for fact in lost):,} of {len(lost):,}"


class _Beside:
    """The session as its agent compacted it, and as nca would have, compaction by compaction."""

    def __init__(self, copy: SessionCopy, engine: Engine) -> None:
        self._copy, self._engine = copy, engine
        self._aside = copy.view(copy.head_view).aside
        self._log = History()
        """The live messages as nca would have had them, numbered without gaps."""
        self._seqs: list[int] = []
        """The number in the session of each of them."""

    def at(self, number: int, seq: int, record: CompactionRecord) -> CompactionLoss:
        self._read_to(seq)
        entries = self._copy.entries[:seq]
        before, after = (History(entries, self._copy.view(view)) for view in (record.view_before, record.view_after))
        room = self._engine.meter.used(after)
        nca_tokens = self._compact(room)
        is_unreadable = _is_unreadable(self._copy.view(record.view_after))
        texts = tuple(_text(resolve(one)) for one in (before, after, self._log))
        kinds, lost = self._counted(*texts)
        return CompactionLoss(
            number=number,
            view=record.view_after,
            after_message=seq,
            trigger=record.trigger,
            at=record.at,
            tokens_before=record.tokens_before,
            tokens_after=record.tokens_after,
            room_tokens=room,
            nca_tokens=nca_tokens,
            is_unreadable=is_unreadable,
            is_undone=record.undone,
            cost=self._cost(record, after),
            kinds=kinds,
            lost=() if is_unreadable else lost,
        )

    def _read_to(self, seq: int) -> None:
        start = self._seqs[-1] if self._seqs else 0
        for entry in self._copy.entries[start:seq]:
            if not is_in(entry.seq, self._aside):
                self._seqs.append(entry.seq)
                self._log.append(Entry(len(self._seqs), entry.message, entry.at))

    def _compact(self, room_tokens: int) -> int:
        """nca's compaction into the same room; its size, or 0."""
        try:
            proposal = self._engine.run(self._engine.planning(self._log, target_tokens=room_tokens))
        except ContextDoesNotFit:
            return 0
        if proposal.compacted:
            self._log.view = proposal.view
        return self._engine.meter.used(self._log)

    def _counted(self, before: str, after: str, with_nca: str) -> tuple[dict[str, KindCount], tuple[LostFact, ...]]:
        kinds: dict[str, KindCount] = {}
        lost: list[LostFact] = []
        sentences = [set(_words(sentence)) for sentence in _SENTENCE.split(after)]
        folded = [" ".join(text.split()) for text in (before, after, with_nca)]
        for kind in KINDS:
            facts = list(self._facts(kind))
            counts = [0, 0, 0, 0]
            for seq, text, needle in facts:
                was, stayed, nca = (_is_in(needle, one, kind) for one in folded)
                is_reworded = was and not stayed and _is_reworded(text, sentences)
                counts = [total + one for total, one in zip(counts, (was, stayed, is_reworded, nca), strict=True)]
                if was and not stayed:
                    lost.append(LostFact(kind, seq, text, is_reworded, nca))
            if facts:
                kinds[kind] = KindCount(len(facts), *counts)
        return kinds, tuple(lost)

    def _facts(self, kind: str) -> Iterator[tuple[int, str, str]]:
        """The facts stated so far: message number, text, and the part that must be readable."""
        past = Past.of(self._log)
        match kind:
            case "words":
                for entry in past.forwards():
                    said = past.said(entry.message)
                    if said is not None and (text := said.typed.strip()):
                        yield self._seqs[entry.seq - 1], text, " ".join(text.split())
            case "files":
                newest: dict[str, int] = {}
                for called in past.calls:
                    if called.has_worked and (path := called.changed_file):
                        newest.setdefault(path, called.seq)
                for path, seq in reversed(newest.items()):
                    yield self._seqs[seq - 1], path, PurePath(path).name or path
            case "errors":
                latest: dict[str, tuple[int, str]] = {}
                for called in past.calls:
                    if called.result is not None:
                        lines = called.result.text.strip().splitlines() if called.has_failed else []
                        latest.setdefault(asked(called.call), (called.seq, lines[-1].strip() if lines else ""))
                for seq, error in reversed(latest.values()):
                    if error:
                        yield self._seqs[seq - 1], error, " ".join(error.split())[:ERROR_CHARS]

    def _cost(self, record: CompactionRecord, after: History) -> float | None:
        """The cost that the agent recorded, else the price of reading the conversation and writing its new part."""
        if record.cost is not None or not record.tokens_before:
            return record.cost
        made = [item for item in after.view.items if isinstance(item, Summary)]
        written = self._engine.meter.scaled(sum(text_tokens(item.text) for item in made))
        return cost_of(self._engine.facts, Usage(record.tokens_before, written))


def _is_unreadable(view: View) -> bool:
    return any(isinstance(item, Marker) and item.text.startswith(ENCRYPTED.partition("{")[0]) for item in view.items)


def _text(messages: Sequence[Message]) -> str:
    """All that a model can read in a request."""
    pieces = chain.from_iterable(
        (message.text, *(part.text for part in message.attachments), *(call.arguments for call in message.tool_calls))
        for message in messages
    )
    return "\n".join(pieces)


def _is_in(needle: str, text: str, kind: str) -> bool:
    if needle not in text:
        return False
    # A file's name is a word of its own: Makefile is not in "Makefiles".
    return kind != "files" or re.search(rf"(?<![\w-]){re.escape(needle)}(?![\w-])", text) is not None


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _is_reworded(text: str, sentences: Sequence[set[str]]) -> bool:
    words = set(_words(text))
    least = ceil(REWORDED_RATIO * len(words))
    return len(words) > 1 and any(len(words & sentence) >= least for sentence in sentences)


_FOLDED_CHARS = 600
"""The rest of a longer message is folded."""
_HOW = (
    "A fact counts as kept if it can be read word for word in the first request after the compaction, and as reworded"
    " if one sentence there has most of its words. Both sides are judged by the same rules, in the same room. What the"
    " agent adds by itself later is not seen here, such as files that it reads again or instructions from files. A"
    " summary may say a thing in quite other words: it stands above what was not found in it."
)


NOT_COMPACTED = "This session has not been compacted, so nothing is lost."


def to_loss_page(
    agent: str, copy: SessionCopy, compactions: Sequence[CompactionLoss], figures: Sequence[str] = ()
) -> str:
    """The page: the context over the session, `figures`, and for each compaction the counts by kind and the losses.

    `agent` wrote the session. The texts are shown unchanged: redact API keys first (`Redactor`).
    """
    return "\n".join(_page(agent, copy, compactions, figures)) + "\n"


def _page(
    agent: str, copy: SessionCopy, compactions: Sequence[CompactionLoss], figures: Sequence[str]
) -> Iterator[str]:
    yield from page_head(f"What {agent} lost: {session_title(copy)}", {"Agent": agent, **session_facts(copy)})
    if chart := timeline(copy):
        yield f"<figure>{chart}</figure>"
    yield f"<p>{_HOW if compactions else NOT_COMPACTED}</p>"
    if figures:
        lines = "\n".join(figures)
        yield f"<pre>{html_escaped(lines)}</pre>"
    yield "<main>"
    records = {record.view_after: record for record in copy.compactions}
    for one in compactions:
        yield from _section(agent, one, new_summaries(copy, records[one.view]))
    yield "</main>\n</body>\n</html>"


def _section(agent: str, one: CompactionLoss, summaries: Sequence[Summary]) -> Iterator[str]:
    when = f" · {utc_time(one.at)}" if one.at else ""
    yield f'<section id="c{one.view}">'
    yield f"<h2>Compaction {one.number}, after message {one.after_message:,}{when}</h2>"
    yield f"<p>{html_escaped(one.trigger)} · {size_and_cost(one)}</p>"
    if one.is_unreadable:
        yield "<p>Its summary is encrypted or missing, so what it kept cannot be known.</p></section>"
        return
    compared = is_compared(agent)
    heads = ("", "stated", "before", "after", "reworded", *["with nca"] * compared)
    yield f"<table><tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr>"
    for kind, count in one.kinds.items():
        yield _row(KINDS[kind], count, compared=compared)
    yield f"</table>\n<p>{nca_size(one)}</p>" if compared else "</table>"
    for summary in summaries:
        yield f"<details><summary>Its summary</summary>{prose(summary.text)}</details>"
    gone = [fact for fact in one.lost if not fact.is_reworded]
    reworded = [fact for fact in one.lost if fact.is_reworded]
    if gone:
        yield f"<p>Lost: {len(gone):,}{f'; {would_have_kept(gone)}' if compared else ''}.</p>"
        yield from (_lost(fact, compared=compared) for fact in gone)
    if reworded:
        yield f"<details><summary>Reworded: {len(reworded):,}</summary>"
        yield from (_lost(fact, compared=compared) for fact in reworded)
        yield "</details>"
    yield "</section>"


def _row(name: str, count: KindCount, *, compared: bool) -> str:
    gone = ' class="gone"' if count.after + count.reworded < count.before else ""
    cells = f"<td>{count.stated:,}</td><td>{count.before:,}</td><td{gone}>{count.after:,}</td>"
    own = f"<td>{count.with_nca:,}</td>" if compared else ""
    return f"<tr><th>{name}</th>{cells}<td>{count.reworded:,}</td>{own}</tr>"


def _lost(fact: LostFact, *, compared: bool) -> str:
    text = html_escaped(fact.text)
    if len(fact.text) > _FOLDED_CHARS:
        text = f"<details><summary>{html_escaped(fact.text[:_FOLDED_CHARS])}…</summary>{text}</details>"
    kept = '<span class="kept">nca would have kept it</span>' if fact.with_nca else "nca would have lost it too"
    nca = f" · {kept}" if compared else ""
    kind = KINDS[fact.kind]
    state = "reworded" if fact.is_reworded else "<b>lost</b>"
    return (
        f'<div class="lost{" reworded" if fact.is_reworded else ""}">{text}'
        f"<small>{kind}, message {fact.seq} · {state}{nca}</small></div>"
    )
