"""CowAgent's stages: `condense` hides the steps of finished turns, `trim` summarizes the older half of the turns.

They are off by default. `MORE_STAGES` is what a compaction takes beside the engine's own four stages.
"""

from __future__ import annotations

from collections.abc import Mapping

from nca.context.draft import Block, Draft, Part, covered
from nca.context.history import complete_turns
from nca.context.plan import Asking, Planning, Stage
from nca.context.stages.truncate import truncated
from nca.context.view import Marker
from nca.messages import Message

FEWEST_TURNS = 5
"""CowAgent's number: from so many complete turns on they are trimmed, and with fewer their steps are hidden."""


def condense(draft: Draft, marker_id: str) -> None:
    """Hide the steps of every complete turn behind one silent marker, so that question and answer stay."""
    shown = (draft.history.entries[seq - 1] for block in draft.blocks() for seq in block.seqs)
    complete = set(complete_turns(shown))
    if len(complete) >= FEWEST_TURNS:
        return
    _hide_steps(draft, [turn for turn in draft.turns() if turn[0].first in complete], marker_id)


def keep_text(draft: Draft, newest_turns: int, marker_id: str) -> None:
    """Restore a session as text, as CowAgent does: of the newest turns the question and the final answer."""
    turns = draft.turns()
    older: list[Part] = [block for turn in turns[:-newest_turns] for block in turn if not block.is_locked]
    if older:
        draft.replace(older, truncated(f"{marker_id}-older", older))
    _hide_steps(draft, turns[-newest_turns:], marker_id)


def _condense(planning: Planning) -> Asking[None]:
    condense(planning.draft, planning.draft.marker_id())
    yield from ()


def _trim(planning: Planning) -> Asking[None]:
    yield from planning.trim(fewest=FEWEST_TURNS)


MORE_STAGES: Mapping[str, Stage] = {"condense": _condense, "trim": _trim}


def _hide_steps(draft: Draft, turns: list[list[Block]], marker_id: str) -> None:
    gone: list[Part] = []
    for turn in turns:
        answer = _answer(draft, turn)
        gone += [block for block in turn[1:] if block is not answer and _may_go(draft, block)]
    if gone:
        draft.replace(gone, Marker(marker_id, covered(gone), ""))


def _answer(draft: Draft, turn: list[Block]) -> Block | None:
    """The last block in which the agent answers; where it never did, the last in which it did anything."""
    steps = [block for block in reversed(turn[1:]) if draft.history.message(block.first).role == "assistant"]
    answers = [block for block in steps if _is_answer(draft.history.message(block.first))]
    return next(iter(answers or steps), None)


def _is_answer(message: Message) -> bool:
    return bool(message.text.strip()) and not message.tool_calls


def _may_go(draft: Draft, block: Block) -> bool:
    """In a broken log a call that was never answered holds together with what a person said after it."""
    messages = (draft.history.message(seq) for seq in block.seqs)
    return not block.is_locked and not any(one.role == "user" and not one.is_synthetic for one in messages)
