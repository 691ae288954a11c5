-- Where an imported session comes from, as JSON (nca.sessions.access); '' if it is nca's own.
ALTER TABLE sessions ADD COLUMN origin TEXT NOT NULL DEFAULT '';
