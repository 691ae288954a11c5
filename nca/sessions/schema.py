"""The database's tables, as the migrations that lead to them. The newest schema is their number.

    sessions ─┬─ messages      the log: append-only, seq from 1 without gaps (triggers hold both)
              ├─ views         what a model sees: append-only, a tree by `parent`; sessions.head_view is in force
              ├─ summaries     append-only; a view's JSON names them by row, so each stands in one place
              ├─ compactions   one for each view but the first, which has number 0 and shows the whole log
              ├─ pins, usage
              └─ partials      the answer that is being streamed; overwritten in place, gone with the next message

Whether a compaction is undone is not stored: it is, when its view is no ancestor of the view in force.
Times are seconds since the epoch, for people only; order is by `seq`, `number` and `touched`, never by a clock.
"""

from __future__ import annotations

APPLICATION_ID = 0x6E63610A
"""`nca` and a newline, in the four bytes that SQLite keeps for telling files apart."""

_FIRST = """
CREATE TABLE sessions (
    number     INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    name       TEXT NOT NULL,
    directory  TEXT NOT NULL,
    model      TEXT NOT NULL,
    title      TEXT NOT NULL DEFAULT '',
    is_pinned  INTEGER NOT NULL DEFAULT 0,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    touched    INTEGER NOT NULL,
    head_view  INTEGER NOT NULL DEFAULT 0,
    FOREIGN KEY (number, head_view) REFERENCES views (session, number) DEFERRABLE INITIALLY DEFERRED
) STRICT;
CREATE INDEX sessions_touched ON sessions (touched);

CREATE TABLE messages (
    id      INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions (number) ON DELETE CASCADE,
    seq     INTEGER NOT NULL,
    at      REAL NOT NULL,
    role    TEXT NOT NULL,
    body    TEXT NOT NULL,
    UNIQUE (session, seq)
) STRICT;
CREATE TRIGGER messages_have_no_gaps BEFORE INSERT ON messages
WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM messages WHERE session = NEW.session)
BEGIN SELECT raise(ABORT, 'a message must follow the last one'); END;
CREATE TRIGGER messages_never_change BEFORE UPDATE ON messages
BEGIN SELECT raise(ABORT, 'the log is append-only'); END;
CREATE TRIGGER messages_stay BEFORE DELETE ON messages
WHEN EXISTS (SELECT 1 FROM sessions WHERE number = OLD.session)
BEGIN SELECT raise(ABORT, 'the log is append-only'); END;

CREATE TABLE views (
    session INTEGER NOT NULL REFERENCES sessions (number) ON DELETE CASCADE,
    number  INTEGER NOT NULL,
    parent  INTEGER,
    body    TEXT NOT NULL,
    PRIMARY KEY (session, number),
    FOREIGN KEY (session, parent) REFERENCES views (session, number) DEFERRABLE INITIALLY DEFERRED
) STRICT;
CREATE INDEX views_parent ON views (session, parent);
CREATE TRIGGER views_never_change BEFORE UPDATE ON views
BEGIN SELECT raise(ABORT, 'views are append-only'); END;
CREATE TRIGGER views_stay BEFORE DELETE ON views
WHEN EXISTS (SELECT 1 FROM sessions WHERE number = OLD.session)
BEGIN SELECT raise(ABORT, 'views are append-only'); END;

CREATE TABLE summaries (
    number  INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions (number) ON DELETE CASCADE,
    body    TEXT NOT NULL,
    id      TEXT GENERATED ALWAYS AS (body ->> 'id') VIRTUAL,
    rank    INTEGER GENERATED ALWAYS AS (body ->> 'rank') VIRTUAL,
    ranges  TEXT GENERATED ALWAYS AS (body -> 'ranges') VIRTUAL,
    made_by TEXT GENERATED ALWAYS AS (body ->> 'made_by') VIRTUAL
) STRICT;
CREATE INDEX summaries_session ON summaries (session);
CREATE TRIGGER summaries_never_change BEFORE UPDATE ON summaries
BEGIN SELECT raise(ABORT, 'summaries are append-only'); END;
CREATE TRIGGER summaries_stay BEFORE DELETE ON summaries
WHEN EXISTS (SELECT 1 FROM sessions WHERE number = OLD.session)
BEGIN SELECT raise(ABORT, 'summaries are append-only'); END;

CREATE TABLE compactions (
    session INTEGER NOT NULL,
    view    INTEGER NOT NULL,
    trigger TEXT NOT NULL,
    stages  TEXT NOT NULL,
    tokens_before INTEGER NOT NULL,
    tokens_after  INTEGER NOT NULL,
    kept_facts    INTEGER NOT NULL,
    total_facts   INTEGER NOT NULL,
    seconds REAL NOT NULL,
    cost    REAL,
    at      REAL NOT NULL,
    PRIMARY KEY (session, view),
    FOREIGN KEY (session, view) REFERENCES views (session, number) ON DELETE CASCADE
) STRICT;

CREATE TABLE pins (
    session INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    PRIMARY KEY (session, seq),
    FOREIGN KEY (session, seq) REFERENCES messages (session, seq) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE usage (
    id      INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    view    INTEGER NOT NULL,
    model   TEXT NOT NULL,
    at      REAL NOT NULL,
    prompt_tokens      INTEGER NOT NULL,
    completion_tokens  INTEGER NOT NULL,
    cache_read_tokens  INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    reasoning_tokens   INTEGER NOT NULL,
    cost    REAL,
    FOREIGN KEY (session, view) REFERENCES views (session, number) ON DELETE CASCADE
) STRICT;
CREATE INDEX usage_view ON usage (session, view);

CREATE TABLE partials (
    session INTEGER PRIMARY KEY REFERENCES sessions (number) ON DELETE CASCADE,
    body    TEXT NOT NULL
) STRICT;

CREATE TABLE learned (
    model         TEXT PRIMARY KEY,
    ratio         REAL NOT NULL,
    window_tokens INTEGER,
    samples       INTEGER NOT NULL,
    at            REAL NOT NULL
) STRICT, WITHOUT ROWID;
"""

