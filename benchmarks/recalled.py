"""Count the facts that can be read after a compaction, and those that a search finds again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import nca
from benchmarks.extractors import facts
from benchmarks.peers.side import plain_row, text_of
from nca.sessions import Store
from nca.wire import message_from_dict

Row = dict[str, Any]
SHOWN = 10


def recalled(rows: Sequence[Row], window_tokens: int) -> Row:
    """Facts in view, and with search: a fact is found where one of the first ten hits holds it."""
    wanted = [fact for kind, found in facts(rows).items() if kind != "user turns" for fact in found]
    view = nca.compact(list(rows), context_window=window_tokens).messages
    text = "\n".join(text_of(row) for row in view)
    lost = [fact for fact in wanted if fact not in text]
    with Store.open(None) as store, store.create(directory="/", model="m") as session:
        session.log.append([message_from_dict(plain_row(row)) for row in rows])
        found = sum(any(fact in text_of(rows[hit.seq - 1]) for hit in session.search(fact)[:SHOWN]) for fact in lost)
    return {"facts": len(wanted), "in_view": len(wanted) - len(lost), "with_search": len(wanted) - len(lost) + found}
