"""What nca adds to SQL: `nca_passages`, which the triggers call, and `nca_matches`, which a search calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw

from nca.sessions.passages import passages_of

STEMMED_COLUMNS = (0, 1)
"""Of the index: text and extra. The third says only where a passage is."""


def register(connection: apsw.Connection, path: Path | None) -> None:
    """What every connection that writes needs. `path`: the database, beside which whole tool outputs lie."""
    outputs = path.parent / "outputs" if path else None

    def passages(*arguments: apsw.SQLiteValue) -> str:
        return passages_of(str(arguments[0]), outputs)

    # Innocuous, or a trigger could not call it where the schema is not trusted.
    connection.create_scalar_function("nca_passages", passages, 1, flags=apsw.SQLITE_INNOCUOUS)


def register_matches(connection: apsw.Connection) -> None:
    """What a search needs. Not done when connecting: it reads the database, which may be damaged."""
    connection.register_fts5_function("nca_matches", _matches)


def _matches(api: apsw.FTS5ExtensionApi, *_: Any) -> str:
    """Words of the passage, words of a mean one, then how often each phrase of the query stands there: `120 88 0 2`."""
    counts = [api.column_size(0), max(1, api.column_total_size(0) // max(1, api.row_count))]
    for phrase in range(api.phrase_count):
        found = api.phrase_locations(phrase)
        counts.append(sum(len(found[column]) for column in STEMMED_COLUMNS))
    return " ".join(map(str, counts))
