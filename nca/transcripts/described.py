"""The short lines about a session that its exports share: facts, marks of a message, compactions."""

from __future__ import annotations

import time
from collections.abc import Mapping

from nca.context.view import Marker, Stub, Summary
from nca.messages import Entry
from nca.sessions.transfer import SessionCopy
from nca.sessions.views import CompactionRecord
from nca.transcripts.moments import in_words


def facts(copy: SessionCopy) -> dict[str, str]:
    info = copy.info
    used = [row.usage for row in copy.usage]
    costs = [usage.cost for usage in used if usage.cost is not None]
    spent = f", ${sum(costs):.4f}" if costs else ""
    said = {
        "Session": info.id,
        "Directory": info.directory,
        "Model": info.model,
        "Used": f"{when(info.created_at)} to {when(info.updated_at)}",
        "Messages": f"{len(copy.entries):,}, {len(copy.compactions):,} compactions",
        "Calls": f"{len(used):,}: {sum(usage.prompt_tokens for usage in used):,} tokens in,"
        f" {sum(usage.completion_tokens for usage in used):,} out{spent}"
        if used
        else "",
    }
    return {name: value for name, value in said.items() if value}


def title(copy: SessionCopy) -> str:
    return copy.info.name or copy.info.title or f"Session {copy.info.id}"


def marks(entry: Entry, pins: tuple[int, ...], standing: Mapping[int, Stub | Summary | Marker]) -> list[str]:
    """What is to be known of a message beside its text."""
    message, item = entry.message, standing.get(entry.seq)
    said = [
        word
        for word, holds in (
            (message.name, bool(message.name)),
            ("error", message.is_error),
            ("interrupted", message.is_interrupted),
            ("made by nca", message.is_synthetic),
            ("pinned", entry.seq in pins),
        )
        if holds
    ]
    match item:
        case Stub():
            said.append("shown to the model as a stub")
        case Summary() | Marker():
            said.append(f"hidden: {'summary' if isinstance(item, Summary) else 'marker'} {item.id} stands for it")
    return said


def compaction(record: CompactionRecord) -> str:
    facts = f", kept {record.kept_facts} of {record.total_facts} facts" if record.total_facts else ""
    cost = f", ${record.cost:.4f}" if record.cost else ""
    stages = ", ".join(record.stages)
    return (
        f"{record.trigger}: {stages}; {record.tokens_before:,} → {record.tokens_after:,} tokens{facts}"
        f" · {record.seconds:.1f} s{cost}{' · undone' if record.undone else ''}"
    )


def summary_line(summary: Summary) -> str:
    made_by = f", by {summary.made_by}" if summary.made_by else ""
    return f"Summary {summary.id} of {in_words(summary.ranges)}{made_by}"


def when(at: float) -> str:
    """UTC, so that an export reads the same everywhere."""
    try:
        return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at))
    except (OverflowError, ValueError, OSError):
        return "an unknown time"
