"""The places of compactions in a log, and one-line descriptions of sessions, messages, compactions and summaries."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

from nca.context.retention import kept_in_words
from nca.context.view import Marker, Range, Stub, Summary, seqs
from nca.messages import Entry, Message, Part, TextPart
from nca.sessions.session import SessionInfo
from nca.sessions.transfer import FORKED, SessionCopy
from nca.sessions.usage import BESIDE, UNREPORTED
from nca.sessions.view_rows import PUTS_ASIDE, CompactionRecord
from nca.transcripts.formats.records import PLACES


def compactions(copy: SessionCopy) -> list[CompactionRecord]:
    """Without the views of rewinds, and what a person collapsed, expanded or cleared."""
    return [one for one in copy.compactions if one.trigger not in PUTS_ASIDE and not one.is_by_hand]


def compaction_positions(copy: SessionCopy) -> list[tuple[int, CompactionRecord]]:
    """Each compaction with the seq of the last message before it, oldest first."""
    begun = {view.number: max(view.since, view.tail) - 1 for view in copy.views}
    records = sorted(compactions(copy), key=lambda record: record.view_after)
    return [(min(begun[record.view_after], len(copy.entries)), record) for record in records]


def replacements(copy: SessionCopy) -> dict[int, Stub | Summary | Marker | None]:
    """By seq, the view item that replaces a message the model no longer sees in full; None for one that is aside."""
    view = copy.view(copy.head_view)
    found: dict[int, Stub | Summary | Marker | None] = dict.fromkeys(seqs(view.aside))
    for item in view.items:
        match item:
            case Stub(seq):
                found[seq] = item
            case Summary(ranges=ranges) | Marker(ranges=ranges):
                found |= dict.fromkeys(seqs(ranges), item)
    return found


def new_summaries(copy: SessionCopy, record: CompactionRecord) -> list[Summary]:
    """The summaries that a compaction made: those in its view that the previous view did not have."""
    before = _summaries(copy, record.view_before)
    return [summary for summary in _summaries(copy, record.view_after) if summary not in before]


def _summaries(copy: SessionCopy, number: int) -> list[Summary]:
    view = next((view for view in copy.views if view.number == number), None)
    return [item for item in copy.shown_by(view).items if isinstance(item, Summary)] if view else []


def shown_content(message: Message) -> str | tuple[Part, ...] | None:
    """The content for a reader: what the person typed and pasted is one text, without the tags that the model sees."""
    if not isinstance(message.content, tuple):
        return message.content
    shown: list[Part] = []
    for part in message.content:
        if not isinstance(part, TextPart) or part.source in ("", "nca"):
            shown.append(part)
        elif shown and isinstance(before := shown[-1], TextPart) and before.source == "typed":
            shown[-1] = TextPart(before.text + part.text, source="typed")
        else:
            shown.append(TextPart(part.text, source="typed"))
    return tuple(shown)


def session_facts(copy: SessionCopy) -> dict[str, str]:
    """The facts at the top of an export, by label."""
    info = copy.info
    usages = [row.usage for row in copy.usage]
    costs = [usage.cost for usage in usages if usage.cost is not None]
    tokens_in, tokens_out = (sum(u.prompt_tokens for u in usages), sum(u.completion_tokens for u in usages))
    requests = f"{len(usages):,}: {tokens_in:,} tokens in, {tokens_out:,} out{_cost(sum(costs) if costs else None)}"
    facts = {
        "Session": info.id,
        "Directory": info.directory,
        "Model": model_in_words(info),
        "Used": f"{utc_time(info.created_at)} to {utc_time(info.updated_at)}",
        "Messages": f"{len(copy.entries):,}",
        "Compactions": f"{len(compactions(copy)):,}",
        "Requests": requests if usages else "",
    }
    return {name: value for name, value in facts.items() if value}


def model_in_words(info: SessionInfo) -> str:
    """The model that answered last; of an import that nobody went on with, also in which agent that was."""
    if info.origin is None or not info.is_as_imported:
        return info.model
    agent = PLACES[info.origin.agent].title if info.origin.agent in PLACES else ""
    return " in ".join(filter(None, (info.model, agent or info.origin.agent)))


def session_title(copy: SessionCopy) -> str:
    """Its name, or else the beginning of its first message, with “…” if that goes on."""
    info = copy.info
    if info.name or not info.title:
        return info.name or f"Session {info.id}"
    begun = info.title.removeprefix(FORKED)
    said = (" ".join(entry.message.text.split()) for entry in copy.entries if entry.message.role == "user")
    whole = next((text for text in said if text.startswith(begun)), begun)
    return info.title if whole == begun else f"{info.title.rstrip()}…"


REQUESTS = {BESIDE: "none: a summary, a task or /btw", UNREPORTED: "none: an answer that broke off"}
"""In place of the number of a message: the requests that are about none."""


def message_notes(
    entry: Entry, pins: Collection[int], replaced: Mapping[int, Stub | Summary | Marker | None] | None = None
) -> list[str]:
    """Facts about a message besides its text. `replaced`: see `nca.transcripts.descriptions.replacements`."""
    message = entry.message
    found = [message.name] if message.name else []
    found += ["error"] if message.is_error else []
    found += ["interrupted"] if message.is_interrupted else []
    is_output = message.is_synthetic and any(one.source == "tool" for one in message.said)
    found += ["output of a program"] if is_output else ["added by nca"] if message.is_synthetic else []
    found += ["pinned"] if entry.seq in pins else []
    if replaced and entry.seq in replaced:
        found.append(replaced_line(replaced[entry.seq]))
    return found


def replaced_line(item: Stub | Summary | Marker | None) -> str:
    """The state of messages that the model no longer sees in full. None: they are aside."""
    match item:
        case None:
            return "not part of the conversation: taken back, or said beside it"
        case Stub():
            return "the model sees a placeholder"
        case Summary(id=number):
            return f"the model sees summary {number} instead"
        case Marker(id=number):
            return f"hidden from the model by marker {number}"


def compaction_line(record: CompactionRecord) -> str:
    """The compaction's trigger, stages, savings, kept facts, duration and cost."""
    change = f"{record.tokens_before:,} → {record.tokens_after:,} tokens"
    kept = kept_in_words(record.kept, record.kept_facts, record.total_facts)
    facts = f", kept {kept}" if record.total_facts else ""
    undone = " · undone" if record.undone else ""
    effort = f"{record.seconds:.1f} s{_cost(record.cost or None)}{undone}"
    return f"{record.trigger}: {', '.join(record.stages)}; {change}{facts} · {effort}"


def summary_line(summary: Summary) -> str:
    made_by = f", by {summary.made_by}" if summary.made_by else ""
    return f"Summary {summary.id} of {range_text(summary.ranges)}{made_by}"


def range_text(ranges: tuple[Range, ...]) -> str:
    """The numbers of the messages: "messages 1–8, 12"."""
    if not ranges:
        return "no messages"
    is_one = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
    spans = ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in ranges)
    return f"{'message' if is_one else 'messages'} {spans}"


def utc_time(at: float) -> str:
    """A Unix time in UTC, so that an export reads the same everywhere."""
    try:
        return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at))
    except (OverflowError, ValueError, OSError):
        return "unknown time"


def _cost(cost: float | None) -> str:
    return "" if cost is None else f", ${cost:.4f}"
