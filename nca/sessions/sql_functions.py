"""SQL functions of nca: `nca_passages` for the triggers and `nca_matches` for search."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import apsw

from nca.sessions.passages import stored_passages

TOKENIZER = ("porter", ["unicode61", "remove_diacritics", "2"])
STEMMED_COLUMNS = (0, 1)
"""Of the index: text and extra. The third column is the scope."""


def register(connection: apsw.Connection, outputs: Path | None) -> None:
    """Register what a connection that writes needs. `outputs`: the folder of complete tool outputs, if any."""

    def passages(*arguments: apsw.SQLiteValue) -> str:
        return json.dumps(stored_passages(str(arguments[0]), outputs))

    # Innocuous: a trigger may call no other function when the schema is not trusted.
    connection.create_scalar_function("nca_passages", passages, 1, flags=apsw.SQLITE_INNOCUOUS)


def register_matches(connection: apsw.Connection) -> None:
    """Register what a search needs. Not on connecting: this reads the database, which may be damaged."""
    connection.register_fts5_function("nca_matches", _matches)


def _matches(api: apsw.FTS5ExtensionApi, *_: Any) -> str:
    """Words in the passage, words in an average passage, then the count of each phrase of the query: `120 88 0 2`."""
    counts = [api.column_size(0), max(1, api.column_total_size(0) // max(1, api.row_count))]
    for phrase in range(api.phrase_count):
        found = api.phrase_locations(phrase)
        counts.append(sum(len(found[column]) for column in STEMMED_COLUMNS))
    return " ".join(map(str, counts))
