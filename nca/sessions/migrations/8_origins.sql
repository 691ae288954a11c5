-- Where an imported session comes from, as JSON (nca.sessions.origin); '' if it is nca's own.
ALTER TABLE sessions ADD COLUMN origin TEXT NOT NULL DEFAULT '';
