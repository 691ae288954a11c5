"""Judge the result of a compaction by its messages alone, in the same way for every program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.extractors import ERROR_CHARS, facts, is_of_person, readable
from benchmarks.peers.side import calls_of, chars, pair_faults, text_of
from benchmarks.tokens import message_tokens, tokens
from benchmarks.validity import refused_by

Row = dict[str, Any]
SLACK = 1.02
"""The judge's count and a peer's differ; a target is missed by more than this."""


def kept(wanted: dict[str, list[str]], rows: Sequence[Row]) -> dict[str, list[int]]:
    """By kind: how many can be read in these messages, of how many."""
    text = "\n".join(text_of(row) for row in rows)
    return {
        kind: list(readable(found, text, most_chars=ERROR_CHARS if kind == "error lines" else 0))
        for kind, found in wanted.items()
    }


def verdict(before: Sequence[Row], answer: Row, target_tokens: int) -> Row:
    """All that the page says of one compaction."""
    if "error" in answer:
        return {"error": answer["error"]}
    after: list[Row] = answer["messages"]
    words = [text_of(row) for row in before if is_of_person(row)]
    said = {text_of(row) for row in after if row["role"] == "user"}
    text = "\n".join(text_of(row) for row in after)
    count = tokens(after)
    return {
        "tokens_before": tokens(before),
        "tokens_after": count,
        "target_tokens": target_tokens,
        "is_met": count <= SLACK * target_tokens,
        "refused_by": refused_by(after),
        "was_refused_by": refused_by(before),
        "pair_faults": len(pair_faults(after)),
        "facts": kept(facts(before), after),
        "user_turns": [sum(word in text for word in words), len(words)],
        "user_tokens": sum(message_tokens(row) for row in before if is_of_person(row)),
        "is_newest_whole": words[-1] in said,
        "mutated": answer["mutated"],
        "own_before": answer["tokens_before"],
        "own_after": answer["tokens_after"],
        "counter": answer["counter"],
        "chars_after": chars(after),
        "calls_after": sum(len(calls_of(row)) for row in after),
    }
