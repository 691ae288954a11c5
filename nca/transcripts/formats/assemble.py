"""The records of another agent's session as a session of nca: log, views, compactions, usage.

The log holds every message in the order of the file. What is not live (other branches, subagents) is aside. Each
compaction of the live branch is a view: a summary in place of the replaced messages, and the kept ones unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import groupby

import msgspec

from nca.context.summary import HEADER, clean_prose
from nca.context.view import (
    Item,
    Marker,
    Range,
    Stub,
    Summary,
    Verbatim,
    View,
    how_to_recall,
    put_aside,
    without_ranges,
)
from nca.errors import InvalidMessages
from nca.messages import Entry, Message, clean_text, collector_paused
from nca.sessions.encoding import decode_message, encode
from nca.sessions.log import title_of
from nca.sessions.session import SessionInfo, as_name
from nca.sessions.transfer import FIRST_VIEW, SessionCopy, ViewCopy, check
from nca.sessions.usage import BESIDE as NO_REQUEST_OF_A_VIEW
from nca.sessions.usage import UsageRow
from nca.sessions.view_rows import BESIDE, CompactionRecord, SummaryPlace
from nca.transcripts.formats.records import About, Compacted, Live, Record, Said, Unreadable

SUMMARIZED, CUT = "summarize", "truncate"
"""The stages that an agent's own compaction counts as."""
ENCRYPTED = (
    "[The earlier conversation was summarized, but the summary is encrypted or missing. {recall} shows it whole.]"
)
LEFT_OUT = "[The earlier conversation was left out. {recall} shows it.]"
RECALL = "[{recall} shows the messages that this stands for.]"


class Assembled(msgspec.Struct, frozen=True, kw_only=True):
    """A session of another agent, and what could not be read of it.

    unreadable_summaries  compactions of the live branch with an encrypted or missing summary
    """

    copy: SessionCopy
    about: About
    unreadable: tuple[Unreadable, ...] = ()
    unreadable_summaries: int = 0


@collector_paused()
def assemble(records: Iterable[Record], place: str, *, directory: str = "", name: str = "") -> Assembled:
    """The session. `directory` is used if the records name none; `name` replaces the title of the records.

    Raises InvalidMessages, which names the place, if there is no message.
    """
    parts: list[Said | Compacted] = []
    unreadable: list[Unreadable] = []
    about, live = About(), None
    for record in records:
        match record:
            case Said():
                storable = _storable(record)
                (parts if isinstance(storable, Said) else unreadable).append(storable)  # type: ignore[arg-type]
            case Compacted():
                parts.append(record)
            case Unreadable():
                unreadable.append(record)
            case About():
                given = {field: value for field, value in msgspec.structs.asdict(record).items() if value}
                about = msgspec.structs.replace(about, **given)
            case Live(ids=ids):
                live = ids
    if not any(isinstance(part, Said) for part in parts):
        why = f" ({unreadable[0].place}: {unreadable[0].reason})" if unreadable else ""
        raise InvalidMessages(f"{place}: holds no messages that can be read{why}.")
    assembling = _Assembling(_live_parts(parts, live))
    for part in parts:
        assembling.take(part)
    copy = assembling.finished(about, directory=directory, name=name)
    check(copy)
    return Assembled(
        copy=copy,
        about=about,
        unreadable=tuple(unreadable),
        unreadable_summaries=assembling.unreadable_summaries,
    )


def _storable(said: Said) -> Said | Unreadable:
    """The message so that it can be stored: halves of surrogate pairs may have come from a cut text."""
    try:
        msgspec.json.encode(said.message)
        return said
    except UnicodeEncodeError:
        return msgspec.structs.replace(said, message=decode_message(encode(said.message), said.place))
    except (OverflowError, RecursionError, TypeError, ValueError) as error:
        return Unreadable(said.place, f"cannot be stored ({error})")


