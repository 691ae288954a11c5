"""Read what Claude's answers contain besides text and tool calls: signed thinking, compaction blocks, samplings.

litellm passes them on in its own keys: `thinking_blocks`, `provider_specific_fields`, and `iterations` in the usage.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nca.messages import Usage

_MOST_TOKENS = 100_000_000
"""A larger token count is not believed."""


class ClaudeBlocks:
    """Collects the special blocks of one answer from its deltas.

    thinking     complete signed blocks in order; they must be sent back with the tool calls that follow
    compaction   the provider's summary of the conversation so far, if it made one
    """

    def __init__(self) -> None:
        self.thinking: list[dict[str, Any]] = []
        self.compaction: dict[str, Any] | None = None

    def add(self, delta: Mapping[str, Any]) -> None:
        """Add the blocks of a delta."""
        blocks = delta.get("thinking_blocks")
        for block in blocks if isinstance(blocks, list | tuple) else ():
            # The pieces of a thinking block come unsigned; then the whole block is repeated with its signature.
            if isinstance(block, Mapping) and (block.get("signature") or block.get("type") == "redacted_thinking"):
                self.thinking.append({key: value for key, value in block.items() if value is not None})
        fields = delta.get("provider_specific_fields")
        if isinstance(fields, Mapping):
            self._add_compaction(fields)

    def _add_compaction(self, fields: Mapping[str, Any]) -> None:
        """A block starts empty and its content follows in one piece; a later block replaces an earlier one."""
        begun = fields.get("compaction_blocks")
        if isinstance(begun, list | tuple) and begun and isinstance(begun[-1], Mapping):
            self.compaction = {key: value for key, value in begun[-1].items() if value is not None}
        piece = fields.get("compaction_delta")
        if isinstance(piece, Mapping) and isinstance(piece.get("content"), str) and self.compaction is not None:
            self.compaction["content"] = self.compaction.get("content", "") + piece["content"]

    @property
    def summary(self) -> dict[str, Any] | None:
        """The compaction block, unless it is empty."""
        block = self.compaction
        return block if block and isinstance(block.get("content"), str) and block["content"].strip() else None


def samplings(usage: object) -> tuple[Usage, ...]:
    """The usage of each sampling of one answer; empty if the provider reports only the total.

    Anthropic counts a compaction as a separate sampling. litellm's usage is the total, which is what is charged; only
    the last sampling read the conversation as the next request will contain it.
    """
    rows = usage.get("iterations") if isinstance(usage, Mapping) else None
    found = [_usage(row) for row in rows if isinstance(row, Mapping)] if isinstance(rows, list | tuple) else []
    return tuple(found)


def _usage(row: Mapping[str, Any]) -> Usage:
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    fresh, answer, read, written = (as_count(row.get(name)) or 0 for name in names)
    return Usage(fresh + read + written, answer, read, written)


def as_count(value: object) -> int | None:
    """A plausible token count: a whole number, not negative, not absurdly large; None for anything else."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value < _MOST_TOKENS else None
