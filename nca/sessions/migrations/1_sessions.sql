-- Sessions, their logs, views and usage.
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
