"""Stage 2: an earlier read of a file gives way to a pointer to the later one that shows as much."""

from __future__ import annotations

from nca.config.schema import DeduplicateSettings
from nca.context.draft import Block, Draft
from nca.context.file_reads import FileUse, file_uses
from nca.context.stages.prune import CLEARED

POINTER = "[File {path} - refer to latest read below]"
"""Seed 2's placeholder."""
CHANGED = "[File {path} - refer to latest read below; the file changed in between]"


def deduplicate(draft: Draft, settings: DeduplicateSettings, *, target_tokens: int) -> None:
    """Stub superseded reads; nothing where they are too small a share of all file-read tokens."""
    homes = {seq: block for block in draft.blocks() for seq in block.seqs}
    uses = list(file_uses(draft.history.entries[seq - 1] for seq in sorted(homes)))
    reads = [use for use in uses if not use.is_write and use.seq not in homes[use.seq].stubs]
    found = _superseded(draft, uses, reads, homes)
    read_raw = sum(draft.history.run_tokens(use.seq, use.seq) for use in reads)
    if not found or sum(saved for *_, saved in found) < settings.minimum_ratio * read_raw:
        return
    for block, seq, text, _ in found:
        if draft.tokens <= target_tokens:
            return
        draft.put_stub(block, seq, text, "deduplicate")


def mend_pointers(draft: Draft) -> None:
    """A pointer whose later read is shown no longer points nowhere: it becomes what a cleared result is."""
    pointing = [
        (block, stub) for block in draft.blocks() for stub in block.stubs.values() if stub.stage == "deduplicate"
    ]
    if not pointing:
        return
    homes = {seq: block for block in draft.blocks() for seq in block.seqs}
    shown = {
        use.path: use.seq
        for use in file_uses(draft.history.entries[seq - 1] for seq in sorted(homes))
        if not use.is_write and use.seq not in homes[use.seq].stubs
    }
    for block, stub in pointing:
        path = stub.text.removeprefix("[File ").partition(" - refer to latest read below")[0]
        if shown.get(path, 0) < stub.seq:
            draft.put_stub(block, stub.seq, CLEARED, "deduplicate")


def _superseded(
    draft: Draft, uses: list[FileUse], reads: list[FileUse], homes: dict[int, Block]
) -> list[tuple[Block, int, str, int]]:
    """(block, seq, pointer, raw tokens saved) of each read that a later verbatim one covers, oldest first."""
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
            changed = any(use.seq < seq < later.seq for seq in writes.get(path, ()))
            text = (CHANGED if changed else POINTER).format(path=path)
            saved = draft.saving(block, use.seq, text)
            if saved > 0:
                found.append((block, use.seq, text, saved))
    return sorted(found, key=lambda row: row[1])