def _live_parts(parts: Sequence[Said | Compacted], ids: frozenset[str] | None) -> set[int]:
    """The live parts by identity. If no message is live, all are: the file may be that of a subagent alone."""
    in_branch = [part for part in parts if ids is None or not part.id or part.id in ids]
    for candidates in (in_branch, parts):
        live = [part for part in candidates if isinstance(part, Compacted) or not part.is_aside]
        if any(isinstance(part, Said) for part in live):
            return set(map(id, live))
    return set(map(id, parts))


class _Assembling:
    """Numbers the messages and builds the views, part by part. `live`: the parts of the live branch, by identity."""

    def __init__(self, live: set[int]) -> None:
        self._live = live
        self._entries: list[Entry] = []
        self._is_live: list[bool] = []
        self._live_runs: list[Range] = []
        self._aside_runs: list[Range] = []
        """The same by runs. A compaction looks at these, not at each message again."""
        self._seqs: dict[str, list[int]] = {}
        self._view = View()
        self._views: list[ViewCopy] = [FIRST_VIEW]
        self._summaries: list[Summary] = []
        self._records: list[CompactionRecord] = []
        self._usage: list[UsageRow] = []
        self._reports: list[tuple[int, int]] = []
        """Of each request of the live branch: tokens sent, and tokens with its answer."""
        self._reported: list[int] = []
        """How many of them came before each record."""
        self._model = ""
        self._at = 0.0
        self.unreadable_summaries = 0

    def take(self, part: Said | Compacted) -> None:
        self._at = part.at if part.at > 0 else self._at
        is_live = id(part) in self._live
        if isinstance(part, Said):
            self._say(part, is_live=is_live)
        elif is_live:
            self._compact(part)

    def finished(self, about: About, *, directory: str, name: str) -> SessionCopy:
        self._put_aside()
        entries = self._entries
        model = about.model or self._model
        times = [entry.at for entry in entries if entry.at]
        info = SessionInfo(
            "",
            as_name(name or about.title),
            clean_text(about.directory or directory),
            clean_text(model),
            times[0] if times else 0.0,
            times[-1] if times else 0.0,
            messages=len(entries),
            is_pinned=False,
            title=title_of([one.message for one, is_live in zip(entries, self._is_live, strict=True) if is_live]),
        )
        return SessionCopy(
            info=info,
            entries=tuple(entries),
            views=tuple(self._views),
            head_view=len(self._views) - 1,
            summaries=tuple(self._summaries),
            compactions=tuple(map(self._with_tokens, self._records, self._reported)),
            usage=tuple(self._usage),
        )

    def _say(self, said: Said, *, is_live: bool) -> None:
        seq = self._append(said.message, is_live=is_live)
        if said.id:
            self._seqs.setdefault(said.id, []).append(seq)
        if is_live and said.model:
            self._model = said.model
        if said.usage is not None:
            before = seq - 1 if is_live else NO_REQUEST_OF_A_VIEW
            model = clean_text(said.model or self._model)
            self._usage.append(UsageRow(before, model, said.usage, len(self._views) - 1, self._at))
            if is_live:
                sent = said.usage.prompt_tokens
                self._reports.append((sent, sent + said.usage.completion_tokens))

    def _append(self, message: Message, *, is_live: bool) -> int:
        seq = len(self._entries) + 1
        self._entries.append(Entry(seq, message, self._at))
        self._is_live.append(is_live)
        runs = self._live_runs if is_live else self._aside_runs
        if runs and runs[-1][1] == seq - 1:
            runs[-1] = (runs[-1][0], seq)
        else:
            runs.append((seq, seq))
        return seq

    def _compact(self, part: Compacted) -> None:
        shown = {seq for one in part.kept for seq in self._seqs.get(one, ())} | set(self._system_prompt())
        hidden = without_ranges(self._live_runs, _ranges(sorted(shown)))
        if not hidden:
            # The session continues from another one and holds only its summary.
            if part.summary.strip():
                text = f"{HEADER}\n{clean_text(part.summary)}"
                self._append(Message("user", text, source="nca", made_by=""), is_live=True)
            return
        self._put_aside()
        kept = _ranges(seq for seq in sorted(shown) if self._is_live[seq - 1])
        items: list[Item] = [self._standing_for(part, hidden), *(Verbatim(*run) for run in kept)]
        items.sort(key=lambda item: item.first if isinstance(item, Verbatim) else hidden[0][0])
        view = View(tuple(items), len(self._entries) + 1, self._view.aside)
        record = CompactionRecord(
            trigger="manual" if part.trigger == "manual" else "auto",
            stages=(SUMMARIZED if part.summary.strip() or part.is_unreadable else CUT,),
            tokens_before=part.tokens_before,
            tokens_after=part.tokens_after,
            cost=part.cost,
            at=self._at,
        )
        self._put_in_force(view, record)

    def _system_prompt(self) -> Iterable[int]:
        """The system messages before all others of the live branch."""
        for entry, is_live in zip(self._entries, self._is_live, strict=True):
            if is_live and entry.message.role != "system":
                return
            if is_live:
                yield entry.seq

    def _standing_for(self, part: Compacted, hidden: tuple[Range, ...]) -> Summary | Marker:
        recall = how_to_recall(hidden)
        digest = blake2b(f"{hidden}{part.summary}".encode("utf-8", "replace"), digest_size=4).hexdigest()
        summary = clean_text(part.summary).strip()
        if summary and not part.is_unreadable:
            text = f"{HEADER}\n{summary}\n\n{RECALL.format(recall=recall)}"
            prose = clean_prose(summary) or summary
            return Summary(digest, hidden, text, prose, made_by=clean_text(self._model) or "unknown")
        self.unreadable_summaries += part.is_unreadable
        left = (ENCRYPTED if part.is_unreadable else LEFT_OUT).format(recall=recall)
        return Marker(digest, hidden, f"{left}\n\n{summary}" if summary else left)

    def _put_aside(self) -> None:
        """Put what is not live aside, so that a compaction can be undone without showing it."""
        aside = tuple(self._aside_runs)
        if aside != self._view.aside:
            record = CompactionRecord(trigger=BESIDE, stages=(BESIDE,), at=self._at)
            self._put_in_force(put_aside(self._view, aside), record)

    def _put_in_force(self, view: View, record: CompactionRecord) -> None:
        number = len(self._views)
        items = tuple(self._stored(item) for item in view.items)
        self._views.append(ViewCopy(number, number - 1, items, view.tail, view.aside, len(self._entries) + 1))
        self._records.append(
            msgspec.structs.replace(record, id=f"c{number}", view_before=number - 1, view_after=number)
        )
        self._reported.append(len(self._reports))
        self._view = view

    def _stored(self, item: Item) -> Verbatim | Stub | SummaryPlace | Marker:
        if not isinstance(item, Summary):
            return item
        if item not in self._summaries:
            self._summaries.append(item)
        return SummaryPlace(self._summaries.index(item) + 1)

    def _with_tokens(self, record: CompactionRecord, reported: int) -> CompactionRecord:
        """The record with the counts that the requests before and after it reported, where the agent stored none."""
        if record.trigger == BESIDE:
            return record
        before = self._reports[reported - 1][1] if reported else 0
        after = self._reports[reported][0] if reported < len(self._reports) else 0
        return msgspec.structs.replace(
            record, tokens_before=record.tokens_before or before, tokens_after=record.tokens_after or after
        )


def _ranges(seqs: Iterable[int]) -> tuple[Range, ...]:
    """The runs of ascending numbers."""
    runs = groupby(enumerate(seqs), key=lambda placed: placed[1] - placed[0])
    found = [[seq for _, seq in run] for _, run in runs]
    return tuple((run[0], run[-1]) for run in found)
