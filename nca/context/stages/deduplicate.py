"""Deduplicate: replace an earlier read of a file by a pointer to a later one that covers it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from nca.config.schema import DeduplicateSettings
from nca.context.draft import Block, Draft
from nca.context.file_reads import FileUse, file_uses, says_no_more
from nca.context.stages.prune import CLEARED, COPY, VERSION, stub_text
from nca.messages import Entry

POINTER = "[File {path} - refer to latest read below]"
"""NeuroLink's placeholder."""
CHANGED = "[File {path} - refer to latest read below; the file changed in between: recall expand={seq}]"


@dataclass(frozen=True, slots=True)
class Superseded:
    """An earlier read that a later one covers, the pointer to replace it, and the raw tokens that this saves.

    is_copy  the later one says all that it says
    """

    block: Block
    seq: int
    path: str
    text: str
    saved_raw: int
    is_copy: bool


def deduplicate(draft: Draft, settings: DeduplicateSettings, *, target_tokens: int) -> None:
    """Replace superseded reads, unless they are too small a share of all file reads.

    Copies go at once; of a file that was different then, the oldest read first until the target is met.
    """
    found, reads = _looked_for(draft)
    read_raw = sum(draft.history.run_tokens(use.seq, use.seq) for use in reads)
    if not found or sum(one.saved_raw for one in found) < settings.minimum_ratio * read_raw:
        return
    for one in sorted(found, key=lambda one: not one.is_copy):
        if one.is_copy or draft.tokens > target_tokens:
            draft.put_stub(one.block, one.seq, one.text, COPY if one.is_copy else VERSION)


def superseded(draft: Draft) -> list[Superseded]:
    """The reads that a later one covers, oldest first."""
    return _looked_for(draft)[0]


def fix_pointers(draft: Draft, placeholder: str = CLEARED) -> None:
    """Clear the pointers to later reads that are no longer shown."""
    pointing = [
        (block, stub) for block in draft.blocks() for stub in block.stubs.values() if stub.stage in (COPY, VERSION)
    ]
    if not pointing:
        return
    shown = {use.path: use.seq for use in file_uses(_shown_entries(draft)) if not use.is_write}
    for block, stub in pointing:
        path = stub.text.removeprefix("[File ").partition(" - refer to latest read below")[0]
        if shown.get(path, 0) < stub.seq:
            draft.put_stub(block, stub.seq, stub_text(draft.history.message(stub.seq), stub.seq, placeholder), "prune")


def _shown_entries(draft: Draft) -> Iterator[Entry]:
    """Messages in the order of the log, except for results that a placeholder replaces."""
    entries = draft.history.entries
    for block in sorted(draft.blocks(), key=lambda block: block.first):
        for seq in block.seqs:
            entry = entries[seq - 1]
            if seq not in block.stubs or entry.message.role != "tool":
                yield entry


def _looked_for(draft: Draft) -> tuple[list[Superseded], list[FileUse]]:
    """The reads that a later verbatim one covers, oldest first; and all reads that are shown."""
    homes = {seq: block for block in draft.blocks() for seq in block.seqs}
    uses = list(file_uses(_shown_entries(draft)))
    reads = [use for use in uses if not use.is_write]
    by_path: dict[str, list[FileUse]] = {}
    for use in reads:
        by_path.setdefault(use.path, []).append(use)
    writes: dict[str, list[int]] = {}
    for use in uses:
        if use.is_write:
            writes.setdefault(use.path, []).append(use.seq)
    found = []
    for path, same in by_path.items():
        for index, use in enumerate(same):
            # The last one that covers it is not superseded itself: another that did would cover this one too.
            later = next((other for other in reversed(same[index + 1 :]) if other.covers(use)), None)
            block = homes[use.seq]
            if later is None or block.is_locked:
                continue
            written = writes.get(path, [])
            place = bisect_right(written, use.seq)
            changed = place < len(written) and written[place] < later.seq
            text = (CHANGED if changed else POINTER).format(path=path, seq=use.seq)
            saved = draft.saving(block, use.seq, text)
            if saved > 0:
                is_copy = says_no_more(draft.history.message(use.seq).text, draft.history.message(later.seq).text)
                found.append(Superseded(block, use.seq, path, text, saved, is_copy))
    return sorted(found, key=lambda one: one.seq), reads
