-- Sessions, their logs, views and usage: the tables of SQLite's schema 12 (nca/sessions/migrations), with `owner` and
-- `machine` of a session, `is_said` in place of an expression over a message's JSON, which may hold \u0000, and leases.
CREATE TABLE sessions (
    number       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE,
    name         TEXT NOT NULL,
    directory    TEXT NOT NULL,
    model        TEXT NOT NULL,
    title        TEXT NOT NULL DEFAULT '',
    is_pinned    INTEGER NOT NULL DEFAULT 0,
    created_at   DOUBLE PRECISION NOT NULL,
    updated_at   DOUBLE PRECISION NOT NULL,
    touched      BIGINT NOT NULL,
    head_view    INTEGER NOT NULL DEFAULT 0,
    kind         TEXT NOT NULL DEFAULT 'chat',
    has_forks    INTEGER NOT NULL DEFAULT 0,
    chosen_model TEXT NOT NULL DEFAULT '',
    origin       TEXT NOT NULL DEFAULT '',
    owner        TEXT NOT NULL DEFAULT current_user,
    machine      TEXT NOT NULL DEFAULT coalesce(current_setting('nca.machine', true), '')
);
CREATE INDEX sessions_touched ON sessions (touched);
CREATE INDEX sessions_directory ON sessions (directory, touched);

CREATE FUNCTION instr(text, text) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT strpos($1, $2)';

CREATE TABLE messages (
    id      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session BIGINT NOT NULL REFERENCES sessions (number) ON DELETE CASCADE,
    seq     INTEGER NOT NULL,
    at      DOUBLE PRECISION NOT NULL,
    role    TEXT NOT NULL,
    body    TEXT NOT NULL,
    tokens  BIGINT,
    is_said BOOLEAN NOT NULL,
    UNIQUE (session, seq)
);
CREATE INDEX messages_of_users ON messages (session, seq) WHERE role = 'user';
CREATE INDEX messages_said ON messages (session, seq) WHERE is_said;
-- The condition is TODO_RESULT of nca.sessions.sql.
CREATE INDEX messages_of_todo ON messages (session, seq) WHERE role = 'tool' AND instr(body, '"name":"todo"') > 0;

CREATE TABLE views (
    session BIGINT NOT NULL REFERENCES sessions (number) ON DELETE CASCADE,
    number  INTEGER NOT NULL,
    parent  INTEGER,
    body    TEXT NOT NULL,
    PRIMARY KEY (session, number),
    FOREIGN KEY (session, parent) REFERENCES views (session, number) DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX views_parent ON views (session, parent);
ALTER TABLE sessions ADD FOREIGN KEY (number, head_view) REFERENCES views (session, number) DEFERRABLE INITIALLY DEFERRED;

CREATE TABLE summaries (
    number  BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session BIGINT NOT NULL REFERENCES sessions (number) ON DELETE CASCADE,
    body    TEXT NOT NULL
);
CREATE INDEX summaries_size ON summaries (session, length(body));

CREATE TABLE compactions (
    session BIGINT NOT NULL,
    view    INTEGER NOT NULL,
    trigger TEXT NOT NULL,
    stages  TEXT NOT NULL,
    tokens_before BIGINT NOT NULL,
    tokens_after  BIGINT NOT NULL,
    kept_facts    BIGINT NOT NULL,
    total_facts   BIGINT NOT NULL,
    seconds DOUBLE PRECISION NOT NULL,
    cost    DOUBLE PRECISION,
    at      DOUBLE PRECISION NOT NULL,
    kept    TEXT NOT NULL DEFAULT '{}',
    PRIMARY KEY (session, view),
    FOREIGN KEY (session, view) REFERENCES views (session, number) ON DELETE CASCADE
);

CREATE TABLE pins (
    session BIGINT NOT NULL,
    seq     INTEGER NOT NULL,
    PRIMARY KEY (session, seq),
    FOREIGN KEY (session, seq) REFERENCES messages (session, seq) ON DELETE CASCADE
);

CREATE TABLE usage (
    id      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session BIGINT NOT NULL,
    seq     BIGINT NOT NULL,
    view    INTEGER NOT NULL,
    model   TEXT NOT NULL,
    at      DOUBLE PRECISION NOT NULL,
    prompt_tokens      BIGINT NOT NULL,
    completion_tokens  BIGINT NOT NULL,
    cache_read_tokens  BIGINT NOT NULL,
    cache_write_tokens BIGINT NOT NULL,
    reasoning_tokens   BIGINT NOT NULL,
    cost    DOUBLE PRECISION,
    FOREIGN KEY (session, view) REFERENCES views (session, number) ON DELETE CASCADE
);
CREATE INDEX usage_session ON usage (session);

CREATE TABLE partials (
    session BIGINT PRIMARY KEY REFERENCES sessions (number) ON DELETE CASCADE,
    body    TEXT NOT NULL
);

CREATE TABLE learned (
    model         TEXT PRIMARY KEY,
    ratio         DOUBLE PRECISION NOT NULL,
    window_tokens BIGINT,
    samples       BIGINT NOT NULL,
    at            DOUBLE PRECISION NOT NULL
);

CREATE TABLE program_views (
    version BIGINT PRIMARY KEY,
    key     TEXT NOT NULL UNIQUE,
    body    TEXT NOT NULL,
    at      DOUBLE PRECISION NOT NULL
);

-- Who writes a session. Each holder has a token of its own, and keeps an advisory lock on session and token while its
-- connection lives. A write checks the token; the lock only says whether the holder is still there.
CREATE TABLE leases (
    session_id TEXT PRIMARY KEY,
    token      BIGINT NOT NULL DEFAULT 0,
    holder     TEXT NOT NULL DEFAULT '',
    since      DOUBLE PRECISION NOT NULL DEFAULT 0
);

-- The full-text index, as FTS5 splits and stems: lexemes of the text, then of the extra words, and /s and the session.
CREATE TABLE passages (
    id      BIGINT PRIMARY KEY,
    session BIGINT NOT NULL REFERENCES sessions (number) ON DELETE CASCADE,
    words   INTEGER NOT NULL,
    lexemes TSVECTOR NOT NULL
);
CREATE INDEX passages_lexemes ON passages USING gin (lexemes) WITH (gin_pending_list_limit = 256);
CREATE INDEX passages_session ON passages (session);

CREATE FUNCTION refuse_gap() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.seq IS DISTINCT FROM (SELECT coalesce(max(seq), 0) + 1 FROM messages WHERE session = NEW.session) THEN
        RAISE 'a message must follow the last one';
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE '% are append-only', TG_TABLE_NAME;
END $$;
CREATE FUNCTION refuse_removal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM sessions WHERE number = OLD.session) THEN
        RAISE '% are append-only', TG_TABLE_NAME;
    END IF;
    RETURN OLD;
END $$;
CREATE TRIGGER messages_have_no_gaps BEFORE INSERT ON messages FOR EACH ROW EXECUTE FUNCTION refuse_gap();
CREATE TRIGGER messages_never_change BEFORE UPDATE ON messages FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER messages_stay BEFORE DELETE ON messages FOR EACH ROW EXECUTE FUNCTION refuse_removal();
CREATE TRIGGER views_never_change BEFORE UPDATE ON views FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER views_stay BEFORE DELETE ON views FOR EACH ROW EXECUTE FUNCTION refuse_removal();
CREATE TRIGGER summaries_never_change BEFORE UPDATE ON summaries FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER summaries_stay BEFORE DELETE ON summaries FOR EACH ROW EXECUTE FUNCTION refuse_removal();
