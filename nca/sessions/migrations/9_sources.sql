-- Who said a message, in place of the mark that nca wrote it. In a body every quote of a text is escaped, so the mark is
-- found nowhere else. Of older messages of the user nobody knows whether they were typed: they keep no source.
DROP TRIGGER messages_never_change;
DROP INDEX messages_said;
UPDATE messages SET body = replace(body, '"is_synthetic":true', '"source":"nca"')
WHERE instr(body, '"is_synthetic":true') > 0;
CREATE TRIGGER messages_never_change BEFORE UPDATE ON messages
BEGIN SELECT raise(ABORT, 'the log is append-only'); END;
-- The condition is SAID of nca.sessions.sql, in the same words: SQLite compares them as text.
CREATE INDEX messages_said ON messages (session, seq)
WHERE role = 'user' AND iif(json_valid(body), coalesce(body ->> 'source', ''), 'nca') <> 'nca';
