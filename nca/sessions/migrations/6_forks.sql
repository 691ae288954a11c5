-- Whether another session was forked from this one. Such a session is never archived by age or number.
ALTER TABLE sessions ADD COLUMN has_forks INTEGER NOT NULL DEFAULT 0;
