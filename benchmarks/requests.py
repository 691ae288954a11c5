"""Judge every request of a replayed session by its messages alone: price, validity, size."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from benchmarks.peers.side import pair_faults, plain_row
from benchmarks.tokens import O200K, message_tokens, tokens
from benchmarks.validity import refused_by

Row = dict[str, Any]
CACHE_READ, CACHE_WRITE = 0.1, 1.25
"""Prices of a prefix cache, as shares of an uncached token."""


def requests_of(answer: Row) -> list[list[Row]]:
    """The messages of each request; the adapter sends each message once, and its place for every request."""
    pool: list[Row] = answer["pool"]
    return [[pool[place] for place in places] for places in answer["requests"]]


def heads(rows: Sequence[Row]) -> list[int]:
    """How many messages of the session there were at each request: one before each answer of the model."""
    return [place for place, row in enumerate(rows) if row["role"] == "assistant"]


def judged(rows: Sequence[Row], requests: Sequence[Sequence[Row]], case: Row) -> Row:
    """Of a session's requests: how many there are, break the prefix, have unpaired calls, are refused, are too large.

    over, too_large   larger than the case's budget, than its window
    over_o200k        larger than the budget by the newer vocabulary
    cost_ratio        all of them with a prefix cache, as a share of sending the whole history each time at full price
    """
    cost = raw = 0.0
    found = dict.fromkeys(("breaks", "broken", "refused", "over", "over_o200k", "too_large"), 0)
    sent: list[str] = []
    for head, request in zip(heads(rows), requests, strict=True):
        parts = [json.dumps(plain_row(row), sort_keys=True) for row in request]
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(sent, parts, strict=False)))
        cost += CACHE_READ * tokens(request[:same]) + CACHE_WRITE * tokens(request[same:])
        raw += sum(map(message_tokens, rows[:head]))
        found["breaks"] += same < len(sent)
        found["broken"] += bool(pair_faults(list(request)))
        found["refused"] += bool(refused_by(request))
        found["over"] += tokens(request) > case["budget_tokens"]
        found["over_o200k"] += tokens(request, O200K) > case["budget_tokens"]
        found["too_large"] += tokens(request) > case["window_tokens"]
        sent = parts
    return {"requests": len(requests), "cost_ratio": cost / raw, **found}
