-- How many tokens a message has, where it was counted before it was stored: a session that is opened again counts less.
-- NULL where it was not, as in an import.
ALTER TABLE messages ADD COLUMN tokens INTEGER;
-- A ratio was learned from another unit.
UPDATE learned SET ratio = 1.0, samples = 0;
