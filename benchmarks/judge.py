"""Judge the result of a compaction by its messages alone, in the same way for every program."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from typing import Any

import nca
from benchmarks.environments import tokenizers
from benchmarks.extractors import ERROR_CHARS, facts, readable
from benchmarks.peers.side import calls_of, chars, pair_faults, text_of
from nca.errors import NcaError

Row = dict[str, Any]
PROVIDERS = ("openai", "anthropic", "gemini", "mistral")
SLACK = 1.02
"""The judge's count and a peer's differ; a target is missed by more than this."""


@cache
def _encoding() -> Any:
    """cl100k_base, whose file comes with litellm: counting needs no network."""
    os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(tokenizers()))
    import tiktoken

    return tiktoken.get_encoding("cl100k_base")


def tokens(rows: Sequence[Row]) -> int:
    """A real tokenizer's count of what is said, and four tokens a message: nobody's own estimate."""
    return sum(4 + _text_tokens(text_of(row)) for row in rows)


@cache
def _text_tokens(text: str) -> int:
    return len(_encoding().encode(text, disallowed_special=()))


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
    newest = next(text_of(row) for row in reversed(before) if row["role"] == "user")
    words = [text_of(row) for row in before if row["role"] == "user"]
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
        "user_tokens": sum(4 + _text_tokens(word) for word in words),
        "is_newest_whole": newest in said,
        "mutated": answer["mutated"],
        "own_before": answer["tokens_before"],
        "own_after": answer["tokens_after"],
        "counter": answer["counter"],
        "chars_after": chars(after),
        "calls_after": sum(len(calls_of(row)) for row in after),
    }


def refused_by(rows: Sequence[Row]) -> list[str]:
    """The providers whose rules these messages break."""
    refused = []
    for provider in PROVIDERS:
        try:
            is_refused = bool(nca.validate_request(list(rows), provider))
        except NcaError:
            is_refused = True
        if is_refused:
            refused.append(provider)
    return refused
