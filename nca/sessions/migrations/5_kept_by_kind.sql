-- The facts by kind, as JSON: {"rules": [kept, stated]}. Compactions of an older nca have only their sums.
ALTER TABLE compactions ADD COLUMN kept TEXT NOT NULL DEFAULT '{}';
