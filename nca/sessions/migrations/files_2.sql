-- Commands of which not everything that they changed was recorded, and what was not.
CREATE TABLE gaps (
    use  INTEGER NOT NULL REFERENCES uses ON DELETE CASCADE,
    seq  INTEGER NOT NULL,
    said BLOB NOT NULL,
    PRIMARY KEY (use, seq, said)
) STRICT, WITHOUT ROWID;