_PASSAGES = """
CREATE INDEX messages_of_users ON messages (session, seq) WHERE role = 'user';
CREATE VIRTUAL TABLE passages USING fts5 (
    text, extra, scope, content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE TRIGGER messages_are_found AFTER INSERT ON messages
BEGIN
    INSERT INTO passages (rowid, text, extra, scope)
    SELECT NEW.id * 4096 + key, value ->> 0, value ->> 1, 's' || NEW.session FROM json_each(nca_passages(NEW.body));
END;
CREATE TRIGGER messages_are_forgotten AFTER DELETE ON messages
BEGIN DELETE FROM passages WHERE rowid BETWEEN OLD.id * 4096 AND OLD.id * 4096 + 4095; END;

INSERT INTO passages (rowid, text, extra, scope)
SELECT messages.id * 4096 + key, value ->> 0, value ->> 1, 's' || session
FROM messages, json_each(nca_passages(messages.body)) ORDER BY messages.id, key;
"""
"""What `nca_passages` gives, and why, says nca.sessions.passages."""

_KINDS = """
ALTER TABLE sessions ADD COLUMN kind TEXT NOT NULL DEFAULT 'chat';
"""
"""`chat` or `run`. What an older nca made may be either; it counts as a chat, so that nobody misses one."""

SAID = "role = 'user' AND iif(json_valid(body), body ->> 'is_synthetic', 0) IS NULL"
"""Which rows of `messages` a person wrote. A query that says it in these words finds them in their index."""
TODO_RESULT = """role = 'tool' AND instr(body, '"name":"todo"') > 0"""
"""Which rows may be results of the todo tool: all of them are among these, and hardly another."""

_LONG_LOGS = f"""
CREATE INDEX messages_said ON messages (session, seq) WHERE {SAID};
CREATE INDEX messages_of_todo ON messages (session, seq) WHERE {TODO_RESULT};
CREATE INDEX usage_session ON usage (session);
CREATE INDEX summaries_size ON summaries (session, length(body));
CREATE INDEX sessions_directory ON sessions (directory, touched);
"""
"""What opening a session, a turn and a compaction look up, however long the log is and however many sessions."""

MIGRATIONS: tuple[str, ...] = (_FIRST, _PASSAGES, _KINDS, _LONG_LOGS)
"""Script n leads from schema n to n + 1. Only ever add one: what was released is in people's files."""

TABLES = frozenset(
    {"sessions", "messages", "views", "summaries", "compactions", "pins", "usage", "partials", "learned", "passages"}
)
"""What a file of the newest schema must have; without one of them it is damaged."""
