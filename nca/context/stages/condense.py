"""Text compression of finished turns (seed 3): the question and the final answer stay, the steps between them leave."""

from __future__ import annotations

from nca.context.draft import Block, Draft, Part, covered
from nca.context.stages.trim import FEWEST_TURNS
from nca.context.turns import complete_turns
from nca.context.view import Marker


def condense(draft: Draft, marker_id: str) -> None:
    """Hide the steps of every complete turn behind one silent marker; with five turns and more, nothing."""
    shown = (draft.history.entries[seq - 1] for block in draft.blocks() for seq in block.seqs)
    complete = set(complete_turns(shown))
    if len(complete) >= FEWEST_TURNS:
        return
    gone: list[Part] = []
    for turn in draft.turns():
        if turn[0].first in complete:
            answer = _answer(draft, turn)
            gone += [block for block in turn[1:] if block is not answer and not block.is_locked]
    if gone:
        draft.replace(gone, Marker(marker_id, covered(gone), ""))


def _answer(draft: Draft, turn: list[Block]) -> Block:
    """The last block in which the agent answers; where it never did, the last one of all."""
    for block in reversed(turn[1:]):
        message = draft.history.message(block.first)
        if message.role == "assistant" and message.text.strip() and not message.tool_calls:
            return block
    return turn[-1]
