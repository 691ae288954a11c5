-- The views of conversations that other programs keep (nca.ContextView with a key): what a worker goes on with.
-- Each save has a new version, so that of two writers who read the same one only the first can save.
CREATE TABLE program_views (
    version INTEGER PRIMARY KEY,
    key     TEXT NOT NULL UNIQUE,
    body    TEXT NOT NULL,
    at      REAL NOT NULL
) STRICT;
