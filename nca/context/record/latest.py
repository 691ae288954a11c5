"""The answer that the person's newest message answers: of all answers the one that a record tells in full if it can."""

from __future__ import annotations

from collections.abc import Sequence

from nca.context.draft import Block
from nca.context.history import History
from nca.context.record.ledger import ANSWERS, parted
from nca.context.record.statements import answer_of, longer_answers
from nca.context.view import Summary


def latest_answer(
    history: History, movable: Sequence[Block], absorbed: Sequence[Summary], gone: Sequence[Block]
) -> list[str]:
    """Its line, as a ledger has it, and longer ones; none where it stays behind the record.

    movable   the blocks that may go, of which `gone` go
    absorbed  earlier records, which stand before them
    """
    newest = history.newest_user or 0
    for block in reversed(movable):
        for entry in reversed(history.entries[block.first - 1 : block.last]):
            is_before = entry.seq < newest and entry.message.role == "assistant"
            if is_before and (answer := answer_of(entry.message)):
                is_gone = gone and entry.seq <= gone[-1].last
                return _and_longer(history, f"{entry.seq}\t{answer}") if is_gone else []
    lines = (line for part in reversed(absorbed) for line in reversed(part.ledger.get(ANSWERS, ())))
    return _and_longer(history, next((line for line in lines if parted(line)[0] < newest), ""))


def _and_longer(history: History, line: str) -> list[str]:
    """The line of an answer, and longer ones where its message is one of this log."""
    seq, text = parted(line)
    if not 0 < seq <= history.head:
        return [line] if line else []
    message = history.message(seq)
    is_its_own = not message.tool_calls and answer_of(message) == text
    longer = longer_answers(message) if is_its_own else ()
    return [line, *(f"{seq}\t{one}" for one in longer if len(one) > len(text))]
