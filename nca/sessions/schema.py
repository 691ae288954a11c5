"""The database schema, as migrations. Their number is the newest schema version.

    sessions ─┬─ messages      the log: append-only, seq from 1 without gaps (triggers hold both)
              ├─ views         what a model sees: append-only, a tree by `parent`; sessions.head_view is in force
              ├─ summaries     append-only; a view's JSON names them by row, so each stands in one place
              ├─ compactions   one for each view but the first, which has number 0 and shows the whole log
              ├─ pins, usage
              └─ partials      the answer that is being streamed; overwritten in place, gone with the next message
    program_views              the state of a `nca.ContextView` by its key; each save replaces it under a new version

A compaction is undone if its view is no ancestor of the view in force; this is not stored. Times are seconds since the
epoch and only inform people. Order is by `seq`, `number` and `touched`, never by a clock.
"""

from __future__ import annotations

from pathlib import Path

APPLICATION_ID = 0x6E63610A
"""`nca` and a newline, in the four bytes that identify an application's SQLite files."""

SAID = "role = 'user' AND iif(json_valid(body), coalesce(body ->> 'source', ''), 'nca') <> 'nca'"
"""Condition for messages that a person wrote. Queries must repeat it verbatim to use its partial index."""
TODO_RESULT = """role = 'tool' AND instr(body, '"name":"todo"') > 0"""
"""Condition for messages that are probably results of the todo tool; it misses none."""

MIGRATIONS: tuple[str, ...] = tuple(
    Path(__file__).with_name("migrations").joinpath(name).read_text(encoding="utf-8")
    for name in (
        "1_sessions.sql",
        "2_full_text_index.sql",
        "3_session_kinds.sql",
        "4_long_logs.sql",
        "5_kept_by_kind.sql",
        "6_forks.sql",
        "7_chosen_models.sql",
        "8_origins.sql",
        "9_sources.sql",
        "10_counts.sql",
        "11_program_views.sql",
    )
)
"""Script n leads from schema n to n + 1. Only ever add one: released schemas are in people's files."""
