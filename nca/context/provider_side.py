"""Apply a summary that the provider made: it replaces the messages that our own rules let it cover.

The provider's summary covers the whole request. Here it replaces only messages that may go: locked messages (pins, the
person's newest message, an open step) and the newest steps of the turn in progress stay as they are, after it. Its text
includes the record of code for other models; its own provider gets the block instead of the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from nca.config.schema import ContextSettings
from nca.context.budget import Budget
from nca.context.draft import Block, Draft, Part, covered
from nca.context.history import History
from nca.context.meter import Meter
from nca.context.plan import Proposal
from nca.context.policy import aim_ratio
from nca.context.record.compose import Composer, Prose
from nca.context.retention import KeptFacts
from nca.context.summary import clean_prose
from nca.context.tokens import text_tokens
from nca.context.view import Marker, Summary

STAGE = "provider"
RECORD_PART = 6
"""Code's record beside the provider's summary takes at most a sixth of the budget."""


@dataclass(frozen=True, slots=True)
class ProviderSummary:
    """The provider's summary: `block` as received (`content` is the text), `made_by` the model."""

    block: dict[str, Any]
    made_by: str


def adopt(
    history: History, meter: Meter, budget: Budget, settings: ContextSettings, summary: ProviderSummary
) -> Proposal:
    """A proposal with the provider's summary in it; not compacted if nothing may go or nothing is saved."""
    draft = Draft(history, meter)
    before, target = meter.used(history), int(aim_ratio(budget, settings) * budget.budget_tokens)
    gone = _gone(draft, settings, target)
    numbers = (before, before, budget.budget_tokens, target)
    unchanged = Proposal(history.view, False, history.head, (), *numbers)
    if not any(isinstance(part, Block) for part in gone):
        return unchanged
    draft.replace(gone, _summary(draft, gone, settings, budget, summary))
    view = draft.view()
    after = meter.used_with(history, view)
    if after >= before:
        return unchanged
    return Proposal(
        view,
        True,
        history.head,
        (STAGE,),
        before,
        after,
        budget.budget_tokens,
        target,
        saved_by_stage={STAGE: before - after},
        facts=KeptFacts(history, view),
        made_by=summary.made_by,
    )


def _gone(draft: Draft, settings: ContextSettings, target_tokens: int) -> list[Part]:
    """All that the summary replaces: the blocks shown before it, except for those that must stay."""
    turns = draft.turns()
    room = int(settings.keep_recent_ratio * target_tokens)
    in_progress = [block for block in (turns[-1] if turns else []) if block.last > (draft.newest_user or 0)]
    staying = {id(block) for block in newest_steps(draft, in_progress, room)}
    staying |= {id(block) for block in draft.blocks() if block.is_locked}
    return [
        part for part in draft.parts if id(part) not in staying and not (isinstance(part, Marker) and not part.text)
    ]


def _summary(
    draft: Draft, gone: list[Part], settings: ContextSettings, budget: Budget, summary: ProviderSummary
) -> Summary:
    ranges = covered(gone)
    room = min(sum(draft.part_raw(part) for part in gone) // 2, budget.budget_tokens // RECORD_PART)
    prose = Prose(clean_prose(str(summary.block.get("content", ""))), summary.made_by)
    composer = Composer(draft.history, settings.summarize)
    made = composer.summary(ranges, composer.record(ranges, room + text_tokens(prose.text), prose), prose)
    return msgspec.structs.replace(made, block=summary.block, role="user")


def newest_steps(draft: Draft, turn: Sequence[Block], room_tokens: int) -> list[Block]:
    """The newest steps of a turn in progress that fit; the newest of all in any case."""
    kept: list[Block] = []
    tokens = 0
    for block in reversed(turn):
        tokens += 0 if block.is_locked else draft.meter.scaled(block.raw)
        if kept and tokens > room_tokens:
            break
        kept.append(block)
    return kept
