"""The provider compacted by itself: its summary is put in force here, and the turn goes on."""

from __future__ import annotations

from nca.agent.compactor import Compactor
from nca.context.provider_side import ProviderSummary, adopt
from nca.models.client import Reply

MOST_STOPS = 2
"""Stops for a compaction in one step; after them the provider is asked once more without the wish for any."""


def take_over(compactor: Compactor, reply: Reply, made_by: str, seconds: float) -> bool:
    """Let the provider's summary stand for what it covers, on disk first; False where nothing could go for it.

    The log keeps everything and /context undo brings it back, as after a compaction of our own. Raises StoreError.
    """
    if reply.compaction is None:
        return False
    window = compactor.window
    proposal = adopt(
        window.history, window.meter, window.budget, window.context, ProviderSummary(reply.compaction, made_by)
    )
    cost = reply.usage.cost if reply.usage and reply.finish_reason == "compaction" else None
    return compactor.take(proposal, "provider", seconds, cost).compacted
