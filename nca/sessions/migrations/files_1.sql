-- What happened to files. A database of its own, so that neither its size nor its damage is a matter of any chat.
-- Text is stored as BLOB: names of files are any bytes.
CREATE TABLE workspaces (
    number INTEGER PRIMARY KEY,
    root   BLOB NOT NULL UNIQUE
) STRICT;

-- A session in a workspace. Whatever is recorded lives as long as the session.
CREATE TABLE uses (
    number    INTEGER PRIMARY KEY,
    session   TEXT NOT NULL,
    workspace INTEGER NOT NULL REFERENCES workspaces,
    UNIQUE (session, workspace)
) STRICT;
CREATE INDEX uses_by_workspace ON uses (workspace);

-- The contents of files and the targets of links, once each. `workspace`: whose room they take.
CREATE TABLE contents (
    number       INTEGER PRIMARY KEY,
    sha256       BLOB NOT NULL UNIQUE,
    workspace    INTEGER NOT NULL,
    packed_bytes INTEGER NOT NULL,
    packed       BLOB NOT NULL
) STRICT;
CREATE INDEX contents_by_workspace ON contents (workspace, packed_bytes);

-- The files of a workspace as they were last seen.
CREATE TABLE known (
    workspace INTEGER NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    path      BLOB NOT NULL,
    body      BLOB NOT NULL,
    content   INTEGER REFERENCES contents,
    PRIMARY KEY (workspace, path)
) STRICT, WITHOUT ROWID;
CREATE INDEX known_by_content ON known (content) WHERE content IS NOT NULL;

-- Commands that run, or ran when nca was killed.
CREATE TABLE commands (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    use    INTEGER NOT NULL REFERENCES uses ON DELETE CASCADE,
    seq    INTEGER NOT NULL,
    actor  BLOB NOT NULL,
    last   INTEGER NOT NULL
) STRICT;

CREATE TABLE rewinds (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    use    INTEGER NOT NULL REFERENCES uses ON DELETE CASCADE,
    first  INTEGER NOT NULL,
    chat   BLOB NOT NULL
) STRICT;

-- The journal: each change of a path, recorded before it is made. A row that is not done is a change that was begun.
CREATE TABLE changes (
    number         INTEGER PRIMARY KEY AUTOINCREMENT,
    use            INTEGER NOT NULL REFERENCES uses,
    seq            INTEGER NOT NULL,
    path           BLOB NOT NULL,
    body           BLOB NOT NULL,
    is_done        INTEGER NOT NULL,
    rewind         INTEGER REFERENCES rewinds ON DELETE CASCADE,
    before_content INTEGER REFERENCES contents,
    after_content  INTEGER REFERENCES contents
) STRICT;
CREATE INDEX changes_by_use ON changes (use, number);
CREATE INDEX changes_unfinished ON changes (number) WHERE NOT is_done;
CREATE INDEX changes_by_rewind ON changes (rewind) WHERE rewind IS NOT NULL;
CREATE INDEX changes_by_before ON changes (before_content) WHERE before_content IS NOT NULL;
CREATE INDEX changes_by_after ON changes (after_content) WHERE after_content IS NOT NULL;
